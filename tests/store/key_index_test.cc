#include "store/key_index.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "tests/support/index_world.h"
#include "tests/support/random.h"

namespace embank::test {
namespace {

constexpr uint32_t kShard = 5;
constexpr uint64_t kFirstRowsMax = 384;  // three quarters of the 512 entries of a page
constexpr uint32_t kLastHome = 0xFFFFFFFF;

// Rows with hashes spread over one shard.
std::vector<RowId> SpreadRows(TableId table, uint32_t shard, uint32_t count) {
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < count; ++i) {
    ids.push_back(IndexWorld::IdWithHash(table, HashAt(shard, i * 0x9E3779B9u, 0, i)));
  }
  return ids;
}

void InsertAll(IndexWorld* index, const std::vector<RowId>& ids) {
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index->Insert(id));
}

TEST(KeyIndex, PartsRowsWhoseHashesShareShardHomeAndTag) {
  IndexWorld index;
  // All bits that the index looks at are equal: only the rows tell them apart.
  std::vector<RowId> ids;
  for (uint32_t between = 0; between < 4; ++between) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, 77, between, 99)));
  }
  // The same hash in two tables, and the same key in two tables.
  ids.push_back(IndexWorld::IdWithHash(1, ids[0].hash));
  ids.push_back(IndexWorld::IdOf(2, ids[0].key));
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  ASSERT_NO_FATAL_FAILURE(
      index.ExpectFindsRight(IndexWorld::IdWithHash(2, HashAt(kShard, 77, 0, 99))));
  for (const RowId& id : ids) {
    ASSERT_NO_FATAL_FAILURE(index.Erase(id));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
    ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
  }
}

TEST(KeyIndex, PartsOneKeyOfTwoTablesByTheTableInTheRow) {
  IndexWorld index;
  const RowId one = IndexWorld::IdOf(0, IndexWorld::kTwinKey);
  const RowId other = IndexWorld::IdOf(2, IndexWorld::kTwinKey);
  ASSERT_EQ(one.hash ^ other.hash, uint64_t{1} << 24);
  ASSERT_NO_FATAL_FAILURE(index.Insert(one));
  ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(other));
  ASSERT_NO_FATAL_FAILURE(index.Insert(other));
  ASSERT_NO_FATAL_FAILURE(index.Erase(one));
  ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(one));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, HoldsTheSmallestAndLargestKeyAndHash) {
  IndexWorld index;
  for (const Key key : {Key{0}, ~Key{0}}) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdOf(0, key)));
  }
  for (const KeyHash hash : {KeyHash{0}, ~KeyHash{0}}) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdWithHash(1, hash)));
  }
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, ErasesFromEveryPlaceOfARunThatWrapsAround) {
  // 20 rows at home in the last place, behind them 10 at home in the first: one run over the end.
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < 20; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, kLastHome - i, 0, i)));
  }
  for (uint32_t i = 0; i < 10; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, i, 0, 1000 + i)));
  }
  for (size_t victim = 0; victim < ids.size(); ++victim) {
    IndexWorld index;
    ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[victim]));
    ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(ids[victim]));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound()) << "after erasing " << victim;
    for (size_t i = ids.size(); i-- > 0;) ASSERT_NO_FATAL_FAILURE(index.Erase(ids[i]));
    ASSERT_EQ(index.rows(), 0u);
  }
}

