// A store that is opened, changed and closed again and again, with the default options: its files
// stay near the size of the rows that its checkpoints have, and what an export copies near that of
// the rows in segments that are not finished.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/checkpoint/manifest.h"
#include "store/store.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/random.h"
#include "tests/support/segment_count.h"
#include "tests/support/simulated_disk.h"
#include "tests/support/store_files.h"
#include "tests/support/store_world.h"

namespace embank::test::restarts_test {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// The records that manifests in a directory name.
struct Kept {
  uint64_t live_bytes = 0;        // each record once, whichever has it
  uint64_t unfinished_bytes = 0;  // of the newest one, in segments without a footer
  std::set<uint32_t> classes = {};
};

Kept KeptIn(const SimulatedDisk& disk, const std::string& directory) {
  Kept kept;
  std::map<uint64_t, std::set<uint32_t>> slots;
  for (const std::string& path : disk.Files()) {
    if (!path.starts_with(directory + "/MANIFEST-")) continue;
    const StatusOr<Manifest> manifest = DecodeManifest(disk.Contents(path));
    EXPECT_TRUE(manifest.ok()) << manifest.status();
    if (!manifest.ok()) continue;
    kept.unfinished_bytes = 0;
    for (const SegmentRows& rows : manifest->segments) {
      kept.classes.insert(rows.header.row_class);
      for (uint32_t slot = 0; slot < rows.used_slots; ++slot) {
        if ((rows.bits[slot / 64] >> (slot % 64) & 1) == 0) continue;
        const bool is_new = slots[rows.header.segment_id].insert(slot).second;
        kept.live_bytes += is_new ? rows.header.record_bytes : 0;
        kept.unfinished_bytes += rows.keys.empty() ? 0 : rows.header.record_bytes;
      }
    }
  }
  return kept;
}

class Restarts : public testing::Test {
 protected:
  ~Restarts() override {
    Close();
    EXPECT_EQ(memory_.outstanding(), 0u);
  }

