// A log always has space for one checkpoint: a change that would use this space is refused, by
// name, and a checkpoint frees the space of older ones. EMBANK_TEST_SCALE: more seeds.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/store.h"
#include "tests/support/dirty_rows.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/hooked_executor.h"
#include "tests/support/random.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::checkpoint_space_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeeds = 60;
constexpr int kRounds = 2;
#else
constexpr uint64_t kSeeds = 200;
constexpr int kRounds = 8;
#endif

constexpr uint64_t kSegmentBytes = 64 * kBlockBytes;

bool Has(const Status& status, const char* text) {
  return status.message().find(text) != std::string_view::npos;
}

void ExpectCounted(Store* store) {
  ASSERT_EQ(ReportMemory(*store).logs[Tier::kSsd]->dirty_bytes, DirtyRowsOf(store).bytes);
  ASSERT_NO_FATAL_FAILURE(ExpectDirtyBits(store));
}

// A table of some dim, and its expected contents: rows of one number each.
class RowsOfTable {
 public:
  RowsOfTable(Table* table, uint32_t dim) : name_(table->name()), table_(table), dim_(dim) {}

  const Rows& rows() const { return rows_; }
  uint64_t record_bytes() const { return RecordBytesOf(table_->layout().row_bytes); }
  // In a store that was opened again.
  void Follow(Store* store) { table_ = *store->catalog().Open(name_); }

  // Checks that rows which were refused stay as they were, and counts them.
  uint64_t Put(const std::vector<Key>& keys, float value) {
    const std::vector<float> values(keys.size() * dim_, value);
    std::vector<uint8_t> outcomes(keys.size());
    const Status status = Upsert(table_, keys, RowsOf(values, dim_), outcomes);
    EXPECT_TRUE(status.ok()) << status;
    return Note(keys, outcomes, [&](Key key) { rows_[key] = value; });
  }
  uint64_t Step(const std::vector<Key>& keys) {
    const std::vector<float> ones(keys.size() * dim_, 1.0f);
    std::vector<uint8_t> outcomes(keys.size());
    const Status status = ApplyGradients(table_, keys, RowsOf(ones, dim_), outcomes);
    EXPECT_TRUE(status.ok()) << status;
    return Note(keys, outcomes, [&](Key key) { rows_.at(key) -= 1.0f; });
  }
  uint64_t LookUpOrCreate(const std::vector<Key>& keys) {
    std::vector<float> values(keys.size() * dim_);
    std::vector<uint8_t> outcomes(keys.size());
    const Status status =
        Lookup(table_, keys, MissingRule::kCreate, RowsIn(&values, dim_), outcomes);
    EXPECT_TRUE(status.ok()) << status;
    return Note(keys, outcomes, [&](Key key) { rows_.emplace(key, 5.0f); });
  }
  void EraseSome(const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Erase(table_, keys, outcomes).ok());
    ASSERT_EQ(Note(keys, outcomes, [&](Key key) { rows_.erase(key); }), 0u) << "never refused";
  }
  Status PutAll(float value) {
    std::vector<Key> keys;
    for (const auto& [key, old] : rows_) keys.push_back(key);
    const std::vector<float> values(keys.size() * dim_, value);
    return Upsert(table_, keys, RowsOf(values, dim_), {});
  }
  // Rows that may have got `value` meanwhile; a row is one of both, whole.
  void ReadAgain(float value) {
    for (auto& [key, old] : rows_) {
      std::vector<float> row(dim_);
      const RowSpan out = RowsIn(&row, dim_);
      EXPECT_TRUE(Lookup(table_, {&key, 1}, MissingRule::kSkip, out, {}).ok());
      EXPECT_TRUE(row == std::vector<float>(dim_, old) || row == std::vector<float>(dim_, value));
      old = row[0];
    }
  }
  void ExpectAll() const {
    std::vector<Key> keys;
    std::vector<float> expected;
    for (const auto& [key, value] : rows_) {
      keys.push_back(key);
      expected.insert(expected.end(), dim_, value);
    }
    std::vector<float> found(expected.size(), -1.0f);
    const Status status = Lookup(table_, keys, MissingRule::kSkip, RowsIn(&found, dim_), {});
    ASSERT_TRUE(status.ok()) << status;
    ASSERT_TRUE(found == expected);
    ASSERT_EQ(table_->rows(), rows_.size());
  }

 private:
  template <typename Done>
  static uint64_t Note(const std::vector<Key>& keys, const std::vector<uint8_t>& outcomes,
                       Done done) {
    uint64_t refused = 0;
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto outcome = static_cast<Outcome>(outcomes[i]);
      if (outcome == Outcome::kFound || outcome == Outcome::kCreated) done(keys[i]);
      if (outcome == Outcome::kRefused) ++refused;
      EXPECT_NE(outcome, Outcome::kDataLoss) << keys[i];
    }
    return refused;
  }

  std::string name_;
  Table* table_;
  uint32_t dim_;
  Rows rows_;
};

