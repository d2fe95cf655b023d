// Heat through the store: when epochs begin, and the exact heat of rows that nobody touches.
// tests/tiers/row_header_test.cc tests single words.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/support/store_world.h"

namespace embank::test::heat_test {
namespace {

constexpr uint64_t kMillion = uint64_t{1} << 20;  // positions of the shortest epoch

class HeatTest : public testing::Test {
 protected:
  // Answers each key once.
  void LookUp(const std::vector<Key>& keys) {
    std::vector<float> rows(keys.size());
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kCreate, RowsIn(&rows, 1), {}).ok());
  }
  uint32_t HeatOf(Key key) {
    uint32_t heat = 77;
    EXPECT_TRUE(GetHeat(table_, {&key, 1}, {&heat, 1}, {}).ok());
    return heat;
  }

  StoreWorld store_;
  Table* table_ = store_.Create("t", OptionsOf(1));
  HeatClock* const clock_ = table_->store().heat_clock;
};

TEST_F(HeatTest, AnEpochBeginsWhenAMillionPositionsAreCounted) {
  clock_->Count(kMillion - 1);
  EXPECT_EQ(clock_->now(), 0);
  clock_->Count(0);
  EXPECT_EQ(clock_->now(), 0);
  clock_->Count(1);
  EXPECT_EQ(clock_->now(), 1);
  // The count restarts at nought, whatever the last batch had beyond the million.
  clock_->Count(kMillion + 500'000);
  EXPECT_EQ(clock_->now(), 2);
  clock_->Count(kMillion - 1);
  EXPECT_EQ(clock_->now(), 2);
  clock_->Count(10 * kMillion);
  EXPECT_EQ(clock_->now(), 3) << "a batch begins one epoch at most";
}

TEST_F(HeatTest, AnEpochThatEndsEarlyBeginsTheCountAnew) {
  clock_->Count(kMillion - 1);
  clock_->EndEpochs(1);
  EXPECT_EQ(clock_->now(), 1);
  clock_->Count(kMillion - 1);
  EXPECT_EQ(clock_->now(), 1);
  clock_->Count(1);
  EXPECT_EQ(clock_->now(), 2);
  clock_->EndEpochs(0);
  EXPECT_EQ(clock_->now(), 2);
}

TEST_F(HeatTest, ALargeTableNeedsEightPositionsPerRow) {
  const uint64_t rows = kMillion / 8 + 1000;
  const std::vector<Key> keys = KeysFrom(0, rows);
  const std::vector<float> values(rows);
  ASSERT_TRUE(Upsert(table_, keys, RowsOf(values, 1), {}).ok());
  clock_->Count(kMillion + 7999);
  EXPECT_EQ(clock_->now(), 0);
  clock_->Count(1);
  EXPECT_EQ(clock_->now(), 1);
}

TEST_F(HeatTest, OnlyFoundAndCreatedPositionsCount) {
  clock_->Count(kMillion - 4);
  std::vector<float> row(3);
  std::vector<uint8_t> outcomes(3);
  for (const MissingRule rule : {MissingRule::kDefault, MissingRule::kZero, MissingRule::kSkip}) {
    ASSERT_TRUE(Lookup(table_, KeysFrom(0, 3), rule, RowsIn(&row, 1), outcomes).ok());
  }
  ASSERT_TRUE(Upsert(table_, KeysFrom(50, 3), RowsOf(row, 1), {}).ok());
  ASSERT_TRUE(Contains(table_, KeysFrom(50, 3), outcomes).ok());
  EXPECT_EQ(clock_->now(), 0);
  LookUp(KeysFrom(0, 3));
  EXPECT_EQ(clock_->now(), 0);
  ASSERT_TRUE(Lookup(table_, KeysFrom(50, 1), MissingRule::kZero, RowsIn(&row, 1), {}).ok());
  EXPECT_EQ(clock_->now(), 1);
}

TEST_F(HeatTest, APositionCountsInTheEpochOfItsBatch) {
  LookUp({7, 7, 7, 7});
  clock_->Count(kMillion - 4 - 2);
  LookUp({7, 7});  // completes the epoch, after it was counted
  EXPECT_EQ(clock_->now(), 1);
  EXPECT_EQ(HeatOf(7), 3u);
  LookUp({7});
  EXPECT_EQ(HeatOf(7), 4u);
}

TEST_F(HeatTest, UntouchedRowsOfEveryShardHalveThroughThreeHundredEpochs) {
  const std::vector<Key> keys = KeysFrom(0, 500);
  constexpr uint32_t kTouches = 40;
  for (uint32_t i = 0; i < kTouches; ++i) LookUp(keys);
  std::vector<uint32_t> heat(keys.size());
  for (uint32_t epoch = 1; epoch <= 300; ++epoch) {
    clock_->Count(kMillion);
    ASSERT_EQ(clock_->now(), static_cast<HeatEpoch>(epoch));
    ASSERT_TRUE(GetHeat(table_, keys, heat, {}).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(heat[i], epoch < 20 ? kTouches >> epoch : 0u)
          << "key " << keys[i] << " in epoch " << epoch;
    }
  }
}

// Rows of all tables age together, whichever table's lookups end the epochs, and whichever table is
// large.
TEST_F(HeatTest, UntouchedRowsOfALargeTableHalveByTheTrafficOfASmallOne) {
  Table* const large = store_.Create("large", OptionsOf(1));
  const std::vector<Key> keys = KeysFrom(0, 150'000);
  const std::vector<float> values(keys.size());
  ASSERT_TRUE(Upsert(large, keys, RowsOf(values, 1), {}).ok());
  const std::vector<Key> known_keys = KeysFrom(70'000, 300);
  std::vector<float> rows(known_keys.size());
  constexpr uint32_t kTouches = 40;
  for (uint32_t i = 0; i < kTouches; ++i) {
    ASSERT_TRUE(Lookup(large, known_keys, MissingRule::kSkip, RowsIn(&rows, 1), {}).ok());
  }
  LookUp({1, 2, 3});
  constexpr uint64_t kEpochPositions = 8ul * 150'003;
  ASSERT_GT(kEpochPositions, kMillion);
  std::vector<uint32_t> heat(known_keys.size());
  for (uint32_t epoch = 1; epoch <= 300; ++epoch) {
    for (int batch = 0; batch < 100; ++batch) clock_->Count(kEpochPositions / 100);
    clock_->Count(kEpochPositions % 100);
    ASSERT_EQ(clock_->now(), static_cast<HeatEpoch>(epoch));
    ASSERT_TRUE(GetHeat(large, known_keys, heat, {}).ok());
    const uint32_t expected = epoch < 20 ? kTouches >> epoch : 0;
    ASSERT_EQ(std::count(heat.begin(), heat.end(), expected), heat.size()) << "epoch " << epoch;
    ASSERT_EQ(HeatOf(2), 0u);
  }
}

// A few hot rows are left with a large index.
TEST_F(HeatTest, StampsStayTrueWhenMostRowsAreErased) {
  const std::vector<Key> keys = KeysFrom(1000, 300'000);
  const std::vector<float> values(keys.size());
  ASSERT_TRUE(Upsert(table_, keys, RowsOf(values, 1), {}).ok());
  const std::vector<Key> old_keys = KeysFrom(0, 100);
  for (int i = 0; i < 8; ++i) LookUp(old_keys);
  clock_->Count(kMillion);  // less than an epoch while the rows are there
  ASSERT_EQ(clock_->now(), 0);
  ASSERT_TRUE(Erase(table_, keys, {}).ok());
  for (uint32_t epoch = 1; epoch <= 300; ++epoch) {
    clock_->Count(kMillion);
    ASSERT_EQ(clock_->now(), static_cast<HeatEpoch>(epoch));
    ASSERT_EQ(HeatOf(77), epoch < 20 ? 8u >> epoch : 0u) << "epoch " << epoch;
  }
}

TEST_F(HeatTest, ARowWrittenInALateEpochStartsThere) {
  for (int epoch = 0; epoch < 200; ++epoch) clock_->Count(kMillion);
  const std::vector<float> values(1);
  ASSERT_TRUE(Upsert(table_, KeysFrom(1, 1), RowsOf(values, 1), {}).ok());
  EXPECT_EQ(HeatOf(1), 0u);
  LookUp({1, 2, 2});
  EXPECT_EQ(HeatOf(1), 1u);
  EXPECT_EQ(HeatOf(2), 2u);
  // An upsert of a row that is there keeps its heat.
  ASSERT_TRUE(Upsert(table_, KeysFrom(2, 1), RowsOf(values, 1), {}).ok());
  EXPECT_EQ(HeatOf(2), 2u);
}

// Stamps are renewed by hash while the index grows under them.
TEST_F(HeatTest, UntouchedRowsHalveWhileTheTableGrows) {
  const std::vector<Key> old_keys = KeysFrom(0, 500);
  constexpr uint32_t kTouches = 40;
  for (uint32_t i = 0; i < kTouches; ++i) LookUp(old_keys);
  std::vector<uint32_t> heat(old_keys.size());
  constexpr uint64_t kNewRows = 2000;
  const std::vector<float> values(kNewRows);
  for (uint64_t epoch = 1; epoch <= 200; ++epoch) {
    // In parts, so that renewals and growth take turns; the last one ends the epoch.
    for (uint64_t part = 0; part < 4; ++part) {
      const Key first = 1000 + (4 * epoch + part) * kNewRows;
      ASSERT_TRUE(Upsert(table_, KeysFrom(first, kNewRows), RowsOf(values, 1), {}).ok());
      clock_->Count(HeatEpochPositions(table_->rows()) / (part < 3 ? 4 : 1));
    }
    ASSERT_EQ(clock_->now(), static_cast<HeatEpoch>(epoch));
    ASSERT_TRUE(GetHeat(table_, old_keys, heat, {}).ok());
    const uint32_t expected = epoch < 20 ? kTouches >> epoch : 0;
    ASSERT_EQ(std::count(heat.begin(), heat.end(), expected), heat.size()) << "epoch " << epoch;
  }
}

TEST_F(HeatTest, NoPositionIsLostBesideAWriterOfTheSameRows) {
  const std::vector<Key> keys = KeysFrom(0, 64);
  LookUp(keys);
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    const std::vector<float> values(keys.size());
    while (!stop.load()) EXPECT_TRUE(Upsert(table_, keys, RowsOf(values, 1), {}).ok());
  });
  constexpr uint32_t kBatches = 3000;
  std::vector<std::thread> readers;
  for (int t = 0; t < 2; ++t) {
    readers.emplace_back([&] {
      for (uint32_t i = 0; i < kBatches; ++i) ASSERT_NO_FATAL_FAILURE(LookUp(keys));
    });
  }
  for (std::thread& reader : readers) reader.join();
  stop = true;
  writer.join();
  for (const Key key : keys) EXPECT_EQ(HeatOf(key), 1 + 2 * kBatches) << key;
}

// Threads count together, epochs pass, rows of another table come and go: no stamp gets too old.
TEST_F(HeatTest, ThreadsRenewAllStampsTogether) {
  Table* const other = store_.Create("other", OptionsOf(1));
  const std::vector<Key> keys = KeysFrom(0, 500);
  constexpr uint32_t kTouches = 40;
  for (uint32_t i = 0; i < kTouches; ++i) LookUp(keys);
  clock_->Count(kMillion);
  const std::vector<Key> other_keys = KeysFrom(0, 20'000);
  const std::vector<float> values(other_keys.size());
  std::vector<uint32_t> heat(keys.size());
  for (uint64_t epochs = 1; epochs < 300;) {
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([this] {
        for (uint64_t i = 0; i < 4 * kMillion; i += 1 << 14) clock_->Count(1 << 14);
      });
    }
    threads.emplace_back([&] {
      EXPECT_TRUE(Upsert(other, other_keys, RowsOf(values, 1), {}).ok());
      EXPECT_TRUE(Erase(other, other_keys, {}).ok());
    });
    for (std::thread& thread : threads) thread.join();
    epochs += static_cast<uint8_t>(clock_->now() - static_cast<HeatEpoch>(epochs));
    ASSERT_TRUE(GetHeat(table_, keys, heat, {}).ok());
    const uint32_t expected = epochs < 20 ? kTouches >> epochs : 0;
    ASSERT_EQ(std::count(heat.begin(), heat.end(), expected), heat.size()) << "epoch " << epochs;
  }
}

// A shard that a writer holds is left alone, and has its turn when it is free again.
TEST_F(HeatTest, ALookupDoesNotWaitForAWriterToRenewStamps) {
  const std::vector<Key> keys = KeysFrom(0, 500);
  LookUp(keys);
  std::vector<uint32_t> heat(keys.size());
  for (uint32_t epoch = 1; epoch <= 300; ++epoch) {
    // The epochs in which it would be shard 0's turn.
    const bool locked = epoch % 64 >= 1 && epoch % 64 <= 4;
    if (locked) {
      MutexLock lock(&table_->store().index->shard(0)->mutex);
      std::thread([this] { clock_->Count(kMillion); }).join();
    } else {
      clock_->Count(kMillion);
    }
    ASSERT_EQ(clock_->now(), static_cast<HeatEpoch>(epoch));
    ASSERT_TRUE(GetHeat(table_, keys, heat, {}).ok());
    ASSERT_EQ(std::count(heat.begin(), heat.end(), 0u), heat.size()) << "epoch " << epoch;
  }
}

TEST_F(HeatTest, ALookupWaitsForAWriterWhoKeepsAShardForManyEpochs) {
  LookUp(KeysFrom(0, 500));
  std::atomic<bool> done{false};
  std::thread counter;
  {
    MutexLock lock(&table_->store().index->shard(0)->mutex);
    counter = std::thread([&] {
      for (int epoch = 0; epoch < 20; ++epoch) clock_->Count(kMillion);
      done = true;
    });
    while (clock_->now() < 9) std::this_thread::yield();
    // Time enough to go on, for one that does not wait.
    for (int i = 0; i < 10'000; ++i) std::this_thread::yield();
    EXPECT_FALSE(done.load());
    EXPECT_EQ(clock_->now(), 9);
  }
  counter.join();
  EXPECT_EQ(clock_->now(), 20);
}

TEST_F(HeatTest, OnePositionRenewsNoMoreThanAStepHoweverMuchIsMissing) {
  LookUp(KeysFrom(0, 5000));
  KeyIndex* const index = table_->store().index;
  {
    MutexLock lock(&index->shard(0)->mutex);
    std::thread([this] {
      for (int epoch = 0; epoch < 4; ++epoch) clock_->Count(kMillion);
    }).join();
  }
  clock_->Count(1);
  uint32_t renewed = 0;
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    KeyIndex::Shard* const shard = index->shard(i);
    ReaderMutexLock lock(&shard->mutex);
    const KeyHash first = KeyHash{i} << (64 - KeyIndex::kShardBits);
    index->VisitHashes(
        shard, first, first | (~KeyHash{0} >> KeyIndex::kShardBits), [&](Location location) {
          const auto* const header =
              reinterpret_cast<const RowHeader*>(table_->store().tier->Row(location));
          renewed += LoadMark(header).usage >> 24 == 4 ? 1 : 0;
        });
  }
  // An eighth of a shard's 78 rows, and a few of the buckets behind: less than two steps.
  EXPECT_GE(renewed, 1u);
  EXPECT_LE(renewed, 18u);
}

TEST_F(HeatTest, ADroppedTablesRowsNoLongerMakeEpochsLong) {
  Table* const other = store_.Create("other", OptionsOf(1));
  const std::vector<Key> keys = KeysFrom(0, kMillion / 8 + 1000);
  ASSERT_TRUE(Upsert(other, keys, RowsOf(std::vector<float>(keys.size()), 1), {}).ok());
  clock_->Count(kMillion);
  EXPECT_EQ(clock_->now(), 0);
  ASSERT_TRUE(store_->DropTable("other").ok());
  clock_->Count(1);
  EXPECT_EQ(clock_->now(), 1);
}

TEST_F(HeatTest, ThreadsTogetherBeginEachEpochOnce) {
  LookUp(KeysFrom(0, 200));
  constexpr uint64_t kPositions = 1 << 14;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (uint64_t i = 0; i < 8 * kMillion / kPositions; ++i) clock_->Count(kPositions);
    });
  }
  for (std::thread& thread : threads) thread.join();
  // 32 million: of each epoch at most the last batches of the others are lost beyond the million.
  EXPECT_LE(clock_->now(), 32);
  EXPECT_GE(clock_->now(), 30);
  EXPECT_EQ(HeatOf(3), 0u);
}

}  // namespace
}  // namespace embank::test::heat_test
