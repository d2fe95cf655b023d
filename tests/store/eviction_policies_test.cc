// Policies of tables in a store with a path: the rows that leave memory, and the policies of a
// reopened store.
#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/write.h"
#include "tests/support/random.h"
#include "tests/support/spill_world.h"

namespace embank::test::eviction_policies_test {
namespace {

Table* CreateBy(SpillWorld* store, const char* name, EvictionPolicy eviction) {
  TableOptions options = OptionsOf(kDim);
  options.eviction = eviction;
  const StatusOr<Table*> table = (*store)->CreateTable(name, options);
  EXPECT_TRUE(table.ok()) << table.status();
  return table.ok() ? *table : nullptr;
}

void Put(Table* table, const std::vector<Key>& keys) {
  ASSERT_TRUE(Upsert(table, keys, RowsOf(RowsOfKeys(keys, 1), kDim), {}).ok());
}
// The steps are small, as evictions need them.
void PutFrom(Table* table, Key first, Key count) {
  for (Key key = first; key < first + count; key += 100) Put(table, KeysFrom(key, 100));
}
void LookUp(Table* table, const std::vector<Key>& keys) {
  std::vector<float> rows(keys.size() * kDim);
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  ASSERT_EQ(rows, RowsOfKeys(keys, 1));
}
uint64_t InMemory(Table* table, const std::vector<Key>& keys) {
  return static_cast<uint64_t>(std::count_if(keys.begin(), keys.end(), [&](Key key) {
    const RowId id = table->IdOf(key, table->HashOf(key));
    return table->store().index->Find(id).location().tier() == Tier::kDram;
  }));
}

// How many of 500 hot rows are in memory when 4,000 others were read, once each.
uint64_t HotBehindAScan(Table* table) {
  constexpr Key kHot = 500;
  for (int round = 0; round < 8; ++round) LookUp(table, KeysFrom(0, kHot));
  for (Key first = 1000; first < 5000; first += 100) LookUp(table, KeysFrom(first, 100));
  return InMemory(table, KeysFrom(0, kHot));
}

TEST(EvictionPolicies, LfuKeepsHotRowsInMemoryThroughAScan) {
  uint64_t in_memory[2];
  for (const EvictionPolicy eviction : {EvictionPolicy::kClock, EvictionPolicy::kLfu}) {
    SpillWorld store(3);
    Table* const table = CreateBy(&store, "t", eviction);
    PutFrom(table, 0, 5000);
    in_memory[eviction == EvictionPolicy::kLfu] = HotBehindAScan(table);
  }
  EXPECT_LT(in_memory[0], 100u);
  EXPECT_GT(in_memory[1], 490u);
}

TEST(EvictionPolicies, TablesOfOneSizeThatDifferShareNoClassAndComeBackSo) {
  SpillWorld store(4);
  Table* lru = CreateBy(&store, "lru", EvictionPolicy::kLru);
  Table* clock = CreateBy(&store, "clock", EvictionPolicy::kClock);
  Table* lfu = CreateBy(&store, "lfu", EvictionPolicy::kLfu);
  EXPECT_NE(lru->slot_class(), clock->slot_class());
  EXPECT_NE(lru->slot_class(), lfu->slot_class());
  PutFrom(lru, 0, 1000);
  PutFrom(clock, 0, 1000);
  PutFrom(lfu, 0, 5000);
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store.Open().ok());
  lru = *store->catalog().Open("lru");
  clock = *store->catalog().Open("clock");
  lfu = *store->catalog().Open("lfu");
  EXPECT_EQ(lru->options().eviction, EvictionPolicy::kLru);
  EXPECT_EQ(clock->options().eviction, EvictionPolicy::kClock);
  EXPECT_EQ(lfu->options().eviction, EvictionPolicy::kLfu);
  EXPECT_NE(lru->slot_class(), clock->slot_class());
  EXPECT_NE(lru->slot_class(), lfu->slot_class());
  // Memory is the one's that fills it first.
  EXPECT_GT(HotBehindAScan(lfu), 490u);
  LookUp(lru, KeysFrom(0, 1000));
  LookUp(clock, KeysFrom(0, 1000));
  EXPECT_EQ(lfu->rows(), 5000u);
  // A table that comes later joins its class.
  EXPECT_EQ(CreateBy(&store, "later", EvictionPolicy::kLfu)->slot_class(), lfu->slot_class());
}

// One key at a time, so that no other order is right: those in memory are of each shard the rows
// used last.
TEST(EvictionPolicies, LruEvictsTheRowsOfAShardThatWereUsedLongestAgo) {
  SpillWorld store(7);
  Table* const table = CreateBy(&store, "t", EvictionPolicy::kLru);
  constexpr Key kKeys = 5000;
  PutFrom(table, 0, kKeys);
  std::vector<uint64_t> last_use(kKeys);
  uint64_t now = 0;
  const auto use = [&](Key key) {
    LookUp(table, {key});
    last_use[key] = ++now;
  };
  for (Key key = 0; key < kKeys; ++key) use(key);
  Random random(7);
  for (int round = 0; round < 20; ++round) {
    for (int i = 0; i < 300; ++i) {
      const Key key = random.Below(random.OneIn(2) ? 500 : kKeys);
      const bool in_memory = InMemory(table, {key}) == 1;
      if (random.OneIn(4)) {
        Put(table, {key});  // no use of a row that is there, but it is promoted
        if (!in_memory) last_use[key] = ++now;
      } else {
        use(key);
      }
    }
    std::vector<uint64_t> last_use_in_log(KeyIndex::kShardCount, 0);
    std::vector<Key> in_memory;
    for (Key key = 0; key < kKeys; ++key) {
      uint64_t& latest = last_use_in_log[KeyIndex::ShardOf(table->HashOf(key))];
      if (InMemory(table, {key}) == 1) {
        in_memory.push_back(key);
      } else {
        latest = std::max(latest, last_use[key]);
      }
    }
    for (const Key key : in_memory) {
      ASSERT_GT(last_use[key], last_use_in_log[KeyIndex::ShardOf(table->HashOf(key))])
          << "key " << key << " in round " << round;
    }
    ASSERT_GT(in_memory.size(), 500u);
    ASSERT_LT(in_memory.size(), 4000u);
  }
}

TEST(EvictionPolicies, UnderLruPinnedRowsThatArePassedOverKeepTheirPlaces) {
  SpillWorld store(8);
  Table* const table = CreateBy(&store, "t", EvictionPolicy::kLru);
  PutFrom(table, 0, 4000);
  std::vector<Key> pinned;
  for (Key key = 0; key < 4000 && pinned.size() < 60; ++key) {
    if (InMemory(table, {key}) == 0) pinned.push_back(key);
  }
  ASSERT_EQ(pinned.size(), 60u);
  ASSERT_TRUE(Prefetch(table, pinned).ok());
  ASSERT_EQ(InMemory(table, pinned), 60u);
  // All others leave; these are the rows that were used longest ago.
  PutFrom(table, 10'000, 4000);
  ASSERT_EQ(InMemory(table, pinned), 60u);
  for (uint32_t batch = 0; batch < Pins::kBatches; ++batch) LookUp(table, {13'999});
  PutFrom(table, 20'000, 600);
  EXPECT_LT(InMemory(table, pinned), 5u);
}

// Under LFU a row that is passed over would be next again: the search must continue behind it.
TEST(EvictionPolicies, UnderLfuPinnedRowsAreColdestAndStay) {
  SpillWorld store(5);
  Table* const table = CreateBy(&store, "t", EvictionPolicy::kLfu);
  PutFrom(table, 0, 4000);
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  std::vector<Key> pinned;
  for (Key key = 0; key < 4000 && pinned.size() < 300; ++key) {
    if (InMemory(table, {key}) == 0) pinned.push_back(key);
  }
  ASSERT_EQ(pinned.size(), 300u);
  // All others are hotter.
  for (int round = 0; round < 3; ++round) {
    for (Key first = 0; first < 4000; first += 100) {
      std::vector<Key> keys;
      for (Key key = first; key < first + 100; ++key) {
        if (!std::binary_search(pinned.begin(), pinned.end(), key)) keys.push_back(key);
      }
      LookUp(table, keys);
    }
  }
  ASSERT_TRUE(Prefetch(table, pinned).ok());
  ASSERT_EQ(InMemory(table, pinned), 300u);
  PutFrom(table, 10'000, 2000);
  EXPECT_GT(InMemory(table, pinned), 290u);
}

// The coldest are dirty, and the log takes nothing: the others leave.
TEST(EvictionPolicies, UnderLfuCleanRowsLeaveThoughColderOnesCannot) {
  SpillWorld store(6);
  Table* const table = CreateBy(&store, "t", EvictionPolicy::kLfu);
  PutFrom(table, 0, 4000);
  // A promoted row is clean.
  for (Key first = 0; first < 4000; first += 100) LookUp(table, KeysFrom(first, 100));
  std::vector<Key> in_memory;
  std::vector<Key> in_log;
  for (Key key = 0; key < 4000; ++key) {
    (InMemory(table, {key}) == 1 ? in_memory : in_log).push_back(key);
  }
  // A fourth of the rows in memory is dirty; the rest is clean and hotter.
  const auto fourth = in_memory.begin() + static_cast<ptrdiff_t>(in_memory.size() / 4);
  const std::vector<Key> dirty(in_memory.begin(), fourth);
  for (int round = 0; round < 3; ++round) {
    LookUp(table, std::vector<Key>(fourth, in_memory.end()));
  }
  Put(table, dirty);
  store.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kSync ? UnavailableError("no more") : OkStatus();
  });
  EXPECT_FALSE(table->mover()->logs().lowest().appender().Sync().ok());
  in_log.resize(200);
  uint64_t came_up = 0;
  for (const Key key : in_log) {
    LookUp(table, {key});
    came_up += InMemory(table, {key});
  }
  EXPECT_EQ(came_up, in_log.size());
  EXPECT_EQ(InMemory(table, dirty), dirty.size());
}

}  // namespace
}  // namespace embank::test::eviction_policies_test
