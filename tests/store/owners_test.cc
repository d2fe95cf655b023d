// The rows of one rank cost what as many rows without ranks cost: the owner's rule shares no bits
// with the index, the heat sketch and the hash tables of a batch.
#include <gtest/gtest.h>

#include <bit>
#include <cstdio>
#include <functional>
#include <vector>

#include "base/hash.h"
#include "store/placement/heat_sketch.h"
#include "tests/support/index_world.h"

namespace embank::test::owners_test {
namespace {

constexpr uint64_t kIndexRows = 400'000;
constexpr uint64_t kSketchRows = 20'000;
constexpr uint64_t kAbsentRows = 2'000'000;
constexpr uint64_t kBatchKeys = 8'192;
constexpr uint64_t kBatches = 8;
constexpr TableId kTable = 0;

// The costs of a rank's rows, in counts.
struct Costs {
  uint64_t index_bytes = 0;
  uint64_t false_hits = 0;       // of the sketch, for rows that were never put in
  uint64_t group_steps = 0;      // past other keys, in the table of UniqueKeys
  uint64_t partition_steps = 0;  // and in that of UniquePartition
};

// Calls visit(id) for the first `count` rows of rank 0 among `owners`, from key `first` on. Returns
// the key behind the last.
Key ForOwned(uint32_t owners, Key first, uint64_t count,
             const std::function<void(const RowId&)>& visit) {
  static const uint64_t table_hash = IndexWorld::TableHashOf(kTable);
  Key key = first;
  for (; count > 0; ++key) {
    const RowId id = {kTable, key, HashKey(table_hash, key)};
    if (OwnerOf(id.hash, owners) != 0) continue;
    visit(id);
    --count;
  }
  return key;
}

uint64_t IndexBytes(uint32_t owners) {
  IndexWorld index;
  ForOwned(owners, 0, kIndexRows, [&](const RowId& id) { index.Insert(id); });
  return index->memory()->bytes();
}

uint64_t FalseHits(uint32_t owners) {
  FailingMemory memory;
  MemoryBudget budget(0);
  const auto sketch = HeatSketch::Create(&memory, &budget, 4 * HeatSketch::kGrainBytes);
  EXPECT_TRUE(sketch.ok());
  const Key end =
      ForOwned(owners, 0, kSketchRows, [&](const RowId& id) { (*sketch)->Put(id.hash, 9, 0); });
  uint64_t hits = 0;
  ForOwned(owners, end, kAbsentRows,
           [&](const RowId& id) { hits += (*sketch)->Get(id.hash, 0) > 0 ? 1 : 0; });
  return hits;
}

// Steps of linear probing in a table of `places`, where place_of(hash) begins.
template <typename PlaceOf>
uint64_t ProbeSteps(const std::vector<KeyHash>& hashes, uint64_t places, PlaceOf place_of) {
  std::vector<bool> taken(places);
  uint64_t steps = 0;
  for (const KeyHash hash : hashes) {
    uint64_t place = place_of(hash);
    for (; taken[place]; ++steps) place = place + 1 == places ? 0 : place + 1;
    taken[place] = true;
  }
  return steps;
}

// The places are those of store/batch/unique_keys.cc, for the keys of one shard, and of
// train/pipeline/unique_partition.cc.
void AddProbeSteps(uint32_t owners, Costs* costs) {
  Key next = 0;
  for (uint64_t batch = 0; batch < kBatches; ++batch) {
    std::vector<KeyHash> group;
    std::vector<KeyHash> ids;
    next = ForOwned(owners, next, kBatchKeys, [&](const RowId& id) {
      ids.push_back(id.hash);
      if (KeyIndex::ShardOf(id.hash) % 8 == 0) group.push_back(id.hash);
    });
    const uint64_t group_places = 2 * group.size();
    const uint64_t partition_places = std::bit_ceil(2 * ids.size());
    costs->group_steps += ProbeSteps(group, group_places, [&](KeyHash hash) {
      return (uint64_t{static_cast<uint32_t>(hash)} * group_places) >> 32;
    });
    costs->partition_steps += ProbeSteps(
        ids, partition_places, [&](KeyHash hash) { return hash & (partition_places - 1); });
  }
}

Costs CostsOf(uint32_t owners) {
  Costs costs = {.index_bytes = IndexBytes(owners), .false_hits = FalseHits(owners)};
  AddProbeSteps(owners, &costs);
  return costs;
}

// Within `share` of what one rank costs, or so few that chance decides.
void ExpectNear(uint64_t cost, uint64_t of_one, double share, const char* what, uint32_t owners) {
  const auto base = static_cast<double>(of_one);
  EXPECT_NEAR(static_cast<double>(cost), base, share * base) << what << " among " << owners;
}

TEST(Owners, KeepTheCostOfOneRank) {
  const Costs one = CostsOf(1);
  EXPECT_GT(one.false_hits, 5u);
  for (const uint32_t owners : {1u, 2u, 4u, 8u, 16u, 64u}) {
    const Costs costs = CostsOf(owners);
    std::printf("%2u owners: index %.2f bytes/row, false hits %llu, steps %llu and %llu\n", owners,
                static_cast<double>(costs.index_bytes) / kIndexRows,
                static_cast<unsigned long long>(costs.false_hits),
                static_cast<unsigned long long>(costs.group_steps),
                static_cast<unsigned long long>(costs.partition_steps));
    EXPECT_EQ(costs.index_bytes, one.index_bytes) << owners << " owners";
    ExpectNear(costs.false_hits, one.false_hits, 0.8, "false hits", owners);
    ExpectNear(costs.group_steps, one.group_steps, 0.1, "steps of UniqueKeys", owners);
    ExpectNear(costs.partition_steps, one.partition_steps, 0.1, "steps of UniquePartition", owners);
  }
}

}  // namespace
}  // namespace embank::test::owners_test
