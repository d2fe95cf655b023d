#include "bench/simulated_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>

#include "tests/support/random.h"

namespace embank {
namespace {

AccessStream RandomStream(test::Random* random, uint32_t distinct, size_t accesses) {
  AccessStream stream;
  while (stream.keys.size() < accesses) {
    // Keys are numbered as they appear.
    const auto known = std::min<uint64_t>(stream.distinct + 1, distinct);
    const auto key = static_cast<uint32_t>(random->Below(known));
    stream.keys.push_back(key);
    stream.distinct = std::max(stream.distinct, key + 1);
  }
  return stream;
}

// Tries every victim at every miss.
uint64_t MostHits(const AccessStream& stream, size_t i, uint32_t capacity, std::set<uint32_t> in) {
  for (; i < stream.keys.size(); ++i) {
    const uint32_t key = stream.keys[i];
    if (in.contains(key)) return 1 + MostHits(stream, i + 1, capacity, in);
    if (in.size() == capacity) break;
    in.insert(key);
  }
  uint64_t most = 0;
  for (const uint32_t victim : in) {
    if (i == stream.keys.size()) break;
    std::set<uint32_t> changed = in;
    changed.erase(victim);
    changed.insert(stream.keys[i]);
    most = std::max(most, MostHits(stream, i + 1, capacity, changed));
  }
  return most;
}

uint64_t LruHits(const AccessStream& stream, uint32_t capacity) {
  std::list<uint32_t> rows;
  uint64_t hits = 0;
  for (const uint32_t key : stream.keys) {
    const auto found = std::find(rows.begin(), rows.end(), key);
    if (found != rows.end()) {
      ++hits;
      rows.erase(found);
    } else if (rows.size() == capacity) {
      rows.pop_back();
    }
    rows.push_front(key);
  }
  return hits;
}

TEST(SimulatedCache, TheOptimumIsThatOfAllChoices) {
  test::Random random(1);
  for (int i = 0; i < 300; ++i) {
    const AccessStream stream = RandomStream(&random, 5, 1 + random.Below(12));
    for (uint32_t capacity = 1; capacity <= 4; ++capacity) {
      ASSERT_EQ(OptimalHits(stream, capacity), MostHits(stream, 0, capacity, {})) << i;
    }
  }
}

TEST(SimulatedCache, LruIsThatOfAList) {
  test::Random random(2);
  for (int i = 0; i < 20; ++i) {
    const AccessStream stream = RandomStream(&random, 60, 3000);
    const auto capacity = static_cast<uint32_t>(random.Between(1, 70));
    ASSERT_EQ(SimulateHits(stream, capacity, EvictionPolicy::kLru, ReturningHeat::kKept),
              LruHits(stream, capacity));
  }
}

TEST(SimulatedCache, NoPolicyIsBetterThanTheOptimumAndAllHitWhatFits) {
  test::Random random(3);
  for (int i = 0; i < 20; ++i) {
    const AccessStream stream = RandomStream(&random, 60, 3000);
    const auto capacity = static_cast<uint32_t>(random.Between(1, 50));
    for (const EvictionPolicy policy :
         {EvictionPolicy::kLru, EvictionPolicy::kClock, EvictionPolicy::kLfu}) {
      EXPECT_LE(SimulateHits(stream, capacity, policy, ReturningHeat::kKept),
                OptimalHits(stream, capacity));
      EXPECT_EQ(SimulateHits(stream, stream.distinct, policy, ReturningHeat::kKept),
                stream.keys.size() - stream.distinct);
    }
  }
}

TEST(SimulatedCache, ClockSparesTheRowThatWasLookedUpAgain) {
  const AccessStream stream{{0, 1, 0, 2, 0, 1}, 3};
  EXPECT_EQ(SimulateHits(stream, 2, EvictionPolicy::kClock, ReturningHeat::kKept), 2u);
  const AccessStream once{{0, 1, 2, 0, 1, 2}, 3};
  EXPECT_EQ(SimulateHits(once, 2, EvictionPolicy::kClock, ReturningHeat::kKept), 0u);
}

TEST(SimulatedCache, RowsReturnWithTheirHeatOrWithout) {
  // Key 1 returns for its second access. If that is its first heat, it leaves before key 0.
  const AccessStream stream{{0, 0, 1, 2, 1, 3, 1}, 4};
  EXPECT_EQ(SimulateHits(stream, 2, EvictionPolicy::kLfu, ReturningHeat::kLost), 1u);
  EXPECT_EQ(SimulateHits(stream, 2, EvictionPolicy::kLfu, ReturningHeat::kKept), 2u);
}

TEST(SimulatedCache, HeatAgesAsTheStoresDoes) {
  constexpr uint32_t kEpoch = 1 << 20;
  constexpr uint32_t kBehind = 1000;
  AccessStream stream{{0, 0}, 3};
  while (stream.keys.size() < kEpoch + kBehind) {
    stream.keys.push_back(1 + stream.keys.size() % 2);
  }
  // The hot key 0 keeps its place for an epoch, in which the others push each other out.
  const uint64_t hits = SimulateHits(stream, 2, EvictionPolicy::kLfu, ReturningHeat::kLost);
  EXPECT_LT(hits, 1 + kBehind);
  EXPECT_GE(hits, 1 + kBehind - 5);
}

}  // namespace
}  // namespace embank
