// Tables of a store with a log that forget: who is forgotten, for what, and what is never.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/gradients.h"
#include "store/lookup.h"
#include "store/metrics.h"
#include "store/write.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/spill_world.h"
#include "tests/support/threads.h"

namespace embank::test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kEffort = 1;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kEffort = 2;
#else
constexpr int kEffort = 6;
#endif

// Its half has room for 8,128 records of 4,128 bytes: four times what memory has slots for.
constexpr uint64_t kSsdBytes = uint64_t{64} << 20;
constexpr uint64_t kRecordBytes = 4128;
constexpr uint64_t kRowsOfPart = kSsdBytes / 2 / kRecordBytes;
constexpr size_t kBatch = 200;

TableOptions Forgets(EvictionPolicy eviction = EvictionPolicy::kClock, uint32_t dim = kDim) {
  TableOptions options = OptionsOf(dim, Optimizer::kSgd);
  options.rule.learning_rate = 1.0f;
  options.initializer = {InitializerKind::kConstant, 5.0f, 0};
  options.eviction = eviction;
  options.on_full = OnFull::kForget;
  return options;
}

uint64_t Forgotten(Table* table) { return table->counters().forgotten_rows.load(); }

Table* Create(SpillWorld* store, std::string_view name, const TableOptions& options) {
  const absl::StatusOr<Table*> table = (*store)->CreateTable(name, options);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : nullptr;
}

// Writes keys whose values are their key times `factor`; all have to be taken.
void Write(Table* table, const std::vector<Key>& keys, float factor = 1.0f) {
  std::vector<uint8_t> outcomes(keys.size());
  const absl::Status status = Upsert(table, keys, RowsOf(RowsOfKeys(keys, factor), kDim), outcomes);
  ASSERT_TRUE(status.ok()) << status;
  const auto refused =
      std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kRefused));
  ASSERT_EQ(refused, 0) << table->mover()->log()->WhyRefused();
}

// Those of [begin, end) in batches, with a checkpoint after each so many keys, if any.
void WriteRange(SpillWorld* store, Table* table, Key begin, Key end, Key keys_per_checkpoint = 0) {
  for (Key key = begin; key < end; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, std::min<Key>(kBatch, end - key))));
    if (keys_per_checkpoint == 0 ||
        key / keys_per_checkpoint == (key + kBatch) / keys_per_checkpoint)
      continue;
    const absl::StatusOr<uint32_t> made = (*store)->Checkpoint({});
    ASSERT_TRUE(made.ok()) << made.status();
  }
}

// Which of the keys have a row, without a trace.
std::set<Key> Present(Table* table, const std::vector<Key>& keys) {
  std::vector<uint8_t> outcomes(keys.size());
  EXPECT_TRUE(Contains(table, keys, outcomes).ok());
  std::set<Key> present;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] == static_cast<uint8_t>(Outcome::kFound)) present.insert(keys[i]);
  }
  return present;
}

// The values of those of the keys that have a row: one for the whole row.
std::map<Key, float> ValuesOf(Table* table, const std::vector<Key>& keys) {
  std::map<Key, float> values;
  std::vector<float> rows(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  const absl::Status status =
      Lookup(table, keys, MissingRule::kDefault, RowsIn(&rows, kDim), outcomes);
  EXPECT_TRUE(status.ok()) << status;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (outcomes[i] != static_cast<uint8_t>(Outcome::kFound)) continue;
    const auto row = rows.begin() + static_cast<ptrdiff_t>(i * kDim);
    EXPECT_EQ(std::count(row, row + kDim, *row), kDim) << "a torn row";
    values[keys[i]] = *row;
  }
  return values;
}

void ExpectOwnValues(Table* table, const std::vector<Key>& keys) {
  for (const auto& [key, value] : ValuesOf(table, keys)) {
    ASSERT_EQ(value, static_cast<float>(key));
  }
}

uint64_t BytesOfRows(SpillWorld* store) {
  const LogSpace space = (*store)->log()->Space();
  return space.live_bytes + space.dirty_bytes;
}

