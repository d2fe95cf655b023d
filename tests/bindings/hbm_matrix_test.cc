// Rows in device memory have the bits of the oracle in each cell of a matrix: flush intervals,
// optimizers, value types, sets of tiers, threads. Each cell takes the same steps, in which rows
// arrive, are found, change beside a checkpoint, leave, and are demoted.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/c/handles.h"
#include "tests/bindings/device_rows.h"
#include "tests/support/c_api.h"
#include "tests/support/events.h"
#include "tests/support/hbm_tier.h"
#include "tests/support/latch_executor.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/packed_feature.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/row_buffer.h"
#include "tests/support/seeds.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/small_log.h"

namespace embank::test::hbm_matrix_test {
namespace {

enum class Tiers { kMemory, kSsd, kPmem };  // below device memory

constexpr std::array<uint32_t, 4> kFlushIters = {1, 7, 100, UINT32_MAX};
constexpr std::array<int32_t, 5> kOptimizers = {EMBANK_OPT_SGD, EMBANK_OPT_ADAGRAD,
                                                EMBANK_OPT_ROWWISE_ADAGRAD, EMBANK_OPT_ADAM,
                                                EMBANK_OPT_FTRL};
constexpr std::array<int32_t, 2> kTypes = {EMBANK_F32, EMBANK_F16};
constexpr std::array<Tiers, 3> kTiers = {Tiers::kMemory, Tiers::kSsd, Tiers::kPmem};
constexpr std::array<uint32_t, 2> kThreads = {1, 2};
constexpr uint64_t kCells =
    kFlushIters.size() * kOptimizers.size() * kTypes.size() * kTiers.size() * kThreads.size();
static_assert(kCells == 240);

constexpr uint64_t kOperationsMin = 500'000;
constexpr uint64_t kOperationsOfCellMin = 2100;

constexpr const char* kOperations = "operations";
constexpr const char* kHits = "positions answered by device memory";
constexpr const char* kWrittenBack = "rows written back";
constexpr const char* kPreImages = "rows flushed before a change";
constexpr const char* kDemoted = "rows demoted";
constexpr const char* kPieces = "pieces of batches";

// Device memory has 64 rows. Those of a store on disk are large: few are more than DRAM holds.
constexpr uint64_t kHotRows = 64;
constexpr uint64_t kPayloadBytesInMemory = 1024;
constexpr uint64_t kPayloadBytesOnDisk = 4096;
// DRAM holds some 1,000 of them, and beside PMem 500.
constexpr uint64_t kRows = 1200;
constexpr uint64_t kHotKeys = 48;
constexpr uint64_t kFoundMin = 40;  // of them
constexpr int kRoundsMax = 6;

struct Cell {
  explicit Cell(uint64_t number) {
    const auto draw = [&](const auto& values) {
      const auto value = values[number % values.size()];
      number /= values.size();
      return value;
    };
    tiers = draw(kTiers);
    flush_iters = draw(kFlushIters);
    optimizer = draw(kOptimizers);
    value_type = draw(kTypes);
    threads = draw(kThreads);
  }
  std::string Name() const {
    static constexpr const char* kNames[] = {"memory", "SSD", "PMem and SSD"};
    return "flush " + std::to_string(flush_iters) + ", optimizer " + std::to_string(optimizer) +
           ", type " + std::to_string(value_type) + ", " + kNames[static_cast<int>(tiers)] + ", " +
           std::to_string(threads) + " threads";
  }
  uint32_t Dim() const {
    const uint64_t value = oracle::ValueBytes(value_type);
    const bool two = optimizer == EMBANK_OPT_ADAM || optimizer == EMBANK_OPT_FTRL;
    const uint64_t state = two ? 8 : (optimizer == EMBANK_OPT_ADAGRAD ? 4 : 0);
    return static_cast<uint32_t>((PayloadBytes() - 64) / (value + state));
  }
  uint64_t PayloadBytes() const {
    return tiers == Tiers::kMemory ? kPayloadBytesInMemory : kPayloadBytesOnDisk;
  }

  uint32_t flush_iters;
  int32_t optimizer;
  int32_t value_type;
  Tiers tiers;
  uint32_t threads;
};

// Lists of reads that leave a small store little memory for rows.
RowLogOptions Log() {
  RowLogOptions log = SmallLog();
  log.read_bytes = 1024 * kBlockBytes;
  return log;
}

class CellRun {
 public:
  CellRun(uint64_t seed, Events* events)
      : seed_(seed), cell_((seed - 1) % kCells), events_(events), random_(seed) {}