  void Close() {
    store_.reset();
    disk_->ClearHistory();
  }
  // As if the process had been killed, and the system not.
  void Kill() {
    auto after = disk_->AfterCrash(disk_->changes(), Persistence::kAll, 1);
    store_.reset();
    disk_ = std::move(after);
  }
  void Open(bool previous = false, const std::string& path = "log") {
    Close();
    StoreOptions options;
    options.path = path;
    options.previous = previous;
    StoreEnvironment environment = {.memory = &memory_,
                                    .clock = &clock_,
                                    .executor = std::make_unique<SimulatedExecutor>(7),
                                    .files = disk_.get(),
                                    .log = log_};
    if (WithPmem()) {
      options.pmem_path = PmemPathOf(path);
      options.pmem_bytes = 64 * kMiB;
      environment.pmem_files = disk_.get();
      disk_->CreateDirectory(options.pmem_path).IgnoreError();
    }
    auto store = Store::Open(options, std::move(environment));
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  // The table with rows of so many values, which is made if it is not there.
  Table* TableOf(uint32_t dim) {
    const std::string name = "t" + std::to_string(dim);
    if (auto opened = store_->catalog().Open(name); opened.ok()) return *opened;
    const auto made = store_->CreateTable(name, OptionsOf(dim));
    EXPECT_TRUE(made.ok()) << made.status();
    return *made;
  }
  // The numbers of the segments in which the newest checkpoint has rows of `dim` values.
  std::set<uint64_t> SegmentsOf(uint32_t dim) {
    const uint32_t record_bytes = TableOf(dim)->mover()->rows().record_bytes();
    std::set<uint64_t> segments;
    for (const std::string& path : disk_->Files()) {
      if (!path.starts_with("log/MANIFEST-")) continue;
      segments.clear();
      const StatusOr<Manifest> manifest = DecodeManifest(disk_->Contents(path));
      EXPECT_TRUE(manifest.ok()) << manifest.status();
      if (!manifest.ok()) continue;
      for (const SegmentRows& rows : manifest->segments) {
        if (rows.header.record_bytes == record_bytes) segments.insert(rows.header.segment_id);
      }
    }
    return segments;
  }
  void Put(uint32_t dim, const std::vector<Key>& keys, float value) {
    const std::vector<float> values(keys.size() * dim, value);
    const Status put = Upsert(TableOf(dim), keys, RowsOf(values, dim), {});
    ASSERT_TRUE(put.ok()) << put;
    for (const Key key : keys) rows_[dim][key] = value;
  }
  void Checkpoint() {
    const auto made = store_->checkpoints()->Make({});
    ASSERT_TRUE(made.ok()) << made.status();
    durable_ = rows_;
  }
  void ExpectRows(Store* store, const std::map<uint32_t, std::map<Key, float>>& expected) {
    for (const auto& [dim, rows] : expected) {
      Table* const table = *store->catalog().Open("t" + std::to_string(dim));
      ASSERT_EQ(table->rows(), rows.size());
      for (const auto& [key, value] : rows) {
        std::vector<float> row(dim);
        ASSERT_TRUE(Lookup(table, {&key, 1}, MissingRule::kZero, RowsIn(&row, dim), {}).ok());
        ASSERT_EQ(row, std::vector<float>(dim, value)) << dim << " " << key;
      }
    }
  }

  // Behind a checkpoint, or a restart.
  void ExpectSmall() {
    uint64_t taken_bytes = 0;
    uint64_t length_bytes = 0;
    for (const auto& [path, contents] : FilesOfStore(*disk_)) {
      taken_bytes += disk_->TakenBytes(path);
      length_bytes += contents.size();
    }
    const Kept kept = KeptIn(*disk_, "log");
    const uint64_t most_bytes = 2 * kept.live_bytes + 4 * kMiB * kept.classes.size();
    ASSERT_LE(taken_bytes, most_bytes) << "live: " << kept.live_bytes;
    const auto of_most = [&](uint64_t bytes) {
      return static_cast<double>(bytes) / static_cast<double>(most_bytes);
    };
    largest_ = std::max(largest_, of_most(taken_bytes));
    longest_ = std::max(longest_, of_most(length_bytes));
    ASSERT_LE(length_bytes, most_bytes) << "a copy may fill holes; live: " << kept.live_bytes;
  }
  // Exports the last checkpoint, opens the export, and removes it.
  void ExpectSmallExport() {
    ASSERT_TRUE(
        store_->checkpoints()->Export("copy", [](uint64_t, uint64_t) { return true; }).ok());
    const Kept kept = KeptIn(*disk_, "log");
    uint64_t copied_bytes = 0;
    for (const std::string& path : disk_->Files()) {
      if (path.starts_with("copy/") && disk_->NamesOf(path) == 1) {
        copied_bytes += disk_->TakenBytes(path);
      }
    }
    const uint64_t unfinished = WithPmem() ? 2 * kept.live_bytes : kept.unfinished_bytes;
    EXPECT_LE(copied_bytes, unfinished * 12 / 10 + kMiB * kept.classes.size());
    ASSERT_NO_FATAL_FAILURE(Open(false, "copy"));
    ASSERT_NO_FATAL_FAILURE(ExpectRows(store_.get(), durable_));
    Close();
    for (const std::string& path : disk_->Files()) {
      if (path.starts_with("copy/") || path.starts_with(PmemPathOf("copy") + "/")) {
        ASSERT_TRUE(disk_->Remove(path).ok());
      }
    }
  }
  void Print() const {
    std::printf("  of the most that files may take: %.2f; their lengths: %.2f\n", largest_,
                longest_);
  }

  std::unique_ptr<SimulatedDisk> disk_ = std::make_unique<SimulatedDisk>();
  FailingMemory memory_;
  ManualClock clock_{1000};
  std::optional<RowLogOptions> log_;  // the sizes of its parts, if they are not the default ones
  std::unique_ptr<Store> store_;
  std::map<uint32_t, std::map<Key, float>> rows_;
  std::map<uint32_t, std::map<Key, float>> durable_;
  double largest_ = 0;
  double longest_ = 0;
};

// These count bytes; the suites of exports, compaction and checkpoints have the same code.
#if defined(__SANITIZE_ADDRESS__)
constexpr Key kNightsOfOneRow = 20;
constexpr int kRounds = 20;
#else
constexpr Key kNightsOfOneRow = 120;
constexpr int kRounds = 60;
#endif

TEST_F(Restarts, FortyWithAThousandNewRowsEach) {
  for (Key night = 0; night < 40; ++night) {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(night * 1000, 1000), static_cast<float>(night)));
    ASSERT_NO_FATAL_FAILURE(Checkpoint());
    Close();
    ASSERT_NO_FATAL_FAILURE(ExpectSmall()) << night;
  }
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectRows(store_.get(), durable_));
  Put(16, KeysFrom(7, 1000), -1.0f);
  ASSERT_NO_FATAL_FAILURE(Checkpoint());
  ASSERT_NO_FATAL_FAILURE(ExpectSmallExport());
  Print();
}

// A debt of so few rows is never paid while the store is open.
TEST_F(Restarts, ManyWithOneRowEach) {
  for (Key night = 0; night < kNightsOfOneRow; ++night) {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(night, 1), static_cast<float>(night)));
    ASSERT_NO_FATAL_FAILURE(Checkpoint());
    Close();
    ASSERT_NO_FATAL_FAILURE(ExpectSmall()) << night;
  }
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectRows(store_.get(), durable_));
  Print();
}

