#include "store/index/key_index.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <vector>

#include "tests/support/index_world.h"
#include "tests/support/random.h"

namespace embank::test::key_index_test {
namespace {

constexpr uint32_t kShard = 5;
// Four fifths of the 505 * 7 entries of a first array.
constexpr uint64_t kFirstRowsMax = 2828;
// The entries that can stand at or behind one home: eight buckets.
constexpr uint32_t kHomeRowsMax = 8 * kBucketEntries;

// Rows of table 0 that share q: place and tag are the same whatever the index's size.
std::vector<RowId> RowsOfOneQuotient(uint64_t q, uint32_t count) {
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < count; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, q, i)));
  }
  return ids;
}

void InsertAll(IndexWorld* index, const std::vector<RowId>& ids) {
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index->Insert(id));
}

void ExpectAbsent(IndexWorld* index, const RowId& id) {
  ASSERT_FALSE(index->Holds(id));
  ASSERT_NO_FATAL_FAILURE(index->ExpectFindsRight(id));
}

TEST(KeyIndex, PartsRowsWhoseHashesShareShardHomeAndTag) {
  IndexWorld index;
  // All bits that the index looks at are equal: only the rows tell them apart.
  std::vector<RowId> ids = RowsOfOneQuotient(0x12345678, 4);
  // The same hash in two tables, and the same key in two tables.
  ids.push_back(IndexWorld::IdWithHash(1, ids[0].hash));
  ids.push_back(IndexWorld::IdOf(2, ids[0].key));
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  ASSERT_NO_FATAL_FAILURE(
      ExpectAbsent(&index, IndexWorld::IdWithHash(2, HashAt(kShard, 0x12345678, 0))));
  for (const RowId& id : ids) {
    ASSERT_NO_FATAL_FAILURE(index.Erase(id));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
    ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, id));
  }
}

TEST(KeyIndex, PartsOneKeyOfTwoTablesByTheTableInTheRow) {
  IndexWorld index;
  const RowId one = IndexWorld::IdOf(0, IndexWorld::kTwinKey);
  const RowId other = IndexWorld::IdOf(2, IndexWorld::kTwinKey);
  ASSERT_EQ(one.hash ^ other.hash, uint64_t{1} << 24);
  ASSERT_NO_FATAL_FAILURE(index.Insert(one));
  ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, other));
  ASSERT_NO_FATAL_FAILURE(index.Insert(other));
  ASSERT_NO_FATAL_FAILURE(index.Erase(one));
  ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, one));
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

TEST(KeyIndex, FindsRowsWithTheTagOfEmptyEntries) {
  IndexWorld index;
  const uint64_t q = QuotientWithAllOnesTag(100, kFirstBuckets);
  const std::vector<RowId> ids = RowsOfOneQuotient(q, 20);
  // Ten of them stand in two buckets, between empty entries.
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, ids[i]));
    ASSERT_NO_FATAL_FAILURE(index.Insert(ids[i]));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
  for (size_t i = 10; i < 20; ++i) ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, ids[i]));
  for (size_t i = 0; i < 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[i]));
    ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, ids[i]));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
}

TEST(KeyIndex, ErasesFromEveryPlaceOfARunBehindTheLastHome) {
  // 20 rows at home in the last home, 40 in those before: some stand behind the array's end.
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < 60; ++i) {
    const uint32_t home = kFirstBuckets - 1 - (i < 20 ? 0 : i % 4);
    ids.push_back(IndexWorld::IdWithHash(
        0, HashAt(kShard, FirstQuotientAt(home, kFirstBuckets) + i * 1000, i)));
  }
  for (size_t victim = 0; victim < ids.size(); victim += 3) {
    IndexWorld index;
    ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[victim]));
    ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, ids[victim]));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound()) << "after erasing " << victim;
    for (size_t i = ids.size(); i-- > 0;) ASSERT_NO_FATAL_FAILURE(index.Erase(ids[i]));
    ASSERT_EQ(index.rows(), 0u);
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
}

