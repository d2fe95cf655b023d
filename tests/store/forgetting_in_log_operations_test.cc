// Random operations and threads on tables of a store with a log that forget.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/executor.h"
#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/store/forgetting_rows.h"
#include "tests/support/events.h"
#include "tests/support/policies.h"
#include "tests/support/random.h"
#include "tests/support/row_values.h"
#include "tests/support/threads.h"

namespace embank::test::forgetting_in_log_operations_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kEffort = 1;
#else
constexpr int kEffort = 6;
#endif
constexpr int kSteps = 400;

class ForgettingOperationsInLog : public testing::TestWithParam<EvictionPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, ForgettingOperationsInLog,
                         PoliciesOfSuite(EvictionPolicy::kLru));

// Checks a table that forgets against the model: all rows that it has are as in the model, and the
// number of missing ones is the number that it counted as forgotten.
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
  // Forgets the rows in the model that the table does not have, and counts them.
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
  // Checkpoints free space.
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
    ASSERT_TRUE(store_->get()->checkpoints()->Make({}).ok());
    store_->disk().ClearHistory();
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
    table_ = *store_->get()->catalog().Open("t");
    rows_ = saved_;
    gone_ = 0;
    Compare();
    ASSERT_EQ(rows_.size(), saved_.size()) << "the checkpoint had them";
    events_->Count("reopen");
  }
  // All rows of the model that the table does not have were forgotten, and no others.
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

TEST_P(ForgettingOperationsInLog, RandomOperationsAgreeWithAModel) {
  Events events;
  // The second run is for the tier that it adds.
  const uint64_t seeds = WithPmem() ? std::min(kEffort, 3) : kEffort;
  for (uint64_t seed = 0; seed < seeds; ++seed) {
    SpillWorld store(seed, nullptr, uint64_t{24} << 20);
    ForgettingModel(&store, seed, &events).Run(GetParam(), kSteps);
    ASSERT_FALSE(HasFatalFailure()) << "seed " << seed;
  }
  for (const char* const name : {"upsert", "lookup", "gradients", "erase", "checkpoint", "reopen",
                                 "crash", "forgotten", "refused"}) {
    events.Expect(name);
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

// With a log smaller than memory, rows in memory are forgotten, also rows whose flush is pending;
// with a larger one, records.
void RunThreads(EvictionPolicy policy, uint64_t ssd_bytes) {
  SpillWorld store(12, MakeThreadPool(2), ssd_bytes);
  Table* table = Create(&store, "t", Forgets(policy));
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> erased{0};
  std::atomic<bool> stop{false};
  std::thread checkpoints([&] {
    while (!stop) EXPECT_TRUE(store->checkpoints()->Make({}).ok());
  });
  OnThreads(3, [&](uint64_t thread) {
    Random random(thread);
    for (int batch = 0; batch < 40 * kEffort; ++batch) {
      std::vector<Key> keys(kBatch);
      for (Key& key : keys) key = random.Below(random.OneIn(3) ? 2000 : 30'000);
      std::vector<float> rows(keys.size() * kDim, static_cast<float>(batch));
      std::vector<uint8_t> outcomes(keys.size());
      Status status;
      const uint64_t verb = random.Below(6);
      if (verb == 0) {
        status = Erase(table, keys, outcomes);
        erased += std::count(outcomes.begin(), outcomes.end(), uint8_t{1});
      } else if (verb < 3) {
        status = Upsert(table, keys, RowsOf(rows, kDim), outcomes);
      } else {
        status = Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes);
        for (size_t i = 0; i < keys.size(); ++i) {
          ASSERT_TRUE(IsWholeRow(rows, i, kDim)) << "a torn row";
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
  const std::vector<Key> keys = KeysFrom(0, 30'000);
  EXPECT_EQ(table->rows() + Forgotten(table) + erased, made);
  EXPECT_GT(Forgotten(table), 500u);
  // Three batches at once forget no more than one after the other.
  EXPECT_LE(BytesOfRows(&store), ssd_bytes / 2 + 3 * kBatch * kRecordBytes);
  // The rows above are not among these.
  if (!WithPmem()) {
    EXPECT_GE(BytesOfRows(&store), ssd_bytes / 2 - 3 * kBatch * kRecordBytes);
  }
  std::map<Key, float> before;
  // With a PMem tier, lookups pay what the batches have left: rows go down, and others are
  // forgotten.
  for (uint64_t rows = UINT64_MAX; rows != table->rows();) {
    rows = table->rows();
    before = ValuesOf(table, keys);
    EXPECT_EQ(table->rows() + Forgotten(table) + erased, made);
  }
  EXPECT_EQ(before.size(), table->rows());
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store.Open(false, MakeThreadPool(2)).ok());
  table = *store->catalog().Open("t");
  EXPECT_EQ(ValuesOf(table, keys), before);
}

TEST_P(ForgettingOperationsInLog, BesideThreadsAndCheckpointsRowsAreWholeAndCountedOnce) {
  RunThreads(GetParam(), uint64_t{40} << 20);
}
TEST_P(ForgettingOperationsInLog, RowsInMemoryAreForgottenBesideThreadsAndCheckpoints) {
  RunThreads(GetParam(), uint64_t{16} << 20);
}

}  // namespace
}  // namespace embank::test::forgetting_in_log_operations_test