// All rows live, in segments that take little more than their records.
TEST_F(Restarts, ThatOnlyAddRowsLeavePlacesForSegments) {
  log_.emplace().segments_max = 64;
  constexpr Key kNights = 100;
  constexpr Key kRows = 1000;  // 94 KiB of records
  // The only small one of its class has no partner.
  std::set<uint64_t> lone;
  for (Key night = 0; night < kNights; ++night) {
    ASSERT_NO_FATAL_FAILURE(Open());
    ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(night * kRows, kRows), static_cast<float>(night)));
    if (night == 0) {
      ASSERT_NO_FATAL_FAILURE(Put(8, KeysFrom(0, 100), 0.0f));
    }
    ASSERT_NO_FATAL_FAILURE(Checkpoint()) << night;
    if (night == 0) lone = SegmentsOf(8);
    ASSERT_LT(SegmentCount(store_->logs()->lowest().segments()), 56u) << night;
  }
  EXPECT_FALSE(lone.empty());
  // In PMem it takes all of its space, and is moved for that.
  if (!WithPmem()) {
    EXPECT_EQ(SegmentsOf(8), lone);
  }
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(ExpectRows(store_.get(), durable_));
}

TEST_F(Restarts, WithEightSizesOfRowsThatAreWrittenAgain) {
  for (int round = 0; round < 10; ++round) {
    ASSERT_NO_FATAL_FAILURE(Open());
    for (uint32_t dim = 1; dim <= 128; dim *= 2) {
      ASSERT_NO_FATAL_FAILURE(Put(dim, KeysFrom(0, 1000), static_cast<float>(round)));
    }
    ASSERT_NO_FATAL_FAILURE(Checkpoint());
    if (round % 3 == 2) {
      ASSERT_NO_FATAL_FAILURE(ExpectSmallExport());
    }
    Close();
    ASSERT_NO_FATAL_FAILURE(ExpectSmall()) << round;
  }
  Print();
}

// A long session, then short ones: drawn rows change, and some checkpoints find a killed store.
TEST_F(Restarts, AndCrashesWithRowsThatAreOverwritten) {
  Random random(5);
  constexpr Key kKeys = 30'000;
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(0, kKeys), 0.0f));
  for (int round = 1; round <= kRounds; ++round) {
    std::vector<Key> keys;
    const Key changed = random.OneIn(2) ? kKeys / 50 : kKeys / 3;
    for (Key key = 0; key < kKeys; ++key) {
      if (random.Below(kKeys) < changed) keys.push_back(key);
    }
    ASSERT_NO_FATAL_FAILURE(Put(16, keys, static_cast<float>(round)));
    ASSERT_NO_FATAL_FAILURE(Checkpoint());
    disk_->ClearHistory();
    if (round < kRounds / 2) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectSmall()) << round;
    if (random.OneIn(2)) {
      ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(5, 500), -1.0f));
      Kill();
      rows_ = durable_;
    }
    ASSERT_NO_FATAL_FAILURE(Open());
  }
  ASSERT_NO_FATAL_FAILURE(ExpectRows(store_.get(), durable_));
  Print();
}

TEST_F(Restarts, FromThePreviousCheckpointLeaveTheOtherWhole) {
  std::map<uint32_t, std::map<Key, float>> before;
  for (Key night = 0; night < 20; ++night) {
    const bool goes_back = night % 3 == 2;
    ASSERT_NO_FATAL_FAILURE(Open(goes_back));
    if (goes_back) rows_ = before;
    ASSERT_NO_FATAL_FAILURE(ExpectRows(store_.get(), rows_)) << night;
    before = rows_;
    ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(night * 500, 1000), static_cast<float>(night)));
    ASSERT_NO_FATAL_FAILURE(Checkpoint());
    Close();
    ASSERT_NO_FATAL_FAILURE(ExpectSmall()) << night;
  }
  Print();
}

// Its record is copied to another slot, for which a checksum is computed.
TEST_F(Restarts, ADamagedRowIsDamagedInAnExport) {
  ASSERT_NO_FATAL_FAILURE(Open());
  ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(0, 1000), 1.0f));
  ASSERT_NO_FATAL_FAILURE(Put(16, KeysFrom(0, 10), 2.0f));
  ASSERT_NO_FATAL_FAILURE(Checkpoint());
  const std::vector<std::string> paths = SegmentPathsOf(*disk_, 1);
  ASSERT_EQ(paths.size(), 1u);
  FlipBits(disk_.get(), paths[0], kBlockBytes + 500 * RecordBytesOf(16 + 64) + 40, 4);
  ASSERT_TRUE(store_->checkpoints()->Export("copy", [](uint64_t, uint64_t) { return true; }).ok());
  ASSERT_NO_FATAL_FAILURE(Open(false, "copy"));
  std::vector<float> rows(1000 * 16);
  std::vector<uint8_t> outcomes(1000);
  const Status found =
      Lookup(TableOf(16), KeysFrom(0, 1000), MissingRule::kZero, RowsIn(&rows, 16), outcomes);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kDataLoss)),
            1)
      << found;
}

}  // namespace
}  // namespace embank::test::restarts_test