// ---- overflow ----

TEST(KeyIndex, AHomeTakesEightBucketsOfRowsAndRefusesOneMoreThatNoGrowthCanPart) {
  for (const uint64_t q : {uint64_t{0}, uint64_t{0x80000001}, kQuotients - 1}) {
    IndexWorld index;
    const std::vector<RowId> ids = RowsOfOneQuotient(q, kHomeRowsMax);
    ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
    EXPECT_EQ(index.FarthestOf(kShard), kDisplacementMax);
    const RowId one_more = IndexWorld::IdWithHash(1, ids[0].hash);
    for (int attempt = 0; attempt < 3; ++attempt) {
      EXPECT_EQ(index.TryInsert(one_more).code(), StatusCode::kResourceExhausted);
      ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
      ASSERT_NO_FATAL_FAILURE(ExpectAbsent(&index, one_more));
    }
    // Rows elsewhere are not refused, and one that goes makes space.
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[17]));
    ASSERT_NO_FATAL_FAILURE(index.Insert(one_more));
    ASSERT_NO_FATAL_FAILURE(
        index.Insert(IndexWorld::IdWithHash(1, HashAt(kShard, q ^ 0x40000000))));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
}

TEST(KeyIndex, RefusedRowsDoNotMakeTheIndexGrowWithoutEnd) {
  IndexWorld index;
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, RowsOfOneQuotient(7777777, kHomeRowsMax)));
  const RowId one_more = IndexWorld::IdWithHash(1, HashAt(kShard, 7777777));
  for (int attempt = 0; attempt < 12; ++attempt) {
    EXPECT_EQ(index.TryInsert(one_more).code(), StatusCode::kResourceExhausted);
  }
  EXPECT_LE(index->memory()->bytes(), 4 * kHugePageBytes) << "for 56 rows";
}

// 50 rows that stay in home 0 whatever the size of the array, and six of one q, which need as many
// empty entries when they are moved: there is none.
std::vector<RowId> RowsThatFillTheFirstHome() {
  std::vector<RowId> ids = RowsOfOneQuotient(5, 6);
  for (uint32_t i = 0; i < kHomeRowsMax - 6; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, 1000 + i, i)));
  }
  return ids;
}

TEST(KeyIndex, GrowingLosesNoRowOfAHomeThatIsFull) {
  IndexWorld index;
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, RowsThatFillTheFirstHome()));
  for (uint32_t attempt = 0; attempt < 3; ++attempt) {
    const RowId one_more = IndexWorld::IdWithHash(1, HashAt(kShard, 3 + attempt));
    EXPECT_FALSE(index.TryInsert(one_more).ok());
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
}

// Rows that make a shard grow, far from the first homes.
std::vector<RowId> RowsFarFromTheFirstHomes() {
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < 6000; ++i) {
    const uint64_t q = (i * uint64_t{0x9E3779B1} % kQuotients) | uint64_t{1} << 28;
    ids.push_back(IndexWorld::IdWithHash(1, HashAt(kShard, q, i)));
  }
  return ids;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kErasesPerLook = 200;
#else
constexpr uint64_t kErasesPerLook = 40;
#endif

// The shard shrinks around those that stay.
void EraseAll(IndexWorld* index, const std::vector<RowId>& ids) {
  for (const RowId& id : ids) {
    ASSERT_NO_FATAL_FAILURE(index->Erase(id));
    if (index->rows() % kErasesPerLook != 0) continue;
    ASSERT_NO_FATAL_FAILURE(index->ExpectAllFound());
  }
  ASSERT_NO_FATAL_FAILURE(index->ExpectAllFound());
}

TEST(KeyIndex, ShrinkingLosesNoRowOfAHomeThatIsFull) {
  IndexWorld index;
  const std::vector<RowId> others = RowsFarFromTheFirstHomes();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, others));
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, RowsThatFillTheFirstHome()));
  ASSERT_NO_FATAL_FAILURE(EraseAll(&index, others));
}