class ForgettingInLog : public testing::TestWithParam<EvictionPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, ForgettingInLog,
                         testing::Values(EvictionPolicy::kClock, EvictionPolicy::kLfu));

// New rows without an end, and no checkpoint: none is refused, the oldest go, and are counted.
TEST_P(ForgettingInLog, KeepsTheNewestInItsPartOfTheLog) {
  SpillWorld store(1, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  constexpr Key kRows = 24'000;
  for (Key key = 0; key < kRows; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(table->rows() + Forgotten(table), key + kBatch);
    ASSERT_LE(BytesOfRows(&store), kSsdBytes / 2);
  }
  // No more than a step's worth too many went.
  EXPECT_GE(table->rows(), kRowsOfPart - kBatch - 256);
  EXPECT_EQ(Present(table, KeysFrom(0, kRows)).size(), table->rows());
  EXPECT_EQ(Present(table, KeysFrom(kRows - 6000, 6000)).size(), 6000u);
  EXPECT_EQ(Present(table, KeysFrom(0, 12'000)).size(), 0u);
  ExpectOwnValues(table, KeysFrom(kRows - 8000, 8000));
  EXPECT_NE(
      FormatMetrics(*store.get())
          .find("embank_rows_forgotten_total{table=\"t\"} " + std::to_string(Forgotten(table))),
      std::string::npos);
}

// Checkpoints keep what is forgotten for a while: there is room for that, too.
TEST_P(ForgettingInLog, BesideCheckpointsNothingIsRefused) {
  SpillWorld store(2, nullptr, kSsdBytes);
  Table* table = Create(&store, "t", Forgets(GetParam()));
  constexpr Key kRows = 24'000;
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, kRows, kRowsOfPart / 10 / kBatch * kBatch));
  EXPECT_GT(Forgotten(table), kRows / 2);
  ASSERT_TRUE(store->Checkpoint({}).ok());
  const std::set<Key> before = Present(table, KeysFrom(0, kRows));
  EXPECT_EQ(before.size(), table->rows());

  ASSERT_TRUE(store.Open().ok());
  table = *store->OpenTable("t");
  EXPECT_EQ(table->options().on_full, OnFull::kForget);
  EXPECT_EQ(Present(table, KeysFrom(0, kRows)), before);
  ExpectOwnValues(table, KeysFrom(kRows - 8000, 8000));
  // It goes on where it was.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, kRows, kRows + 4000, 800));
  EXPECT_EQ(table->rows() + Forgotten(table), before.size() + 4000);
  EXPECT_LE(BytesOfRows(&store), kSsdBytes / 2);
}

// Rows that are used again and again stay, however long ago they were written.
TEST_P(ForgettingInLog, RowsInUseStay) {
  SpillWorld store(3, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  const std::vector<Key> hot = KeysFrom(0, 300);
  ASSERT_NO_FATAL_FAILURE(Write(table, hot));
  for (Key key = 1000; key < 25'000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(ValuesOf(table, hot).size(), hot.size()) << "behind " << key;
  }
  EXPECT_EQ(Present(table, KeysFrom(1000, 8000)).size(), 0u);
  ExpectOwnValues(table, hot);
}

// A row that was looked up since it was written is spared once: it went back to the log clean.
TEST(ForgettingInLog, RowsLookedUpSinceTheyWereWrittenAreSparedOnce) {
  SpillWorld store(4, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 7000));
  const std::vector<Key> looked_up = KeysFrom(0, 300);
  ASSERT_EQ(ValuesOf(table, looked_up).size(), looked_up.size());
  // Others take their places in memory.
  for (Key key = 2000; key < 6000; key += kBatch) ValuesOf(table, KeysFrom(key, kBatch));
  const auto in_memory = table->rows() - table->rows_in_log();
  ASSERT_LT(in_memory, 2100u);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 10'000, 12'400));
  EXPECT_EQ(Present(table, looked_up).size(), looked_up.size());
  EXPECT_LT(Present(table, KeysFrom(300, 1000)).size(), 100u);
  // Behind all that was there then, they go.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 20'000, 32'000));
  EXPECT_EQ(Present(table, looked_up).size(), 0u);
}