// ---- the whole of it, at sizes that a caller would choose ----

TEST(CheckpointSpaceTest, EverythingIsOverwrittenThreeTimesBetweenTwoCheckpoints) {
  constexpr Key kKeys = 4000;  // half of them does not fit into memory
  const uint64_t ssd_bytes = kKeys * RecordBytesOf(kDim * sizeof(float) + 16) * 5 / 2;
  SpillWorld world(1, nullptr, ssd_bytes);
  world.disk().SetCapacity(ssd_bytes);
  RowsOfTable rows(world.Create("t", Optimizer::kSgd), kDim);
  const auto put_all = [&](float value) {
    uint64_t refused = 0;
    for (Key first = 0; first < kKeys; first += 250)
      refused += rows.Put(KeysFrom(first, 250), value);
    return refused;
  };
  ASSERT_EQ(put_all(1.0f), 0u);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const Tables first = {{"t", rows.rows()}};
  for (const float value : {2.0f, 3.0f, 4.0f}) {
    ASSERT_EQ(put_all(value), 0u);
    ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
    ASSERT_NO_FATAL_FAILURE(ExpectCounted(world.get()));
  }
  for (const Persistence persistence :
       {Persistence::kNone, Persistence::kAll, Persistence::kTorn}) {
    SpillWorld again(1, world.disk().AfterCrash(world.disk().changes(), persistence, 7), nullptr,
                     ssd_bytes);
    ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), first));
  }
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), {{"t", rows.rows()}});
}

// ---- a log that is too small ----

// Overwrites random rows until a change is refused.
void FillUntilRefused(std::vector<RowsOfTable>* tables, Random* random) {
  uint64_t refused = 0;
  for (int batches = 0; batches < 400 && refused == 0; ++batches) {
    RowsOfTable& rows = (*tables)[random->Below(tables->size())];
    refused = rows.Put(KeysFrom(random->Below(800), 100), static_cast<float>(batches));
  }
  ASSERT_GT(refused, 0u);
}

// Checkpoints until changes of the largest rows go on; how many.
int FreeByCheckpoints(SpillWorld* world, RowsOfTable* rows, float value) {
  constexpr int kCheckpointsMax = 4;
  const std::vector<Key> keys = KeysFrom(0, 20);
  for (int checkpoints = 1; checkpoints <= kCheckpointsMax; ++checkpoints) {
    const auto made = (*world)->checkpoints()->Make({});
    EXPECT_TRUE(made.ok()) << made.status();
    if (rows->Put(keys, value) == 0) return checkpoints;
  }
  ADD_FAILURE() << "checkpoints give no space back";
  return kCheckpointsMax;
}