TEST(KeyIndex, ShrinkingFollowsRowsThatItPushedOnItself) {
  IndexWorld index;
  const std::vector<RowId> others = RowsFarFromTheFirstHomes();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, others));
  const uint64_t home_1 = FirstQuotientAt(1, index->shard(kShard)->high_buckets);
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < 7; ++i)
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, 1000 + i)));
  // The lowest last, so that those which move first stand farthest.
  for (uint32_t i = 0; i < 9; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, home_1 + 8 - i)));
  }
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  ASSERT_NO_FATAL_FAILURE(EraseAll(&index, others));
}

TEST(KeyIndex, AHomeThatWasMovedInPartIsTriedAgain) {
  IndexWorld index;
  std::vector<RowId> ids = RowsOfOneQuotient(500'000, 6);
  for (uint32_t i = 0; i < kHomeRowsMax - 6; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, 1000 + 1000 * i, i)));
  }
  const std::vector<RowId> others = RowsFarFromTheFirstHomes();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, others));
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  ASSERT_NO_FATAL_FAILURE(EraseAll(&index, others));
  // The shrinking stands in the middle of the first home.
  const KeyIndex::Shard& shard = *index->shard(kShard);
  EXPECT_NE(shard.low_buckets, shard.high_buckets);
  EXPECT_GT(shard.boundary, 1000u);
  EXPECT_LE(shard.boundary, 500'000u);
}

TEST(KeyIndex, ARowThatFindsNoSpaceWhileShrinkingStaysWhereItWas) {
  IndexWorld index;
  const std::vector<RowId> others = RowsFarFromTheFirstHomes();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, others));
  const uint64_t home_1 = FirstQuotientAt(1, index->shard(kShard)->high_buckets);
  // More than a home holds, once homes 0 and 1 are one; each of a q of its own, so that they are
  // moved one by one, and displaced before.
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < kHomeRowsMax - 6; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, 1000 + i)));
  }
  for (uint32_t i = 0; i < 12; ++i) {
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, home_1 + i)));
  }
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  ASSERT_NO_FATAL_FAILURE(EraseAll(&index, others));
  const KeyIndex::Shard& shard = *index->shard(kShard);
  EXPECT_NE(shard.low_buckets, shard.high_buckets) << "nothing was in its way";
  EXPECT_GT(shard.boundary, home_1);
  EXPECT_LT(shard.boundary, home_1 + 12);
}

