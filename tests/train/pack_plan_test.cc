#include "train/pipeline/pack_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "train/generator/click_schema.h"
#include "train/pipeline/capacity.h"

namespace embank::test::pack_plan_test {
namespace {

using ::testing::ElementsAre;

std::vector<FeatureTraffic> Features(std::vector<std::pair<uint32_t, uint64_t>> dims_and_ids) {
  std::vector<FeatureTraffic> traffic;
  for (const auto& [dim, ids] : dims_and_ids) traffic.push_back({.dim = dim, .ids = ids});
  return traffic;
}

// Four features of dim 8 and four of dim 32, with equal traffic.
std::vector<FeatureTraffic> PapersExample() {
  return Features(
      {{8, 100}, {32, 100}, {8, 100}, {32, 100}, {8, 100}, {32, 100}, {8, 100}, {32, 100}});
}

double MeanOfDims(const std::vector<FeatureTraffic>& traffic) {
  double sum = 0.0;
  std::vector<uint32_t> dims;
  for (uint32_t i = 0; i < traffic.size(); ++i) {
    sum += PackVolume(traffic, std::vector<uint32_t>{i});
    dims.push_back(traffic[i].dim);
  }
  std::ranges::sort(dims);
  const auto end = std::unique(dims.begin(), dims.end());
  return sum / static_cast<double>(end - dims.begin());
}

TEST(PackPlan, VolumeIsAllIdsTimesFloatsOfThePack) {
  const std::vector<FeatureTraffic> traffic = Features({{4, 10}, {8, 30}, {4, 60}});
  EXPECT_EQ(PackVolume(traffic, std::vector<uint32_t>{0, 2}), 100.0 * (4 * 10 + 4 * 60));
  EXPECT_EQ(PackVolume(traffic, std::vector<uint32_t>{1}), 100.0 * 8 * 30);
}

TEST(PackPlan, ByTheMeanNoPackIsFarAboveIt) {
  const std::vector<FeatureTraffic> traffic = PapersExample();
  const std::vector<Pack> packs = PlanPacks(traffic);
  ASSERT_EQ(packs.size(), 3u) << "4 / (1.3 * 2.5), rounded up, of dim 32";
  for (const Pack& pack : packs) EXPECT_LE(pack.volume, 1.3 * MeanOfDims(traffic));
}

// PICASSO, section III-B: "one pack for dim 8, four shards for dim 32".
TEST(PackPlan, ByTheLeastThePapersExampleHasOneAndFourPacks) {
  const std::vector<Pack> packs = PlanPacks(PapersExample(), PackRule::kLeast);
  ASSERT_EQ(packs.size(), 5u);
  EXPECT_THAT(packs[0].features, ElementsAre(0, 2, 4, 6));
  for (size_t i = 1; i < packs.size(); ++i) {
    EXPECT_EQ(packs[i].dim, 32u);
    EXPECT_EQ(packs[i].volume, packs[0].volume);
  }
}

TEST(PackPlan, NoRuleSplitsPacksWithoutTrafficOrMoreThanTheirFeatures) {
  EXPECT_EQ(PlanPacks(Features({{16, 0}, {8, 0}}), PackRule::kLeast).size(), 2u);
  EXPECT_EQ(
      PlanPacks(Features({{16, 1'000'000}, {16, 9}, {8, 1}, {4, 0}}), PackRule::kLeast).size(), 4u);
}

TEST(PackPlan, EachFeatureIsInOnePack) {
  std::vector<FeatureTraffic> traffic;
  for (uint32_t i = 0; i < 100; ++i) {
    traffic.push_back({.dim = 4u << (i % 4), .ids = i * i, .is_excluded = i % 17 == 3});
  }
  for (const PackRule rule : {PackRule::kNone, PackRule::kMean, PackRule::kLeast}) {
    const std::vector<Pack> packs = PlanPacks(traffic, rule);
    std::vector<uint32_t> features;
    for (const Pack& pack : packs) {
      features.insert(features.end(), pack.features.begin(), pack.features.end());
      EXPECT_TRUE(std::ranges::is_sorted(pack.features));
      for (const uint32_t feature : pack.features) {
        EXPECT_EQ(traffic[feature].dim, pack.dim);
        EXPECT_EQ(traffic[feature].is_excluded, pack.is_excluded);
      }
    }
    std::ranges::sort(features);
    ASSERT_EQ(features.size(), traffic.size());
    for (uint32_t i = 0; i < traffic.size(); ++i) EXPECT_EQ(features[i], i);
  }
}

TEST(PackPlan, FeaturesOfATableStayTogether) {
  std::vector<FeatureTraffic> traffic;
  for (uint32_t i = 0; i < 40; ++i) traffic.push_back({.dim = 8, .ids = 1 + i * i, .table = i % 7});
  traffic.push_back({.dim = 4, .ids = 1});
  for (const PackRule rule : {PackRule::kNone, PackRule::kMean, PackRule::kLeast}) {
    const std::vector<Pack> packs = PlanPacks(traffic, rule);
    EXPECT_GT(packs.size(), 2u);
    EXPECT_LE(packs.size(), 8u);
    std::map<uint32_t, size_t> pack_of_table;
    for (size_t pack = 0; pack < packs.size(); ++pack) {
      EXPECT_TRUE(std::ranges::is_sorted(packs[pack].features));
      for (const uint32_t feature : packs[pack].features) {
        EXPECT_EQ(pack_of_table.emplace(traffic[feature].table, pack).first->second, pack);
      }
    }
  }
}

TEST(PackPlan, WithoutTrafficEachDimIsAPack) {
  const std::vector<Pack> packs = PlanPacks(Features({{16, 0}, {8, 0}, {16, 0}}));
  ASSERT_EQ(packs.size(), 2u);
  EXPECT_THAT(packs[0].features, ElementsAre(1));
  EXPECT_THAT(packs[1].features, ElementsAre(0, 2));
}

// The numbers of packs that PICASSO's table V has for its three products.
TEST(PackPlan, ProductsHaveNoMorePacksThanInThePaper) {
  const auto packs_of = [](const char* name) {
    std::vector<FeatureTraffic> traffic;
    const ClickSchema schema = *MakeClickSchema(name);
    for (const IdFieldSchema& field : schema.fields) {
      traffic.push_back({.dim = field.dim, .ids = field.bag_max > 1 ? 1760u : 100u});
    }
    const std::vector<Pack> packs = PlanPacks(traffic);
    for (const Pack& pack : packs) EXPECT_LE(pack.volume, 1.4 * MeanOfDims(traffic)) << name;
    return packs.size();
  };
  EXPECT_EQ(packs_of("product-1"), 9u) << "16 in the paper";
  EXPECT_EQ(packs_of("product-2"), 13u) << "19 in the paper";
  EXPECT_EQ(packs_of("product-3"), 11u) << "11 in the paper";
}

TEST(Capacity, AMicroBatchIsBoundByTheScarcestResource) {
  // 32 GB at 2 MB a sample; 10 GB/s for 0.1 s at 100 KB a sample.
  const std::vector<ResourceCost> operations = {{.bound = 32e9, .cost = 2e6},
                                                {.bound = 1e9, .cost = 1e5}};
  EXPECT_EQ(MicroBatchSize(operations), 10'000u);
  EXPECT_EQ(MicroBatchSize(std::vector<ResourceCost>{{.bound = 7.9, .cost = 2.0}}), 3u);
  EXPECT_EQ(MicroBatchSize(std::vector<ResourceCost>{{.bound = 1.0, .cost = 2.0}}), 1u);
  EXPECT_EQ(MicroBatches(1024, 400, 8), 3u);
  EXPECT_EQ(MicroBatches(1024, 512, 8), 2u);
  EXPECT_EQ(MicroBatches(1024, 1, 8), 8u);
  EXPECT_EQ(MicroBatches(1024, 5000, 8), 1u);
}

std::vector<Pack> PacksOf(std::vector<double> volumes) {
  std::vector<Pack> packs;
  for (const double volume : volumes) packs.push_back({.dim = 8, .features = {}, .volume = volume});
  return packs;
}

TEST(Capacity, GroupsAreFilledInOrder) {
  EXPECT_EQ(GroupCapacity(std::vector<ResourceCost>{{.bound = 12.0, .cost = 2.0},
                                                    {.bound = 10.0, .cost = 4.0}}),
            2.5);
  std::vector<Pack> packs = PacksOf({2, 1, 3, 9, 1});
  EXPECT_THAT(GroupPacks(packs, 4.0), ElementsAre(0, 0, 1, 2, 3));
  packs[2].is_excluded = true;
  EXPECT_THAT(GroupPacks(packs, 4.0), ElementsAre(0, 0, kNoGroup, 1, 2));
}

TEST(Capacity, HalfTheCapacityIsTwiceTheGroups) {
  const std::vector<Pack> packs = PacksOf(std::vector<double>(16, 1.0));
  for (const double capacity : {16.0, 8.0, 4.0, 2.0}) {
    const uint32_t groups = GroupPacks(packs, capacity).back() + 1;
    const uint32_t halved = GroupPacks(packs, capacity / 2).back() + 1;
    EXPECT_EQ(halved, 2 * groups);
  }
}

TEST(Capacity, PacksGoIntoAtMostSoManyGroups) {
  const std::vector<Pack> packs = PacksOf({5, 1, 1, 1, 4, 2, 2});
  for (uint32_t groups = 1; groups < 9; ++groups) {
    EXPECT_LE(GroupPacksInto(packs, groups).back() + 1, groups);
  }
  EXPECT_EQ(GroupPacksInto(packs, 7).back() + 1, 7u);
  EXPECT_THAT(GroupPacksInto(packs, 2), ElementsAre(0, 0, 0, 0, 1, 1, 1));
}

}  // namespace
}  // namespace embank::test::pack_plan_test
