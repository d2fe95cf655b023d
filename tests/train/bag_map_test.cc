#include "train/pipeline/bag_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/support/random.h"
#include "train/generator/zipf.h"

namespace embank::test::bag_map_test {
namespace {

constexpr uint64_t kTable = 0x1234567890abcdef;

// A run of bags, and what UniquePartition and BagMap make of it.
struct Mapped {
  Mapped(const std::vector<Key>& ids, const std::vector<uint32_t>& ends, uint32_t owners,
         const std::vector<float>& weights = {})
      : unique(ids.size()),
        touches(ids.size()),
        index(ids.size()),
        bag_ends(ends),
        bags(ids.size()),
        weights_by_id(weights.size()),
        bag_counts(owners) {
    UniquePartition partition(owners);
    const UniqueIds written = {unique, touches, index};
    partition.Run(ids, kTable, written);
    counts.assign(partition.counts().begin(), partition.counts().end());
    BagMap(owners).Run(written, counts, {bag_ends, weights, bags, weights_by_id, bag_counts});
  }

  uint32_t ids() const { return std::accumulate(counts.begin(), counts.end(), 0u); }

  // The bags as their owners see them: of each bag its ids and weights, in any order.
  std::vector<std::multimap<Key, float>> Bags() const {
    std::vector<std::vector<uint32_t>> bag_of(counts.size());  // of an owner's number
    uint32_t place = 0;
    for (uint32_t bag = 0; bag < bag_ends.size(); ++bag) {
      for (; place < bag_ends[bag]; ++place) {
        EXPECT_EQ(index[place].number(), bag_of[index[place].owner()].size());
        bag_of[index[place].owner()].push_back(bag);
      }
    }
    std::vector<std::multimap<Key, float>> all(bag_ends.size());
    uint32_t id = 0;
    uint32_t next = 0;
    for (uint32_t owner = 0; owner < counts.size(); ++owner) {
      EXPECT_EQ(bag_of[owner].size(), bag_counts[owner]);
      for (uint32_t i = 0; i < counts[owner]; ++i, ++id) {
        for (uint32_t k = 0; k < touches[id]; ++k, ++next) {
          all[bag_of[owner][bags[next]]].emplace(
              unique[id], weights_by_id.empty() ? 1.0f : weights_by_id[next]);
        }
      }
    }
    EXPECT_EQ(next, bags.size());
    return all;
  }

  std::vector<Key> unique;
  std::vector<uint16_t> touches;
  std::vector<IdPlace> index;
  std::vector<uint32_t> bag_ends;
  std::vector<uint16_t> bags;
  std::vector<float> weights_by_id;
  std::vector<uint32_t> bag_counts;
  std::vector<uint32_t> counts;
};

// Bags of one id each.
std::vector<uint32_t> EndsOfOnes(uint32_t bags) {
  std::vector<uint32_t> ends(bags);
  std::iota(ends.begin(), ends.end(), 1u);
  return ends;
}

TEST(BagMap, HasTheIdsOfEachBag) {
  Random random(7);
  for (uint32_t round = 0; round < 60; ++round) {
    const uint32_t owners = 1 + round % 5;
    const bool has_weights = round % 2 == 1;
    std::vector<Key> ids;
    std::vector<float> weights;
    std::vector<uint32_t> ends;
    std::vector<std::multimap<Key, float>> expected(random.Bits() % 40);
    for (std::multimap<Key, float>& bag : expected) {
      for (uint64_t rest = random.Bits() % 6; rest > 0; --rest) {
        ids.push_back(random.Bits() % 12);
        const float weight = has_weights ? static_cast<float>(random.Bits() % 9) : 1.0f;
        if (has_weights) weights.push_back(weight);
        bag.emplace(ids.back(), weight);
      }
      ends.push_back(static_cast<uint32_t>(ids.size()));
    }
    const std::vector<std::multimap<Key, float>> bags = Mapped(ids, ends, owners, weights).Bags();
    ASSERT_EQ(bags.size(), expected.size());
    for (size_t i = 0; i < bags.size(); ++i) {
      // A multimap keeps equal keys in the order of their coming, which a map by ids does, too.
      EXPECT_TRUE(bags[i] == expected[i]) << "round " << round << ", bag " << i;
    }
  }
}

// R19's boundary: counts of 16 bits.
TEST(BagMap, SplitsAnIdThatOccursTooOftenForItsCount) {
  for (const uint32_t bags : {65535u, 65536u}) {
    const Mapped mapped(std::vector<Key>(bags, 7), EndsOfOnes(bags), 2);
    EXPECT_EQ(mapped.ids(), bags == 65535 ? 1u : 2u);
    EXPECT_EQ(mapped.touches[0], 65535u);
    const std::vector<std::multimap<Key, float>> all = mapped.Bags();
    EXPECT_TRUE(std::ranges::all_of(
        all, [](const auto& bag) { return bag.size() == 1 && bag.begin()->first == 7; }));
  }
  // One bag, and other ids before and behind the one that is split, of both owners.
  std::vector<Key> ids = {1, 2, 3, 4, 5};
  ids.insert(ids.end(), 3 * 65535, 7);
  ids.insert(ids.end(), {8, 9, 10, 11});
  const Mapped mapped(ids, {static_cast<uint32_t>(ids.size())}, 2);
  EXPECT_EQ(mapped.ids(), 9u + 3u);
  const std::multimap<Key, float> bag = mapped.Bags()[0];
  EXPECT_EQ(bag.size(), ids.size());
  EXPECT_EQ(bag.count(7), 3u * 65535);
  EXPECT_EQ(bag.count(11), 1u);
}

// At most 0.84 of the ids alone, where ids are drawn by Zipf 1.05 from a million.
TEST(BagMap, TakesFewerBytesThanIds) {
  const StatusOr<ZipfSampler> zipf = ZipfSampler::Create(1'000'000, 1.05, 3);
  ASSERT_TRUE(zipf.ok());
  std::vector<Key> ids(8192);
  for (uint64_t i = 0; i < ids.size(); ++i) ids[i] = zipf->Rank(i);
  const Mapped mapped(ids, EndsOfOnes(8192), 4);
  const double bytes = 10.0 * mapped.ids() + 2.0 * static_cast<double>(mapped.bags.size());
  const double raw = 8.0 * static_cast<double>(ids.size());
  EXPECT_LE(bytes / raw, 0.84) << mapped.ids() << " distinct ids";
  EXPECT_GE(bytes / raw, 0.6) << "the draws are no Zipf 1.05";
}

}  // namespace
}  // namespace embank::test::bag_map_test