// Rows of home 300 of a first array, in two homes of the next larger one.
std::vector<RowId> RowsThatGrowthCanPart() {
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < kHomeRowsMax + 6; ++i) {
    ids.push_back(IndexWorld::IdWithHash(
        0, HashAt(kShard, FirstQuotientAt(300, kFirstBuckets) + i * 100'000, i)));
  }
  return ids;
}

TEST(KeyIndex, AFullHomeThatGrowthCanPartMakesAHalfFullShardGrow) {
  IndexWorld index;
  for (uint32_t i = 0; i < kFirstBuckets * kBucketEntries / 2; ++i) {
    const uint64_t q = FirstQuotientAt(i % 280, kFirstBuckets);
    ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdWithHash(1, HashAt(kShard, q + i, i))));
  }
  const std::vector<RowId> ids = RowsThatGrowthCanPart();
  ASSERT_EQ(PaperPlaceOf(QuotientIn(ids.back().hash), kFirstBuckets).home, 300u);
  ASSERT_EQ(index->shard(kShard)->high_buckets, kFirstBuckets);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  EXPECT_GT(index->shard(kShard)->high_buckets, kFirstBuckets);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// Keys that were chosen to share a home take no more memory than others.
TEST(KeyIndex, AFullHomeOfAnEmptyShardRefusesRatherThanGrow) {
  IndexWorld index;
  uint32_t refused = 0;
  for (const RowId& id : RowsThatGrowthCanPart()) refused += index.TryInsert(id).ok() ? 0 : 1;
  EXPECT_EQ(refused, 6u);
  EXPECT_EQ(index->shard(kShard)->high_buckets, kFirstBuckets);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, TheFarthestFirstKeepsRowsNearTheirHomes) {
  IndexWorld index;
  Random random(9);
  for (uint64_t i = 0; i < kFirstRowsMax; ++i) {
    const KeyHash hash = HashAt(kShard, random.Below(kQuotients), static_cast<uint32_t>(i));
    ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdWithHash(0, hash)));
  }
  EXPECT_EQ(index->shard(kShard)->high_buckets, kFirstBuckets) << "grew before it was full";
  EXPECT_LE(index.FarthestOf(kShard), 3u);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(KeyIndex, AFloodPushesOthersOnAndLosesNone) {
  IndexWorld index;
  // Every home around has a row or two before the flood comes.
  std::vector<RowId> before;
  for (uint32_t i = 0; i < 30; ++i) {
    const uint64_t q = FirstQuotientAt(190 + i / 2, kFirstBuckets) + i;
    before.push_back(IndexWorld::IdWithHash(1, HashAt(kShard, q, i)));
  }
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, before));
  const std::vector<RowId> flood =
      RowsOfOneQuotient(FirstQuotientAt(197, kFirstBuckets) + 99, kHomeRowsMax);
  for (const RowId& id : flood) {
    if (!index.TryInsert(id).ok()) break;
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
  EXPECT_GT(index.rows(), before.size() + 30);
  for (const RowId& id : flood) ASSERT_NO_FATAL_FAILURE(index.Erase(id));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  EXPECT_EQ(index.rows(), before.size());
}

// Rows whose hashes the index cannot tell apart, some of them moved to another tier. An entry there
// matches each of them, and all that may be a row's are visited.
TEST(KeyIndex, RowsOnAnotherTierAreFoundByTheirTagsAlone) {
  IndexWorld index;
  const std::vector<RowId> ids = RowsOfOneQuotient(0x12345678, 3);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  KeyIndex::Shard* const shard = index.ShardOf(ids[0]);
  MutexLock lock(&shard->mutex);
  const auto matches = [&](const RowId& id) {
    shard->mutex.AssertHeld();
    std::set<uint64_t> locations;
    index->VisitMatches(shard, id, [&](const Match& match) {
      EXPECT_TRUE(match.IsCurrent());
      locations.insert(match.location().units);
      return false;
    });
    return locations;
  };
  const Location in_memory = index->Find(ids[1]).location();
  EXPECT_EQ(matches(ids[1]), std::set<uint64_t>{in_memory.units});

  const Match before = index->Find(ids[0]);
  index->Move(shard, ids[0].hash, before, LocationIn(Tier::kSsd, 77));
  EXPECT_FALSE(before.IsCurrent()) << "whoever has read the row by it looks again";
  const Match moved = index->Find(ids[0]);
  ASSERT_TRUE(moved.any());
  EXPECT_EQ(moved.location(), LocationIn(Tier::kSsd, 77));
  EXPECT_EQ(moved.location().tier(), Tier::kSsd);
  EXPECT_EQ(index->Confirm(moved, ids[0]).location(), LocationIn(Tier::kSsd, 77));
  EXPECT_EQ(matches(ids[0]), std::set<uint64_t>{LocationIn(Tier::kSsd, 77).units});
  EXPECT_EQ(matches(ids[1]),
            (std::set<uint64_t>{in_memory.units, LocationIn(Tier::kSsd, 77).units}));
  const RowId stranger = RowsOfOneQuotient(0x12345678, 4)[3];
  EXPECT_EQ(matches(stranger), std::set<uint64_t>{LocationIn(Tier::kSsd, 77).units});
  EXPECT_TRUE(matches(RowsOfOneQuotient(0x12345679, 1)[0]).empty());

  int visits = 0;
  index->VisitMatches(shard, ids[1], [&](const Match&) { return ++visits == 1; });
  EXPECT_EQ(visits, 1) << "one was enough";

  // And back again, and out.
  index->Move(shard, ids[0].hash, moved, before.location());
  EXPECT_EQ(index->Find(ids[0]).location(), before.location());
  EXPECT_TRUE(matches(stranger).empty());
  index->Move(shard, ids[0].hash, index->Find(ids[0]), LocationIn(Tier::kSsd, 78));
  index->Erase(shard, ids[0].hash, index->Find(ids[0]));
  EXPECT_FALSE(index->Find(ids[0]).any());
  EXPECT_EQ(shard->rows, 2u);
}