  // "" or the first difference in words.
  std::string Run() {
    std::string wrong = Open();
    if (wrong.empty()) wrong = Make();
    if (wrong.empty()) wrong = Fill();
    if (wrong.empty()) wrong = Heat(1, 8);
    if (wrong.empty()) wrong = Change(1);
    if (wrong.empty() && on_disk()) wrong = ChangeBesideCheckpoint();
    // Those of one flush interval have each optimizer, type and set of tiers with a log.
    const bool has_pieces = on_disk() && cell_.threads == 2 && cell_.flush_iters == 7;
    if (wrong.empty() && has_pieces) wrong = ChangeInPieces();
    if (wrong.empty()) wrong = Heat(kHotKeys + 101, 16);
    if (wrong.empty()) wrong = Compare(*oracle_);
    if (wrong.empty()) wrong = Count();
    if (wrong.empty() && on_disk()) wrong = Reopen();
    store_.reset();
    return wrong.empty() ? "" : cell_.Name() + ": " + wrong;
  }

 private:
  bool on_disk() const { return cell_.tiers != Tiers::kMemory; }

  std::string Open() {
    embank_store_options options = StoreOptions();
    StoreEnvironment environment;
    options.seed = seed_;
    options.hbm_bytes = kHotRows * cell_.PayloadBytes();
    options.cuda_device = TestDevice();
    options.warmup_iters = 1;
    options.flush_iters = cell_.flush_iters;
    environment.device = MakeLateTwin(seed_);
    environment.executor = std::make_unique<LatchExecutor>(&latch_, cell_.threads);
    if (on_disk()) {
      options.dram_bytes = uint64_t{20} << 20;
      options.path = "store";
      options.flags = EMBANK_OPEN_CREATE;
      environment.files = &disk_;
      environment.log = Log();
    }
    if (cell_.tiers == Tiers::kPmem) {
      options.pmem_path = kPmemPath;
      options.pmem_bytes = kPmemBytes;
      AddSmallPmem(&environment);
    }
    embank_store* store = nullptr;
    const Status opened = OpenStoreIn(&options, std::move(environment), &store);
    store_.reset(store);
    return opened.ok() ? "" : "the store did not open: " + opened.ToString();
  }

  std::string Make() {
    embank_table_options options = TableOptions(cell_.Dim(), cell_.optimizer);
    options.value_type = cell_.value_type;
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_a = -1.0f;
    options.init_b = 1.0f;
    options.learning_rate = 0.1f;
    options.initial_accumulator = 0.25f;
    options.weight_decay = 0.01f;
    oracle_ = std::make_unique<oracle::Table>(seed_, "t", options, &heat_clock_);
    const embank_status made = embank_table_create(store_.get(), "t", &options, &table_);
    return made == EMBANK_OK ? "" : std::string("create: ") + embank_last_error();
  }

  std::string Fill() {
    constexpr uint64_t kBatch = 100;
    std::string wrong;
    for (uint64_t first = 1; first <= kRows && wrong.empty(); first += kBatch) {
      const std::vector<uint64_t> keys = KeyRange(first, kBatch);
      wrong = random_.OneIn(2) ? LookUp(keys) : Upsert(keys);
    }
    return wrong;
  }

  // Looks keys up until they are the hottest and in device memory. In a small DRAM they may leave
  // for the log when their turn comes, and arrive by a later flush.
  std::string Heat(uint64_t first, int lookups) {
    const std::vector<uint64_t> keys = KeyRange(first, kHotKeys);
    for (int round = 0; round < kRoundsMax; ++round) {
      std::string wrong;
      for (int i = 0; i < lookups && wrong.empty(); ++i) wrong = LookUp(keys);
      if (!wrong.empty()) return wrong;
      if (embank_flush_hot(store_.get()) != EMBANK_OK) return embank_last_error();
      const uint64_t hits = TableOfHandle(table_)->counters().payload_lookups;
      wrong = LookUp(keys);
      if (!wrong.empty()) return wrong;
      if (TableOfHandle(table_)->counters().payload_lookups - hits >= kFoundMin) return "";
    }
    return "the hottest rows are not in device memory";
  }

