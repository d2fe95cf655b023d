#include "bench/simulated_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <set>

#include "tests/support/random.h"

namespace embank::simulated_cache_test {
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

// Appends so many accesses to a key, or to keys that never come again.
void Append(AccessStream* stream, uint32_t key, uint32_t count) {
  stream->keys.insert(stream->keys.end(), count, key);
  stream->distinct = std::max(stream->distinct, key + 1);
}
void AppendCold(AccessStream* stream, uint32_t count) {
  for (; count > 0; --count) Append(stream, stream->distinct, 1);
}

TEST(SimulatedCache, RowsReturnWithTheirHeatOrWithout) {
  AccessStream stream;
  Append(&stream, 0, 5);
  AppendCold(&stream, 10);
  // It returns. If that is its first heat, it leaves in the next round.
  Append(&stream, 0, 1);
  AppendCold(&stream, 4);
  Append(&stream, 0, 1);
  EXPECT_EQ(SimulateHits(stream, 2, EvictionPolicy::kLfu, ReturningHeat::kLost), 4u);
  EXPECT_EQ(SimulateHits(stream, 2, EvictionPolicy::kLfu, ReturningHeat::kKept), 5u);
}

TEST(SimulatedCache, HeatAgesAsTheStoresDoes) {
  constexpr uint32_t kEpoch = 1 << 20;
  // Key 0 has a turn by its heat, 8, or by half of it when an epoch has ended.
  const auto last_hits = [](uint32_t accesses_before) {
    AccessStream stream;
    Append(&stream, 0, 8);
    Append(&stream, 1, accesses_before - 8);
    AppendCold(&stream, 7);
    const uint64_t before = stream.keys.size() - 7 - 2;
    Append(&stream, 0, 1);
    return SimulateHits(stream, 3, EvictionPolicy::kLfu, ReturningHeat::kLost) - before;
  };
  EXPECT_EQ(last_hits(kEpoch - 100), 1u);
  EXPECT_EQ(last_hits(kEpoch), 0u);
}

}  // namespace
}  // namespace embank::simulated_cache_test
