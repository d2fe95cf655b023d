// Visits of the index: by table, through EraseRows and a filter, and by range, in every state of
// growing and shrinking.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>
#include <vector>

#include "store/index/key_index.h"
#include "tests/support/index_world.h"
#include "tests/support/random.h"

namespace embank::test::index_visits_test {
namespace {

constexpr uint32_t kShard = 5;
constexpr uint32_t kRangesPerShard = kRangeCount / KeyIndex::kShardCount;

void InsertAll(IndexWorld* index, const std::vector<RowId>& ids) {
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index->Insert(id));
}

// Rows of two tables, of which some stand behind the last home and some in crowds.
std::vector<RowId> RowsOfTwoTables() {
  std::vector<RowId> ids;
  Random random(3);
  for (uint32_t i = 0; i < 30; ++i) {
    ids.push_back(IndexWorld::IdWithHash(i % 2, HashAt(kShard, kQuotients - 1 - i % 3, i)));
  }
  for (uint32_t i = 0; i < 60; ++i) {
    const auto table = static_cast<TableId>(i % 2);
    if (i < 30) ids.push_back(IndexWorld::IdWithHash(table, HashAt(kShard, i, 100 + i)));
    const uint64_t q = random.Below(kQuotients);
    ids.push_back(IndexWorld::IdWithHash(table, HashAt(kShard, q, 200 + i)));
  }
  return ids;
}

// Takes the rows of a table for which `goes` says true out of a shard, and says which were visited.
template <typename Goes>
std::multiset<Key> Visit(IndexWorld* index, uint32_t number, TableId table, Goes goes) {
  std::multiset<Key> visited;
  std::vector<Location> taken;
  KeyIndex::Shard* const shard = (*index)->shard(number);
  {
    MutexLock lock(&shard->mutex);
    (*index)->EraseRows(shard, [&](Location slot) {
      const RowId id = index->IdAt(slot);
      if (id.table != table) return false;
      visited.insert(id.key);
      if (!goes(id.key)) return false;
      taken.push_back(slot);
      return true;
    });
  }
  for (const Location slot : taken) index->Drop(index->IdAt(slot), slot);
  return visited;
}

TEST(IndexVisits, MeetEveryRowOfATableOnce) {
  IndexWorld index;
  const std::vector<RowId> ids = RowsOfTwoTables();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const std::multiset<Key> visited = Visit(&index, kShard, 1, [](Key) { return false; });
  EXPECT_EQ(visited.size(), ids.size() / 2);
  EXPECT_EQ(std::set<Key>(visited.begin(), visited.end()).size(), ids.size() / 2);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(IndexVisits, TakeOutAllRowsOfATableOnceEachAndNoOthers) {
  IndexWorld index;
  const std::vector<RowId> ids = RowsOfTwoTables();
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  EXPECT_EQ(Visit(&index, kShard, 1, [](Key) { return true; }).size(), ids.size() / 2);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  for (const RowId& id : ids) {
    ASSERT_EQ(index.Holds(id), id.table == 0);
    ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
  }
}

TEST(IndexVisits, TakeOutExactlyTheRowsThatTheVisitorNames) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    IndexWorld index;
    const std::vector<RowId> ids = RowsOfTwoTables();
    ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
    const auto goes = [seed](Key key) { return Random(key + seed).OneIn(2); };
    Visit(&index, kShard, 0, goes);
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
    for (const RowId& id : ids) {
      ASSERT_EQ(index.Holds(id), id.table == 1 || !goes(id.key)) << "seed " << seed;
      ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
    }
  }
}