TEST(KeyIndex, KeepsAllRowsThroughSeveralGrowths) {
  IndexWorld index;
  const uint64_t empty_bytes = index->memory_bytes();
  EXPECT_EQ(empty_bytes, KeyIndex::EstimateBytes(0));
  const std::vector<RowId> ids = SpreadRows(0, kShard, 8 * kFirstRowsMax + 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(ids[i]));
    if (i > kFirstRowsMax) continue;
    EXPECT_EQ(index->memory_bytes(), empty_bytes + (i < kFirstRowsMax ? 0 : kSmallPageBytes));
  }
  EXPECT_EQ(index->memory_bytes(), empty_bytes + 15 * kSmallPageBytes);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, AFailedGrowthLeavesAllAsItWas) {
  IndexWorld index;
  std::vector<RowId> ids = SpreadRows(0, kShard, kFirstRowsMax + 1);
  const RowId one_more = ids.back();
  ids.pop_back();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const uint64_t used_bytes = index.budget()->used_bytes();
  KeyIndex::Shard* const shard = index->shard(kShard);
  index.memory()->FailEveryCall(true);
  for (int attempt = 0; attempt < 2; ++attempt) {
    MutexLock lock(&shard->mutex);
    EXPECT_EQ(index->ReserveOne(shard).code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(index.budget()->used_bytes(), used_bytes);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(one_more));
  // An erased row makes room without any memory.
  ASSERT_NO_FATAL_FAILURE(index.Erase(ids[7]));
  ASSERT_NO_FATAL_FAILURE(index.Insert(one_more));
  index.memory()->FailEveryCall(false);
  ASSERT_NO_FATAL_FAILURE(index.Insert(ids[7]));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndexDeathTest, InsertingWithoutRoomIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  KeyIndex::Shard* const shard = index->shard(kShard);
  MutexLock lock(&shard->mutex);
  EXPECT_DEATH(index->Insert(shard, IndexWorld::IdWithHash(0, HashAt(kShard, 3, 3, 3)), {0}),
               "broken");
}

TEST(KeyIndex, GrowsWithTheBudgetOfEmptyPages) {
  // What the index and its rows take before the growth, and two pages of rows.
  uint64_t limit_bytes = 0;
  {
    IndexWorld measured;
    limit_bytes = measured.budget()->used_bytes() + 2 * kHugePageBytes;
  }
  IndexWorld index(limit_bytes);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, SpreadRows(0, kShard, kFirstRowsMax)));
  const SlotClass wide = index.tier()->AddClass(kHugePageBytes);
  Location slot;
  ASSERT_EQ(index.tier()->Allocate(wide, {&slot, 1}), 1u);
  EXPECT_EQ(index.budget()->used_bytes(), limit_bytes);
  KeyIndex::Shard* const shard = index->shard(kShard);
  {
    MutexLock lock(&shard->mutex);
    EXPECT_FALSE(index->ReserveOne(shard).ok()) << "the page is in use";
  }
  index.tier()->Free(wide, {&slot, 1});
  EXPECT_EQ(index.budget()->used_bytes(), limit_bytes);
  {
    MutexLock lock(&shard->mutex);
    EXPECT_TRUE(index->ReserveOne(shard).ok());
  }
  EXPECT_EQ(index.budget()->used_bytes(), limit_bytes - kHugePageBytes + kSmallPageBytes);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, FailsToOpenWithoutTrace) {
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    FailingMemory memory;
    MemoryBudget budget(0);
    auto tier = DramTier::Create(&memory, &budget, kHugePageBytes);
    ASSERT_TRUE(tier.ok());
    const uint64_t tier_bytes = budget.used_bytes();
    memory.FailCall(call);
    const auto index = KeyIndex::Create(&memory, &budget, tier->get());
    if (index.ok()) break;
    ++failed;
    EXPECT_EQ(index.status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_EQ(budget.used_bytes(), tier_bytes) << "call " << call;
  }
  EXPECT_EQ(failed, 1u + KeyIndex::kShardCount);
}