TEST(CheckpointSpaceTest, ASmallLogRefusesByNameAndCheckpointsFreeIt) {
  const uint64_t ssd_bytes = 38 * kSegmentBytes;  // of rows that take 19
  SpillWorld world(2, nullptr, ssd_bytes);
  world.disk().SetCapacity(ssd_bytes);
  Random random(2);
  std::vector<RowsOfTable> tables;
  for (const uint32_t dim : {1024u, 256u, 17u, 4u}) {
    tables.emplace_back(world.Create(std::to_string(dim), Optimizer::kSgd, dim), dim);
    for (Key first = 0; first < 900; first += 100) {
      ASSERT_EQ(tables.back().Put(KeysFrom(first, 100), 1.0f), 0u);
    }
  }
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  int checkpoints_max = 0;
  for (int round = 0; round < 4 * kRounds; ++round) {
    ASSERT_NO_FATAL_FAILURE(FillUntilRefused(&tables, &random)) << round;
    // The largest rows: a log without space for them may have some for others.
    RowsOfTable& first = tables.front();
    const Status status = first.PutAll(0.5f);
    ASSERT_EQ(status.code(), StatusCode::kResourceExhausted) << status;
    EXPECT_TRUE(Has(status, "embank_checkpoint") && Has(status, "ssd_bytes")) << status;
    // Nobody asked which were done.
    first.ReadAgain(0.5f);
    for (const RowsOfTable& rows : tables) ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
    ASSERT_NO_FATAL_FAILURE(ExpectCounted(world.get()));
    const auto value = static_cast<float>(1000 + round);
    checkpoints_max = std::max(checkpoints_max, FreeByCheckpoints(&world, &first, value));
    ASSERT_FALSE(HasFailure()) << round;
    for (const RowsOfTable& rows : tables) ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
  }
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world.Open().ok());
  for (RowsOfTable& rows : tables) {
    rows.Follow(world.get());
    ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
  }
  std::printf("  at most %d checkpoints until changes go on\n", checkpoints_max);
}

// A log of rows that a checkpoint has, and as many changed ones as it has space for: a checkpoint
// makes no space for more, the one behind it does.
struct FullLog {
  explicit FullLog(std::unique_ptr<Executor> executor)
      : world(4, std::move(executor), 26 * kSegmentBytes),
        rows(world.Create("t", Optimizer::kSgd, kDim), kDim) {
    for (Key first = 0; first < 900; first += 100) rows.Put(KeysFrom(first, 100), 1.0f);
    EXPECT_TRUE(world->checkpoints()->Make({}).ok());
    uint64_t refused = 0;
    for (Key first = 0; first < 800; first += 100) refused += rows.Put(KeysFrom(first, 100), 2.0f);
    EXPECT_GT(refused, 0u);
    EXPECT_GT(PutMore(), 0u);
    EXPECT_TRUE(world->checkpoints()->Make({}).ok());
    EXPECT_GT(PutMore(), 0u);
  }
  uint64_t PutMore() { return rows.Put(KeysFrom(850, 50), 3.0f); }

  SpillWorld world;
  RowsOfTable rows;
};

TEST(CheckpointSpaceTest, ChangesWaitForACheckpointThatIsUnderWay) {
  std::function<void()> hook;
  FullLog full(std::make_unique<HookedExecutor>(4, &hook));
  std::atomic<bool> begun{false};
  std::atomic<bool> done{false};
  uint64_t refused = 0;
  std::thread writer;
  hook = [&] {
    if (!writer.joinable()) {
      writer = std::thread([&] {
        begun = true;
        refused = full.PutMore();
        done = true;
      });
    }
    while (!begun) std::this_thread::yield();
    // One that does not wait is refused meanwhile.
    for (int i = 0; i < 1000 && !done; ++i) std::this_thread::yield();
  };
  const auto made = full.world->checkpoints()->Make({});
  writer.join();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(refused, 0u);
  ASSERT_NO_FATAL_FAILURE(full.rows.ExpectAll());
}

// A flush pass that would rest for an hour goes on as soon as a batch waits for its end.
TEST(CheckpointSpaceTest, ChangesThatWaitForACheckpointHurryIt) {
  constexpr uint64_t kHourNs = uint64_t{3600} * 1'000'000'000;
  std::function<void()> hook;
  FullLog full(std::make_unique<HookedExecutor>(4, &hook));
  FlushPace* const pace = (*full.world->catalog().Open("t"))->store().gate->pace();
  uint64_t refused = 0;
  std::thread writer;
  hook = [&] {
    if (!writer.joinable()) writer = std::thread([&] { refused = full.PutMore(); });
    pace->Rest(kHourNs);
  };
  const auto made = full.world->checkpoints()->Make({});
  writer.join();
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(refused, 0u);
  ASSERT_NO_FATAL_FAILURE(full.rows.ExpectAll());
}

