#include "bench/peer_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "base/hash.h"
#include "base/random.h"

namespace embank::peer_batch_test {
namespace {

using testing::ElementsAre;

TEST(PeerBatch, GroupsPartThePositionsByTheTopBitsInOrder) {
  std::vector<Key> keys(1000);
  const CounterRandom random(3);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = random.Bits(i) % 300;
  for (const uint32_t shard_bits : {0u, 1u, 6u}) {
    PeerBatch batch;
    batch.Plan(keys, shard_bits);
    std::set<uint32_t> met;
    for (uint32_t shard = 0; shard < (1u << shard_bits); ++shard) {
      const std::span<const uint32_t> group = batch.Group(shard);
      EXPECT_TRUE(std::is_sorted(group.begin(), group.end()));
      for (const uint32_t position : group) {
        EXPECT_TRUE(met.insert(position).second);
        EXPECT_EQ(batch.HashAt(position), Mix(keys[position]));
        if (shard_bits > 0) {
          EXPECT_EQ(batch.HashAt(position) >> (64 - shard_bits), shard);
        }
      }
    }
    EXPECT_EQ(met.size(), keys.size());
  }
}

TEST(PeerBatch, DistinctKeysKeepTheirPositionsInOrder) {
  const std::vector<Key> keys = {7, 8, 7, 9, 8, 7};
  PeerBatch batch;
  batch.Plan(keys, 0);
  batch.FindDistinct(batch.Group(0));
  EXPECT_THAT(batch.first_positions(), ElementsAre(0, 1, 3));
  std::vector<uint32_t> positions;
  batch.ForEachPosition(0, [&](uint32_t position) { positions.push_back(position); });
  EXPECT_THAT(positions, ElementsAre(0, 2, 5));
}

// 1e8 + 1 is 1e8 in float32, so the grouping of the sum shows: ones that are added among themselves
// survive.
TEST(PeerBatch, SumsRunsOf32First) {
  constexpr float kLarge = 1e8f;
  constexpr uint32_t kPositions = 96;
  const std::vector<Key> keys(kPositions, 5);
  std::vector<float> gradients(kPositions, 1.0f);
  gradients[0] = kLarge;
  PeerBatch batch;
  batch.Plan(keys, 0);
  batch.FindDistinct(batch.Group(0));
  const std::span<float> sum = batch.Sum(0, gradients.data(), 1);
  // First run: 1e8 swallows 31 ones; the two others are 32 each.
  EXPECT_THAT(sum, ElementsAre((kLarge + 32.0f) + 32.0f));
  EXPECT_NE(sum[0], kLarge);
}

TEST(PeerBatch, SumsElementByElement) {
  const std::vector<Key> keys = {1, 2, 1};
  const std::vector<float> gradients = {1, 2, 10, 20, 100, 200};
  PeerBatch batch;
  batch.Plan(keys, 0);
  batch.FindDistinct(batch.Group(0));
  EXPECT_THAT(batch.Sum(0, gradients.data(), 2), ElementsAre(101, 202));
  EXPECT_THAT(batch.Sum(1, gradients.data(), 2), ElementsAre(10, 20));
}

}  // namespace
}  // namespace embank::peer_batch_test