  // Some keys are several times in a batch, and others are not in HBM.
  std::string Change(uint64_t first) {
    std::vector<uint64_t> keys = KeyRange(first, kHotKeys);
    for (uint64_t i = 0; i < kHotKeys; ++i) {
      keys.push_back(first + random_.Below(random_.OneIn(2) ? 3 : 2 * kHotKeys));
    }
    std::string wrong = Step(keys);
    if (wrong.empty()) wrong = Upsert(KeyRange(first + kHotKeys / 2, kHotKeys));
    if (wrong.empty()) wrong = Step(keys);
    return wrong.empty() ? LookUp(keys) : wrong;
  }

  // The flush pass has not begun when the first changes have ended.
  std::string ChangeBesideCheckpoint() {
    saved_ = std::make_unique<oracle::Table>(*oracle_);
    latch_.is_open = false;
    std::string wrong;
    if (embank_checkpoint_start(store_.get(), nullptr, 0) != EMBANK_OK) wrong = embank_last_error();
    if (wrong.empty()) wrong = Change(1);
    latch_.is_open = true;
    uint64_t sequence = 0;
    if (wrong.empty() && embank_checkpoint_finish(store_.get(), &sequence) != EMBANK_OK) {
      wrong = embank_last_error();
    }
    return wrong;
  }

  // Batches whose rows take more than an eighth of memory, some of them in device memory.
  std::string ChangeInPieces() {
    const BatchGate& gate = *TableOfHandle(table_)->store().gate;
    const uint64_t before = gate.pieces_begun();
    std::string wrong = Step(KeyRange(1, kRows));
    if (wrong.empty()) wrong = Upsert(KeyRange(1, kRows / 2 + 100));
    if (wrong.empty()) wrong = LookUp(KeyRange(kRows / 2, kRows));
    const uint64_t pieces = gate.pieces_begun() - before;
    events_->Count(kPieces, pieces);
    return wrong.empty() && pieces < 7 ? std::to_string(pieces) + " pieces" : wrong;
  }

  std::string Reopen() {
    store_.reset();
    heat_clock_ = {};
    std::string wrong = Open();
    if (!wrong.empty()) return wrong;
    if (embank_table_open(store_.get(), "t", &table_) != EMBANK_OK) return embank_last_error();
    wrong = Compare(*saved_);
    return wrong.empty() ? "" : "as of the checkpoint: " + wrong;
  }

  // Each case has to come about in each cell that has its tiers.
  std::string Count() {
    const PayloadCounters& hot = store_->store->payloads()->counters();
    const auto count = [&](const char* name, uint64_t times) {
      events_->Count(name, times);
      return times > 0 ? "" : std::string(name) + ": none";
    };
    std::string wrong = count(kHits, TableOfHandle(table_)->counters().payload_lookups);
    wrong += count(kWrittenBack, hot.written_back_rows);
    if (on_disk()) wrong += count(kPreImages, hot.pre_images);
    if (cell_.tiers == Tiers::kPmem) wrong += count(kDemoted, store_->store->demoted_rows());
    events_->Count(kOperations, operations_);
    events_->Count("top-k flushes", store_->store->topk_flush()->Report().flushes);
    if (operations_ < kOperationsOfCellMin) wrong += std::to_string(operations_) + " operations";
    return wrong;
  }

  std::string Compare(const oracle::Table& oracle) const {
    return on_disk() ? DifferenceButHeat(table_, oracle) : Difference(table_, oracle);
  }

  std::string LookUp(const std::vector<uint64_t>& keys) {
    RowBuffer actual(keys.size(), oracle_->row_bytes());
    RowBuffer expected = actual;
    embank_status status = EMBANK_OK;
    std::string wrong;
    if (DrawsDevice(keys)) {
      DeviceRows rows(store_.get(), actual, keys.size(), oracle_->row_bytes(),
                      oracle::ValueBytes(cell_.value_type), &random_);
      if (random_.OneIn(2)) {
        const embank_feature feature = PlainFeature(table_, keys, rows.data(), rows.stride());
        status = embank_lookup_packed_device(&feature, 1, EMBANK_MISSING_CREATE, nullptr, nullptr);
      } else {
        status = embank_lookup_device(table_, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                                      rows.data(), rows.stride(), nullptr, nullptr);
      }
      wrong = rows.CopyTo(&actual);
    } else {
      status = embank_lookup(table_, keys.data(), keys.size(), EMBANK_MISSING_CREATE, actual.data(),
                             0, nullptr);
    }
    oracle_->Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, expected.data(), 0, nullptr);
    if (status != EMBANK_OK) return std::string("lookup: ") + embank_last_error();
    FollowEpochs();
    return actual == expected ? wrong : "a lookup gave other rows";
  }