// A change on the thread that makes a checkpoint cannot wait for its end.
TEST(CheckpointSpaceTest, ChangesByTheThreadThatMakesACheckpointAreRefusedAtOnce) {
  std::function<void()> hook;
  FullLog full(std::make_unique<HookedExecutor>(4, &hook));
  uint64_t refused = 0;
  hook = [&] { refused += full.PutMore(); };
  ASSERT_TRUE(full.world->checkpoints()->Make({}).ok());
  hook = nullptr;
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(full.PutMore(), 0u);
}

// ---- whatever was done before ----

// Makes random calls on a store with a random log, and checkpoints, none of which may fail.
class SpaceRun {
 public:
  SpaceRun(uint64_t seed, Events* events)
      : random_(seed),
        events_(events),
        ssd_bytes_(random_.Between(5, 45) * kSegmentBytes + random_.Below(kSegmentBytes)),
        world_(seed, std::make_unique<HookedExecutor>(seed, &hook_), ssd_bytes_) {
    world_.disk().SetCapacity(ssd_bytes_);
    AddTable();
  }

  void Run() {
    for (int step = 0; step < 40; ++step) {
      ASSERT_NO_FATAL_FAILURE(DoSomething());
      if (step % 8 != 0) continue;
      ASSERT_NO_FATAL_FAILURE(ExpectCounted(world_.get()));
    }
    ASSERT_NO_FATAL_FAILURE(MakeCheckpoint());
    ASSERT_NO_FATAL_FAILURE(ExpectCounted(world_.get()));
    for (const auto& [name, rows] : tables_) ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
    ASSERT_NO_FATAL_FAILURE(Reopen());
    for (const auto& [name, rows] : tables_) ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
  }

 private:
  void DoSomething() {
    switch (random_.Below(10)) {
      case 0:
        return random_.OneIn(3) ? AddTable() : MakeCheckpoint();
      case 1:
        return random_.OneIn(3) ? DropTable() : MakeCheckpoint();
      case 2:
        return random_.OneIn(3) ? Reopen() : ChangeSome();
      default:
        return ChangeSome();
    }
  }

  void AddTable() {
    const uint32_t dims[] = {1, 4, 17, 64, 256, 1024};
    const std::string name = "t" + std::to_string(next_name_++);
    TableOptions options = OptionsOf(dims[random_.Below(6)], Optimizer::kSgd);
    options.rule.learning_rate = 1.0f;
    options.initializer = {InitializerKind::kConstant, 5.0f, 0.0f};
    const auto table = world_->CreateTable(name, options);
    if (table.ok()) {
      tables_.emplace(name, RowsOfTable(*table, options.dim));
    } else {
      ASSERT_TRUE(IsResourceExhausted(table.status())) << table.status();
      events_->Count("table refused");
    }
  }

  void DropTable() {
    if (tables_.size() < 2) return;
    const auto dropped = std::next(tables_.begin(), random_.Below(tables_.size()));
    ASSERT_TRUE(world_->DropTable(dropped->first).ok());
    tables_.erase(dropped);
    events_->Count("table dropped");
  }

  void ChangeSome() {
    RowsOfTable& rows = std::next(tables_.begin(), random_.Below(tables_.size()))->second;
    const Key keys_max = std::min<Key>(4000, ssd_bytes_ / rows.record_bytes());
    const auto count = static_cast<size_t>(random_.Between(1, std::min<Key>(250, keys_max)));
    const std::vector<Key> keys = KeysFrom(random_.Below(keys_max), count);
    uint64_t refused = 0;
    switch (random_.Below(8)) {
      case 0:
        return rows.EraseSome(keys);
      case 1:
        refused = rows.LookUpOrCreate(keys);
        break;
      case 2:
      case 3:
        refused = rows.Step(keys);
        break;
      default:
        refused = rows.Put(keys, static_cast<float>(random_.Between(1, 1000)));
        break;
    }
    events_->Count(refused > 0 ? "refused" : "done");
  }