// Under LFU it is not age that counts.
TEST(ForgettingInLog, UnderLfuHotRowsOutliveNewerOnes) {
  SpillWorld store(5, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(EvictionPolicy::kLfu));
  const std::vector<Key> hot = KeysFrom(0, 1000);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 1000));
  for (int i = 0; i < 40; ++i) ValuesOf(table, hot);
  // Rows of a little heat, of which memory keeps those of more.
  for (Key key = 1000; key < 16'000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ValuesOf(table, KeysFrom(key, kBatch));
  }
  ASSERT_GT(Forgotten(table), 6000u);
  EXPECT_EQ(Present(table, hot).size(), hot.size());
}

// The same of rows that are all in the log, with the heat that their records have.
TEST(ForgettingInLog, UnderLfuHotRowsOfTheLogOutliveOthersOfTheirAge) {
  SpillWorld store(11, nullptr, kSsdBytes);
  Table* table = Create(&store, "t", Forgets(EvictionPolicy::kLfu));
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 7000));
  std::vector<Key> hot;
  for (Key key = 0; key < 4000; key += 4) hot.push_back(key);
  for (int i = 0; i < 40; ++i) ValuesOf(table, hot);
  ASSERT_NO_FATAL_FAILURE(Write(table, hot));
  ASSERT_TRUE(store->Checkpoint({}).ok());
  ASSERT_TRUE(store.Open().ok());
  table = *store->OpenTable("t");
  ASSERT_EQ(table->rows_in_log(), 7000u);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 10'000, 15'000, 1000));
  EXPECT_EQ(Present(table, hot).size(), hot.size());
  // All others that were as old went.
  EXPECT_EQ(Present(table, KeysFrom(0, 2000)).size(), 500u);
  // Those that were written last have no heat; they would be next without theirs.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 20'000, 26'000, 1000));
  EXPECT_GT(Present(table, hot).size(), hot.size() * 9 / 10);
  EXPECT_LT(Present(table, KeysFrom(10'000, 3000)).size(), 1000u);
}

// Where the log's part is less than memory, there is nothing in the log alone.
TEST_P(ForgettingInLog, OfASmallLogTheColdestOfMemoryGo) {
  constexpr uint64_t kSmallBytes = uint64_t{16} << 20;
  SpillWorld store(6, nullptr, kSmallBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  for (Key key = 0; key < 8000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(table->rows() + Forgotten(table), key + kBatch);
    ASSERT_LE(BytesOfRows(&store), kSmallBytes / 2);
    if (key % 200 == 0) {
      ASSERT_TRUE(store->Checkpoint({}).ok());
    }
  }
  EXPECT_EQ(table->rows_in_log(), 0u);
  EXPECT_EQ(Present(table, KeysFrom(7000, 1000)).size(), 1000u);
  // Of each shard the coldest: some 1,900 rows stay, 30 of each.
  EXPECT_EQ(Present(table, KeysFrom(0, 4000)).size(), 0u);
  ExpectOwnValues(table, KeysFrom(0, 8000));
}

// Without a limit of the log it is the index that is full.
TEST(ForgettingInLog, WhereTheIndexIsFullRowsGoForNewOnes) {
  SpillWorld store(7);
  Table* const table = Create(&store, "t", Forgets(EvictionPolicy::kClock, 1));
  constexpr size_t kKeys = 8192;
  uint64_t made = 0;
  const auto make = [&] {
    std::vector<uint8_t> outcomes(kKeys);
    std::vector<float> rows(kKeys, 1.0f);
    ASSERT_TRUE(Upsert(table, KeysFrom(made, kKeys), RowsOf(rows, 1), outcomes).ok());
    ASSERT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kCreated)),
              static_cast<ptrdiff_t>(kKeys))
        << made << " rows: " << table->mover()->log()->WhyRefused();
    made += kKeys;
  };
  while (Forgotten(table) == 0 && made < 4'000'000) ASSERT_NO_FATAL_FAILURE(make());
  ASSERT_GT(Forgotten(table), 0u);
  const uint64_t rows = table->rows();
  for (int i = 0; i < 12 * kEffort; ++i) ASSERT_NO_FATAL_FAILURE(make());
  EXPECT_EQ(table->rows() + Forgotten(table), made);
  // Neither fewer and fewer nor more and more; not all shards were full when the first was.
  EXPECT_GT(table->rows(), rows - rows / 20);
  EXPECT_LT(table->rows(), rows + rows / 8);
  EXPECT_EQ(Present(table, KeysFrom(made - 4 * kKeys, 4 * kKeys)).size(), 4 * kKeys);
}