// Whatever size the array has: a visit that empties it ends, and leaves it usable.
TEST(IndexVisits, EmptyAShardOfAnySize) {
  for (const uint32_t rows : {10u, 2000u, 2900u, 4000u, 6000u, 9000u, 12'000u, 16'000u}) {
    IndexWorld index;
    Random random(rows);
    std::vector<RowId> ids;
    for (uint32_t i = 0; i < rows; ++i) {
      ids.push_back(IndexWorld::IdWithHash(0, HashAt(kShard, random.Below(kQuotients), i)));
    }
    ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
    const uint64_t full_bytes = index->memory()->bytes();
    EXPECT_EQ(Visit(&index, kShard, 0, [](Key) { return true; }).size(), rows);
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
    EXPECT_EQ(index.rows(), 0u);
    index->memory()->Release();
    EXPECT_EQ(index->memory()->bytes(), kHugePageBytes) << "of " << full_bytes;
    for (uint32_t i = 0; i < rows; i += 7) ASSERT_NO_FATAL_FAILURE(index.Insert(ids[i]));
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
}

// ---- ranges ----

using NamedRows = std::multiset<std::pair<TableId, Key>>;

// The rows visited for a range, which must be its own.
NamedRows RowsOfRange(IndexWorld* index, uint32_t range) {
  NamedRows rows;
  const KeyHash first = KeyHash{range} << (64 - kRangeBits);
  const KeyHash last = first | (~KeyHash{0} >> kRangeBits);
  KeyIndex::Shard* const shard = (*index)->shard(KeyIndex::ShardOf(first));
  ReaderMutexLock lock(&shard->mutex);
  (*index)->VisitHashes(shard, first, last, [&](Location slot) {
    const RowId id = index->IdAt(slot);
    EXPECT_EQ(RangeOf(id.hash), range) << "a row of another range";
    rows.emplace(id.table, id.key);
  });
  return rows;
}

// The rows that a shard's ranges must give, range by range.
class ExpectedRanges {
 public:
  explicit ExpectedRanges(uint32_t number)
      : first_(number * kRangesPerShard), ranges_(kRangesPerShard) {}

  void Add(const RowId& id) { At(id).emplace(id.table, id.key); }
  void Remove(const RowId& id) { At(id).erase({id.table, id.key}); }
  void Compare(IndexWorld* index) const {
    for (uint32_t i = 0; i < kRangesPerShard; ++i) {
      ASSERT_EQ(RowsOfRange(index, first_ + i), ranges_[i]) << "range " << first_ + i;
    }
  }

 private:
  NamedRows& At(const RowId& id) { return ranges_[RangeOf(id.hash) - first_]; }

  const uint32_t first_;
  std::vector<NamedRows> ranges_;
};

// Rows at both ends of every range, crowds at some ends, and others anywhere.
std::vector<RowId> RowsOfAllRanges(uint32_t number, uint32_t rows) {
  std::vector<RowId> ids;
  Random random(rows);
  constexpr uint64_t kRangeQuotients = kQuotients / kRangesPerShard;
  for (uint32_t range = 0; range < kRangesPerShard; ++range) {
    const uint64_t first = range * kRangeQuotients;
    const uint64_t last = first + kRangeQuotients - 1;
    ids.push_back(IndexWorld::IdWithHash(0, HashAt(number, first, 1)));
    ids.push_back(IndexWorld::IdWithHash(1, HashAt(number, last, 2)));
    for (uint32_t i = 0; range % 21 == 0 && i < 20; ++i) {
      ids.push_back(IndexWorld::IdWithHash(2, HashAt(number, last - i, 3)));
    }
  }
  for (uint32_t i = 0; ids.size() < rows; ++i) {
    const auto table = static_cast<TableId>(i % IndexWorld::kTables);
    ids.push_back(IndexWorld::IdWithHash(table, HashAt(number, random.Below(kQuotients), i)));
  }
  return ids;
}

// Changes a shard and compares its ranges while its boundary moves, and now and then besides.
class RangeWalk {
 public:
  explicit RangeWalk(uint32_t number) : shard_(index_->shard(number)), expected_(number) {}

  void Insert(const RowId& id) {
    ASSERT_NO_FATAL_FAILURE(index_.Insert(id));
    expected_.Add(id);
    Compare(&growing_);
  }
  void Erase(const RowId& id) {
    ASSERT_NO_FATAL_FAILURE(index_.Erase(id));
    expected_.Remove(id);
    Compare(&shrinking_);
  }
  IndexWorld* index() { return &index_; }
  size_t boundaries_growing() const { return growing_.size(); }
  size_t boundaries_shrinking() const { return shrinking_.size(); }

 private:
  void Compare(std::set<std::pair<uint32_t, uint64_t>>* boundaries) {
    const uint32_t high = shard_->high_buckets;
    const bool moves = shard_->low_buckets != high;
    if (moves) boundaries->emplace(high, shard_->boundary);
    if (!moves && steps_++ % 500 != 0) return;
    ASSERT_NO_FATAL_FAILURE(expected_.Compare(&index_));
  }

  IndexWorld index_;
  const KeyIndex::Shard* const shard_;
  ExpectedRanges expected_;
  std::set<std::pair<uint32_t, uint64_t>> growing_;
  std::set<std::pair<uint32_t, uint64_t>> shrinking_;
  uint32_t steps_ = 0;
};

TEST(IndexVisits, GiveEveryRangeWholeInEveryStateOfGrowingAndShrinking) {
#if defined(__SANITIZE_ADDRESS__)
  constexpr uint32_t kNumbers[] = {KeyIndex::kShardCount - 1};
#else
  constexpr uint32_t kNumbers[] = {0, kShard, KeyIndex::kShardCount - 1};
#endif
  for (const uint32_t number : kNumbers) {
    RangeWalk walk(number);
    const std::vector<RowId> ids = RowsOfAllRanges(number, 6000);
    for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(walk.Insert(id));
    ASSERT_NO_FATAL_FAILURE(walk.index()->ExpectAllFound());
    for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(walk.Erase(id));
    ASSERT_NO_FATAL_FAILURE(walk.index()->ExpectAllFound());
    EXPECT_GT(walk.boundaries_growing(), 200u);
    EXPECT_GT(walk.boundaries_shrinking(), 200u);
  }
}

TEST(IndexVisits, GiveEveryRangeOfEveryShard) {
  IndexWorld index;
  Random random(1);
  std::map<uint32_t, NamedRows> expected;
  for (uint64_t range = 0; range < kRangeCount; ++range) {
    for (const uint64_t low : {uint64_t{0}, random.Bits() >> 12, (uint64_t{1} << 52) - 1}) {
      const auto table = static_cast<TableId>(random.Below(IndexWorld::kTables));
      const RowId id = IndexWorld::IdWithHash(table, (range << 52) | low);
      ASSERT_NO_FATAL_FAILURE(index.Insert(id));
      expected[static_cast<uint32_t>(range)].emplace(id.table, id.key);
    }
  }
  for (uint32_t range = 0; range < kRangeCount; ++range) {
    ASSERT_EQ(RowsOfRange(&index, range), expected[range]) << "range " << range;
  }
}

}  // namespace
}  // namespace embank::test::index_visits_test
