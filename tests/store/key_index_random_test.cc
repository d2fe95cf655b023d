// The index against std::unordered_map, with keys built to collide: the worst that hashes can do.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <vector>

#include "store/key_index.h"
#include "tests/support/events.h"
#include "tests/support/index_world.h"
#include "tests/support/random.h"

namespace embank::test {
namespace {

// Rows in few shards; each shard has a cluster at one home, one over the end of its array, one at
// its beginning and some anywhere. Tags are few, so that they collide as well.
class Universe {
 public:
  Universe(uint64_t seed, uint32_t shards, uint32_t rows_per_shard) : random_(seed) {
    for (uint32_t shard = 0; shard < shards; ++shard) {
      const auto crowded = static_cast<uint32_t>(random_.Bits());
      for (uint32_t i = 0; i < rows_per_shard; ++i) {
        const uint32_t homes[] = {crowded, 0xFFFFFFFFu - i, i,
                                  static_cast<uint32_t>(random_.Bits()),
                                  static_cast<uint32_t>(random_.Bits())};
        const uint32_t home = homes[random_.Below(std::size(homes))];
        const auto tag = static_cast<uint32_t>(random_.OneIn(2) ? random_.Below(4) : i);
        const auto table = static_cast<TableId>(random_.Below(IndexWorld::kTables));
        Add(IndexWorld::IdWithHash(table, HashAt(shard * 63 % 64, home, i, tag)));
      }
    }
  }
  const RowId& Any() { return ids_[random_.Below(ids_.size())]; }
  const std::vector<RowId>& ids() const { return ids_; }
  Random* random() { return &random_; }

 private:
  // Two draws may give the same row.
  void Add(const RowId& id) {
    if (seen_.emplace(std::pair(id.table, id.key), true).second) ids_.push_back(id);
  }
  Random random_;
  std::vector<RowId> ids_;
  std::map<std::pair<TableId, Key>, bool> seen_;
};

TEST(KeyIndex, AgreesWithAPlainMapOnCollidingKeysWhateverIsDone) {
  Events events;
  for (const char* name : {"inserts", "erases", "erases of absent rows", "growths"}) {
    events.Expect(name);
  }
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    IndexWorld index;
    Universe universe(seed, 3, 900);
    Random* const random = universe.random();
    uint64_t bytes = index->memory_bytes();
    for (int step = 0; step < 12'000; ++step) {
      // Growing and shrinking by turns.
      const uint64_t inserts_of_ten = step / 2000 % 2 == 0 ? 8 : 3;
      const RowId& id = universe.Any();
      if (random->Below(10) >= inserts_of_ten) {
        events.Count(index.Holds(id) ? "erases" : "erases of absent rows");
        ASSERT_NO_FATAL_FAILURE(index.Erase(id)) << "seed " << seed << ", step " << step;
      } else if (!index.Holds(id)) {
        events.Count("inserts");
        ASSERT_NO_FATAL_FAILURE(index.Insert(id)) << "seed " << seed << ", step " << step;
      }
      ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(universe.Any()));
      ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(id));
      if (index->memory_bytes() != bytes) {
        events.Count("growths");
        bytes = index->memory_bytes();
        ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
      }
      if (step % 500 != 0) continue;
      for (const RowId& any : universe.ids()) {
        ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(any)) << "seed " << seed;
      }
    }
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
  std::printf("%s", events.Table().c_str());
  EXPECT_EQ(events.Missing(), "");
}

// The keys that CollectRange must give, by looking at all.
std::vector<Key> KeysOfRange(const IndexWorld& index, const std::vector<RowId>& ids, uint32_t range,
                             TableId table) {
  std::vector<Key> keys;
  for (const RowId& id : ids) {
    if (id.table == table && RangeOf(id.hash) == range && index.Holds(id)) keys.push_back(id.key);
  }
  std::sort(keys.begin(), keys.end());
  return keys;
}

TEST(KeyIndex, CollectsEveryRangeWholeWhileItGrows) {
  IndexWorld index;
  Random random(1);
  // Two rows at the ends of every range, and crowds that spill over into the next ranges.
  std::vector<std::vector<RowId>> by_range(kRangeCount);
  const auto add = [&](KeyHash hash) {
    const RowId id =
        IndexWorld::IdWithHash(static_cast<TableId>(random.Below(IndexWorld::kTables)), hash);
    by_range[RangeOf(hash)].push_back(id);
    if (index.Holds(id)) return;
    ASSERT_NO_FATAL_FAILURE(index.Insert(id));
  };
  for (uint64_t range = 0; range < kRangeCount; ++range) {
    ASSERT_NO_FATAL_FAILURE(add(range << 52));
    ASSERT_NO_FATAL_FAILURE(add((range << 52) | ((uint64_t{1} << 52) - 1)));
  }
  for (const uint64_t crowded : {uint64_t{63}, uint64_t{64}, uint64_t{200}, uint64_t{4095}}) {
    for (uint64_t i = 0; i < 30; ++i) {
      ASSERT_NO_FATAL_FAILURE(add(((crowded + 1) << 52) - 1 - (i << 20)));
    }
  }
  const uint64_t bytes_before = index->memory_bytes();
  uint64_t rows_seen = 0;
  for (uint32_t range = 0; range < kRangeCount; ++range) {
    KeyIndex::Shard* const shard =
        index->shard(KeyIndex::ShardOf(KeyHash{range} << (64 - kRangeBits)));
    for (TableId table = 0; table < IndexWorld::kTables; ++table) {
      std::vector<Key> keys;
      {
        ReaderMutexLock lock(&shard->mutex);
        index->CollectRange(*shard, range, table, &keys);
      }
      std::sort(keys.begin(), keys.end());
      // Equal hashes were added once: the same row may stand in the list twice.
      std::vector<Key> expected = KeysOfRange(index, by_range[range], range, table);
      expected.erase(std::unique(expected.begin(), expected.end()), expected.end());
      ASSERT_EQ(keys, expected) << "range " << range;
      rows_seen += keys.size();
    }
    for (int i = 0; i < 6; ++i) ASSERT_NO_FATAL_FAILURE(add(random.Bits()));
  }
  EXPECT_GT(index->memory_bytes(), bytes_before) << "no shard grew meanwhile";
  EXPECT_GT(rows_seen, 2 * kRangeCount);
}

TEST(KeyIndex, AppendsToTheKeysThatAreThere) {
  IndexWorld index;
  const RowId id = IndexWorld::IdWithHash(0, 0);
  ASSERT_NO_FATAL_FAILURE(index.Insert(id));
  std::vector<Key> keys = {42};
  KeyIndex::Shard* const shard = index->shard(0);
  ReaderMutexLock lock(&shard->mutex);
  index->CollectRange(*shard, 0, 0, &keys);
  EXPECT_EQ(keys, (std::vector<Key>{42, id.key}));
}

}  // namespace
}  // namespace embank::test