// What others keep counts, and is not touched.
TEST(ForgettingInLog, RowsOfTablesThatRefuseStay) {
  SpillWorld store(8, nullptr, kSsdBytes);
  Table* const refuses = store.Create("refuses", Optimizer::kSgd);
  Table* const table = Create(&store, "forgets", Forgets());
  EXPECT_NE(refuses->mover(), table->mover());
  for (Key key = 0; key < 12'000; key += kBatch) {
    if (key < 4000) {
      ASSERT_NO_FATAL_FAILURE(Write(refuses, KeysFrom(key, kBatch)));
    }
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
  }
  EXPECT_EQ(Forgotten(refuses), 0u);
  EXPECT_EQ(Present(refuses, KeysFrom(0, 4000)).size(), 4000u);
  ExpectOwnValues(refuses, KeysFrom(0, 4000));
  EXPECT_LE(BytesOfRows(&store), kSsdBytes / 2);
  EXPECT_EQ(Present(table, KeysFrom(9500, 2500)).size(), 2500u);
  EXPECT_EQ(FormatMetrics(*store.get()).find("embank_rows_forgotten_total{table=\"refuses\"}"),
            std::string::npos);
}

// Updates of rows that are there make none, so that none has to go but for the room of a batch.
TEST(ForgettingInLog, ChangesForgetNothing) {
  SpillWorld store(9, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets());
  constexpr Key kRows = kRowsOfPart - 2 * kBatch;
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, kRows));
  ASSERT_EQ(Forgotten(table), 0u);
  for (float factor = 2.0f; factor < 4.0f; ++factor) {
    for (Key key = 0; key < kRows; key += kBatch) {
      ASSERT_NO_FATAL_FAILURE(
          Write(table, KeysFrom(key, std::min<Key>(kBatch, kRows - key)), factor));
    }
  }
  EXPECT_EQ(Forgotten(table), 0u);
  EXPECT_EQ(table->rows(), kRows);
}

// Rows of a segment that cannot be read are left where they are; others go.
TEST(ForgettingInLog, DamagedRowsAreNotForgotten) {
  SpillWorld store(10, nullptr, kSsdBytes);
  Table* table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 7000));
  ASSERT_TRUE(store->Checkpoint({}).ok());
  store.Close();
  const std::string oldest = "log/" + RowLog::SegmentName(1);
  const std::vector<std::byte> wrong(64, std::byte{0x5A});
  store.disk().Corrupt(oldest, kBlockBytes + 2 * kRecordBytes + 500, wrong);
  ASSERT_TRUE(store.Open().ok());
  table = *store->OpenTable("t");
  const uint64_t rows = table->rows();
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 10'000, 16'000, 800));
  EXPECT_EQ(table->rows() + Forgotten(table), rows + 6000);
  EXPECT_EQ(Present(table, KeysFrom(14'000, 2000)).size(), 2000u);
  std::vector<Key> keys = KeysFrom(0, 7000);
  std::vector<float> values(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kDefault, RowsIn(&values, kDim), outcomes).ok());
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kDataLoss)),
            1);
}

// ---- random operations ----