  std::string Upsert(const std::vector<uint64_t>& keys) {
    RowBuffer rows(keys.size(), oracle_->row_bytes());
    const uint64_t value_bytes = oracle::ValueBytes(cell_.value_type);
    for (uint64_t i = 0; i < keys.size(); ++i) {
      for (uint64_t j = 0; j < cell_.Dim(); ++j) {
        oracle::StoreValue(random_.Signed(), cell_.value_type, rows.row(i) + j * value_bytes);
      }
    }
    embank_status status = EMBANK_OK;
    if (DrawsDevice(keys)) {
      const DeviceRows from(store_.get(), rows, keys.size(), oracle_->row_bytes(), value_bytes,
                            &random_);
      status = embank_upsert_device(table_, keys.data(), keys.size(), from.data(), from.stride(),
                                    nullptr, nullptr);
    } else {
      status = embank_upsert(table_, keys.data(), keys.size(), rows.data(), 0, nullptr);
    }
    oracle_->Upsert(keys.data(), keys.size(), rows.data(), 0, nullptr);
    return status == EMBANK_OK ? "" : std::string("upsert: ") + embank_last_error();
  }

  std::string Step(const std::vector<uint64_t>& keys) {
    const uint64_t row_bytes = cell_.Dim() * sizeof(float);
    RowBuffer gradients(keys.size(), row_bytes);
    for (uint64_t i = 0; i < keys.size(); ++i) {
      for (uint64_t j = 0; j < cell_.Dim(); ++j) gradients.SetFloat(i, j, random_.Signed());
    }
    embank_status status = EMBANK_OK;
    if (DrawsDevice(keys)) {
      const DeviceRows from(store_.get(), gradients, keys.size(), row_bytes, sizeof(float),
                            &random_);
      if (random_.OneIn(2)) {
        const embank_feature feature = PlainFeature(table_, keys, from.data(), from.stride());
        status = embank_apply_gradients_packed_device(&feature, 1, nullptr, nullptr);
      } else {
        status = embank_apply_gradients_device(table_, keys.data(), keys.size(), from.floats(),
                                               from.stride(), nullptr, nullptr);
      }
    } else {
      status =
          embank_apply_gradients(table_, keys.data(), keys.size(), gradients.floats(), 0, nullptr);
    }
    oracle_->ApplyGradients(keys.data(), keys.size(), gradients.floats(), 0, nullptr);
    return status == EMBANK_OK ? "" : std::string("gradients: ") + embank_last_error();
  }

  // Whether the rows of a call are in device memory. Counts its operations.
  bool DrawsDevice(const std::vector<uint64_t>& keys) {
    operations_ += keys.size();
    return random_.OneIn(3);
  }

  // Flushes run beside the calls, so hits and early epochs are not the same in each run.
  void FollowEpochs() {
    const uint64_t epochs = TableOfHandle(table_)->store().heat_clock->epochs();
    if (epochs > heat_clock_.epoch) heat_clock_ = {.epoch = epochs, .rows = heat_clock_.rows};
  }

  const uint64_t seed_;
  const Cell cell_;
  Events* const events_;
  Random random_;
  Latch latch_;
  SimulatedDisk disk_;
  StorePtr store_;
  embank_table* table_ = nullptr;
  oracle::HeatClock heat_clock_;
  std::unique_ptr<oracle::Table> oracle_;
  std::unique_ptr<oracle::Table> saved_;  // as of the checkpoint
  uint64_t operations_ = 0;
};

TEST(HbmMatrix, HasTheBitsOfTheOracleInEachCell) {
  Events events;
  for (const char* const name : {kHits, kWrittenBack, kPreImages, kDemoted, kPieces}) {
    events.Expect(name);
  }
  const bool are_all =
      RunSeeds("hbm_matrix_test", kCells, &events, [](uint64_t seed, Events* some) {
        some->Count("cells");
        return CellRun(seed, some).Run();
      });
  std::fputs(events.Table().c_str(), stdout);
  if (!are_all) return;
  EXPECT_EQ(events.Times("cells"), kCells);
  EXPECT_GE(events.Times(kOperations), kOperationsMin);
  EXPECT_EQ(events.Missing(), "") << "these never happened";
}

}  // namespace
}  // namespace embank::test::hbm_matrix_test