  // With changes before some shards of its flush pass, and while its manifest is written.
  void MakeCheckpoint() {
    kept_.clear();
    for (const auto& [name, rows] : tables_) kept_.emplace(name, rows);
    const auto changes = [&] {
      if (!random_.OneIn(16)) return;
      ChangeSome();
      events_->Count("changed beside a flush pass");
    };
    if (random_.OneIn(2)) hook_ = changes;
    const std::vector<std::byte> blob(random_.Below(1000));
    const auto made = world_->checkpoints()->Make(blob);
    hook_ = nullptr;
    ASSERT_TRUE(made.ok()) << made.status();
    events_->Count("checkpoint");
    world_.disk().ClearHistory();
  }

  void Reopen() {
    const auto opened = world_.Open(false, std::make_unique<HookedExecutor>(1, &hook_));
    ASSERT_TRUE(opened.ok()) << opened;
    tables_ = kept_;
    for (auto& [name, rows] : tables_) rows.Follow(world_.get());
    if (tables_.empty()) AddTable();
    events_->Count("opened again");
  }

  Random random_;
  Events* const events_;
  const uint64_t ssd_bytes_;
  std::function<void()> hook_;
  SpillWorld world_;
  std::map<std::string, RowsOfTable> tables_;
  std::map<std::string, RowsOfTable> kept_;  // of the last checkpoint
  int next_name_ = 0;
};

TEST(CheckpointSpaceTest, NoCheckpointFailsForWantOfSpaceWhateverWasDoneBefore) {
  Events events;
  for (const char* const name : {"refused", "done", "changed beside a flush pass", "checkpoint",
                                 "opened again", "table dropped"}) {
    events.Expect(name);
  }
  for (uint64_t i = 0; i < kSeeds * TestScale(); ++i) {
    const uint64_t seed = FirstSeed() + i;
    SCOPED_TRACE(seed);
    SpaceRun run(seed, &events);
    ASSERT_NO_FATAL_FAILURE(run.Run());
  }
  EXPECT_EQ(events.Missing(), "");
  std::printf("%s", events.Table().c_str());
}

// ---- threads ----

TEST(CheckpointSpaceTest, HoldsBesideWritersAndReaders) {
  const uint64_t ssd_bytes = 40 * kSegmentBytes;
  SpillWorld world(3, MakeThreadPool(2), ssd_bytes);
  world.disk().SetCapacity(ssd_bytes);
  std::vector<RowsOfTable> tables;
  for (const uint32_t dim : {1024u, 64u, 256u}) {
    tables.emplace_back(world.Create(std::to_string(dim), Optimizer::kSgd, dim), dim);
  }
  std::atomic<uint64_t> writers{tables.size()};
  std::atomic<uint64_t> refused{0};
  std::vector<std::thread> threads;
  for (size_t t = 0; t < tables.size(); ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      for (int batch = 0; batch < 25 * kRounds; ++batch) {
        const std::vector<Key> keys = KeysFrom(random.Below(900), random.Between(1, 100));
        refused += random.OneIn(3) ? tables[t].Step(keys)
                                   : tables[t].Put(keys, static_cast<float>(random.Below(1000)));
      }
      --writers;
    });
  }
  uint64_t checkpoints = 0;
  while (writers > 0) {
    const auto made = world->checkpoints()->Make({});
    EXPECT_TRUE(made.ok()) << made.status();
    ++checkpoints;
  }
  for (std::thread& thread : threads) thread.join();
  ASSERT_NO_FATAL_FAILURE(ExpectCounted(world.get()));
  for (const RowsOfTable& rows : tables) ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
  const auto made = world->checkpoints()->Make({});
  ASSERT_TRUE(made.ok()) << made.status();
  ASSERT_TRUE(world.Open().ok());
  for (RowsOfTable& rows : tables) {
    rows.Follow(world.get());
    ASSERT_NO_FATAL_FAILURE(rows.ExpectAll());
  }
  std::printf("  %llu checkpoints, %llu refused\n", static_cast<unsigned long long>(checkpoints),
              static_cast<unsigned long long>(refused.load()));
}

}  // namespace
}  // namespace embank::test::checkpoint_space_test