// Growth moves entries without their rows: also those that are not in memory.
TEST(KeyIndex, RowsOnAnotherTierSurviveGrowthAndShrinking) {
  IndexWorld index;
  constexpr Key kRows = 40'000;
  std::map<Key, Location> moved;
  for (Key key = 0; key < kRows; ++key) {
    const RowId id = IndexWorld::IdOf(0, key);
    ASSERT_NO_FATAL_FAILURE(index.Insert(id));
    if (key % 2 == 0) continue;
    KeyIndex::Shard* const shard = index.ShardOf(id);
    MutexLock lock(&shard->mutex);
    const Location logged_at = LocationIn(Tier::kSsd, key);
    index->Move(shard, id.hash, index->Find(id), logged_at);
    moved[key] = logged_at;
  }
  const auto expect_all = [&](Key first) {
    for (Key key = first; key < kRows; ++key) {
      const RowId id = IndexWorld::IdOf(0, key);
      if (key % 2 == 0) {
        ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
      } else {
        const EpochTable::Guard guard(index.epochs());
        ASSERT_EQ(index->Find(id).location(), moved.at(key));
      }
    }
  };
  ASSERT_NO_FATAL_FAILURE(expect_all(0));
  for (Key key = 0; key < kRows - 500; ++key) {
    const RowId id = IndexWorld::IdOf(0, key);
    if (key % 2 == 0) {
      ASSERT_NO_FATAL_FAILURE(index.Erase(id));
      continue;
    }
    KeyIndex::Shard* const shard = index.ShardOf(id);
    MutexLock lock(&shard->mutex);
    index->Erase(shard, id.hash, index->Find(id));
  }
  ASSERT_NO_FATAL_FAILURE(expect_all(kRows - 500));
}

TEST(KeyIndexDeathTest, InsertingWithoutSpaceIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  IndexWorld index;
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, RowsOfOneQuotient(3, kHomeRowsMax)));
  KeyIndex::Shard* const shard = index->shard(kShard);
  MutexLock lock(&shard->mutex);
  EXPECT_DEATH(index->Insert(shard, HashAt(kShard, 3, 99), {0}), "broken");
}

// Without memory to grow by a quarter an array grows by a page, again and again; with seed 17 two
// rows of the same q come to a home in whose neighbourhood there is no empty position.
TEST(KeyIndex, GrowsByPagesUntilTheLastIsFull) {
  IndexWorld index(56 * kHugePageBytes);
  const KeyIndex::Shard& shard = *index->shard(kShard);
  Random random(17);
  uint64_t rows = 0;
  const auto insert = [&] {
    const KeyHash hash = HashAt(kShard, random.Below(kQuotients), static_cast<uint32_t>(rows));
    return index.TryInsert(IndexWorld::IdWithHash(0, hash)).ok();
  };
  while (insert()) ++rows;
  ASSERT_EQ(shard.low_buckets, shard.high_buckets) << "growth got stuck";
  const double places = kBucketEntries * static_cast<double>(shard.high_buckets);
  EXPECT_NEAR(static_cast<double>(rows) / places, 0.83, 0.001);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

}  // namespace
}  // namespace embank::test::key_index_test