TEST(KeyIndex, TakesNoMoreThanItsEstimate) {
  IndexWorld index;
  Random random(1);
  for (uint64_t rows = 1; rows <= 60'000; ++rows) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdOf(0, random.Bits())));
    if (rows > 3000 && rows % 997 != 0) continue;
    ASSERT_LE(index->memory_bytes(), KeyIndex::EstimateBytes(rows)) << rows << " rows";
  }
  EXPECT_GE(index->memory_bytes() * 2, KeyIndex::EstimateBytes(60'000));
}

TEST(KeyIndex, EstimatesGrowthOfTheOldArraysOfAllThreads) {
  // 100,000 rows: 1,563 a shard, at most 1,761: 4,096 entries, which came from 2,048.
  EXPECT_EQ(KeyIndex::EstimateGrowthBytes(100'000, 1), 2048 * 8u);
  EXPECT_EQ(KeyIndex::EstimateGrowthBytes(100'000, 3), 3 * 2048 * 8u);
  EXPECT_EQ(KeyIndex::EstimateGrowthBytes(100'000, 1000), 64 * 2048 * 8u);
}

// ---- visiting a table ----

// A shard whose rows of two tables lie in runs, one of them over the end of the array.
std::vector<RowId> RowsOfTwoTablesOverTheEnd() {
  std::vector<RowId> ids;
  Random random(3);
  for (uint32_t i = 0; i < 60; ++i) {
    ids.push_back(IndexWorld::IdWithHash(i % 2, HashAt(kShard, kLastHome - i % 3, i, i)));
  }
  for (uint32_t i = 0; i < 60; ++i) {
    ids.push_back(IndexWorld::IdWithHash(i % 2, HashAt(kShard, i, i, 100 + i)));
    const auto home = static_cast<uint32_t>(random.Bits());
    ids.push_back(IndexWorld::IdWithHash(i % 2, HashAt(kShard, home, i, 200 + i)));
  }
  return ids;
}

TEST(KeyIndex, VisitsEveryRowOfATableAndOnlyThose) {
  IndexWorld index;
  const std::vector<RowId> ids = RowsOfTwoTablesOverTheEnd();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  std::multiset<Key> visited;
  KeyIndex::Shard* const shard = index->shard(kShard);
  {
    MutexLock lock(&shard->mutex);
    index->VisitTable(shard, 1, [&](Location slot) {
      EXPECT_EQ(index.IdAt(slot).table, 1);
      visited.insert(index.IdAt(slot).key);
      return false;
    });
  }
  EXPECT_EQ(visited.size(), ids.size() / 2);
  EXPECT_EQ(std::set<Key>(visited.begin(), visited.end()).size(), ids.size() / 2);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, TakesOutAllRowsOfATableOnceEachOverTheEndOfTheArray) {
  IndexWorld index;
  const std::vector<RowId> ids = RowsOfTwoTablesOverTheEnd();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  std::vector<Location> taken;
  KeyIndex::Shard* const shard = index->shard(kShard);
  {
    MutexLock lock(&shard->mutex);
    index->VisitTable(shard, 1, [&](Location slot) {
      taken.push_back(slot);
      return true;
    });
  }
  ASSERT_EQ(taken.size(), ids.size() / 2);
  for (const Location slot : taken) {
    ASSERT_NO_FATAL_FAILURE(index.Forget(index.IdAt(slot), slot));
  }
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
}

TEST(KeyIndex, TakesOutExactlyTheRowsThatTheVisitorNames) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    IndexWorld index;
    const std::vector<RowId> ids = RowsOfTwoTablesOverTheEnd();
    ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
    const auto goes = [seed](Key key) { return Random(key + seed).OneIn(2); };
    std::vector<Location> taken;
    KeyIndex::Shard* const shard = index->shard(kShard);
    {
      MutexLock lock(&shard->mutex);
      index->VisitTable(shard, 0, [&](Location slot) {
        if (!goes(index.IdAt(slot).key)) return false;
        taken.push_back(slot);
        return true;
      });
    }
    for (const Location slot : taken) {
      ASSERT_NO_FATAL_FAILURE(index.Forget(index.IdAt(slot), slot));
    }
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
    for (const RowId& id : ids) {
      const bool stays = id.table == 1 || !goes(id.key);
      ASSERT_EQ(index.Holds(id), stays) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
    }
  }
}

}  // namespace
}  // namespace embank::test