// What a table that forgets may be: all rows of the model that it has are as they are there, and it
// has all but as many as it has counted.
class ForgettingModel {
 public:
  ForgettingModel(SpillWorld* store, uint64_t seed, Events* events)
      : store_(store), random_(seed), events_(events) {}

  void Run(EvictionPolicy policy, int steps) {
    table_ = Create(store_, "t", Forgets(policy));
    for (int step = 0; step < steps && !testing::Test::HasFatalFailure(); ++step) {
      Step();
      if (step % 64 == 63) Compare();
    }
    Compare();
  }

 private:
  std::vector<Key> DrawKeys() {
    std::vector<Key> keys(random_.Between(1, 300));
    const bool hot = random_.OneIn(3);
    for (Key& key : keys) key = hot ? random_.Below(500) : random_.Below(20'000);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    return keys;
  }

  void Step() {
    const uint64_t choice = random_.Below(200);
    if (choice < 100) return DoUpsert();
    if (choice < 140) return DoLookup();
    if (choice < 170) return DoGradients();
    if (choice < 185) return DoErase();
    if (choice < 198) return DoCheckpoint();
    return DoReopen();
  }
  // Forgets in the model what the table has not, and counts it.
  void Notice(Key key, bool found) {
    if (!found) gone_ += rows_.erase(key);
    if (found) {
      ASSERT_EQ(rows_.count(key), 1u) << "key " << key << " came from nowhere";
    }
  }
  void DoUpsert() {
    const std::vector<Key> keys = DrawKeys();
    const auto factor = static_cast<float>(random_.Between(1, 9));
    std::vector<uint8_t> outcomes(keys.size());
    bool refused = false;
    ASSERT_TRUE(Upsert(table_, keys, RowsOf(RowsOfKeys(keys, factor), kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto outcome = static_cast<Outcome>(outcomes[i]);
      refused = refused || outcome == Outcome::kRefused;
      // Whether there is a row then, the next Compare sees.
      if (outcome == Outcome::kRefused) continue;
      ASSERT_NO_FATAL_FAILURE(Notice(keys[i], outcome == Outcome::kFound));
      rows_[keys[i]] = factor * static_cast<float>(keys[i]);
    }
    if (refused) Refused();
    events_->Count("upsert");
  }
  // Room comes with checkpoints.
  void Refused() {
    events_->Count("refused");
    DoCheckpoint();
  }
  void DoLookup() {
    const std::vector<Key> keys = DrawKeys();
    const std::map<Key, float> values = ValuesOf(table_, keys);
    for (const Key key : keys) {
      const auto value = values.find(key);
      ASSERT_NO_FATAL_FAILURE(Notice(key, value != values.end()));
      if (value != values.end()) {
        ASSERT_EQ(value->second, rows_[key]) << "key " << key;
      }
    }
    events_->Count("lookup");
  }
  void DoGradients() {
    const std::vector<Key> keys = DrawKeys();
    std::vector<uint8_t> outcomes(keys.size());
    const std::vector<float> ones(keys.size() * kDim, 1.0f);
    bool refused = false;
    ASSERT_TRUE(ApplyGradients(table_, keys, RowsOf(ones, kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const auto outcome = static_cast<Outcome>(outcomes[i]);
      refused = refused || outcome == Outcome::kRefused;
      if (outcome == Outcome::kRefused) continue;
      ASSERT_NO_FATAL_FAILURE(Notice(keys[i], outcome == Outcome::kFound));
      if (outcome == Outcome::kFound) rows_[keys[i]] -= 1.0f;
    }
    if (refused) Refused();
    events_->Count("gradients");
  }
  void DoErase() {
    const std::vector<Key> keys = DrawKeys();
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Erase(table_, keys, outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      const bool found = outcomes[i] == static_cast<uint8_t>(Outcome::kFound);
      ASSERT_NO_FATAL_FAILURE(Notice(keys[i], found));
      rows_.erase(keys[i]);
    }
    events_->Count("erase");
  }
  void DoCheckpoint() {
    Compare();
    ASSERT_TRUE(store_->get()->Checkpoint({}).ok());
    store_->disk().Forget();
    saved_ = rows_;
    has_saved_ = true;
    events_->Count("checkpoint");
  }
  void DoReopen() {
    if (!has_saved_) return;
    events_->Count("forgotten", Forgotten(table_));
    if (random_.OneIn(2)) {
      const SimulatedDisk& disk = store_->disk();
      auto left = disk.AfterCrash(disk.changes(), Persistence::kSome, random_.Bits());
      store_->SetDisk(std::move(left));
      events_->Count("crash");
    }
    ASSERT_TRUE(store_->Open().ok());
    table_ = *store_->get()->OpenTable("t");
    rows_ = saved_;
    gone_ = 0;
    Compare();
    ASSERT_EQ(rows_.size(), saved_.size()) << "the checkpoint had them";
    events_->Count("reopen");
  }
  // All that the model has and the table has not was forgotten, and nothing else was.
  void Compare() {
    std::vector<Key> keys;
    for (const auto& [key, value] : rows_) keys.push_back(key);
    const std::set<Key> present = Present(table_, keys);
    for (const Key key : keys) Notice(key, present.count(key) == 1);
    ASSERT_EQ(table_->rows(), rows_.size());
    ASSERT_EQ(Forgotten(table_), gone_);
  }

  SpillWorld* const store_;
  Random random_;
  Events* const events_;
  Table* table_ = nullptr;
  std::map<Key, float> rows_, saved_;
  bool has_saved_ = false;
  uint64_t gone_ = 0;  // since the store was opened
};

TEST_P(ForgettingInLog, RandomOperationsAgreeWithAModel) {
  Events events;
  for (uint64_t seed = 0; seed < kEffort; ++seed) {
    SpillWorld store(seed, nullptr, uint64_t{24} << 20);
    ForgettingModel(&store, seed, &events).Run(GetParam(), 400);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  for (const char* const name : {"upsert", "lookup", "gradients", "erase", "checkpoint", "reopen",
                                 "crash", "forgotten", "refused"}) {
    events.Expect(name);
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

// ---- threads ----

TEST_P(ForgettingInLog, BesideThreadsAndCheckpointsRowsAreWholeAndCountedOnce) {
  SpillWorld store(12, MakeThreadPool(2), kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> erased{0};
  std::atomic<bool> stop{false};
  std::thread checkpoints([&] {
    while (!stop) EXPECT_TRUE(store->Checkpoint({}).ok());
  });
  OnThreads(3, [&](uint64_t thread) {
    Random random(thread);
    for (int batch = 0; batch < 40 * kEffort; ++batch) {
      std::vector<Key> keys(kBatch);
      for (Key& key : keys) key = random.Below(random.OneIn(3) ? 30'000 : 2000);
      std::vector<float> rows(keys.size() * kDim, static_cast<float>(batch));
      std::vector<uint8_t> outcomes(keys.size());
      absl::Status status;
      const uint64_t verb = random.Below(6);
      if (verb == 0) {
        status = Erase(table, keys, outcomes);
        erased += std::count(outcomes.begin(), outcomes.end(), uint8_t{1});
      } else if (verb < 3) {
        status = Upsert(table, keys, RowsOf(rows, kDim), outcomes);
      } else {
        status = Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes);
        for (size_t i = 0; i < keys.size(); ++i) {
          const auto row = rows.begin() + static_cast<ptrdiff_t>(i * kDim);
          ASSERT_EQ(std::count(row, row + kDim, *row), kDim) << "a torn row";
        }
      }
      ASSERT_TRUE(status.ok()) << status;
      for (const uint8_t outcome : outcomes) {
        made += outcome == static_cast<uint8_t>(Outcome::kCreated) ? 1 : 0;
      }
    }
  });
  stop = true;
  checkpoints.join();
  EXPECT_EQ(table->rows() + Forgotten(table) + erased, made);
  EXPECT_EQ(Present(table, KeysFrom(0, 30'000)).size(), table->rows());
}

}  // namespace
}  // namespace embank::test
