#include "store/payload/topk_pace.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "tests/support/random.h"

namespace embank::topk_pace_test {
namespace {

using test::Random;

// Figures of a look at which each lookup hits with a probability.
HitFigures Drawn(Random* random, uint64_t lookups, float hit_ratio) {
  HitFigures figures{.lookups = lookups, .hits = 0};
  for (uint64_t i = 0; i < lookups; ++i) figures.hits += random->Unit() < hit_ratio ? 1 : 0;
  return figures;
}

TEST(TopkPace, FlushesSteadyTrafficEachFlushBatchesAndEndsNoEpoch) {
  Random random(1);
  for (const float ratio : {0.0f, 0.02f, 0.3f, 0.75f, 0.99f, 1.0f}) {
    TopkPace pace(100);
    EXPECT_EQ(pace.look_batches(), 10u);
    for (int look = 1; look <= 2000; ++look) {
      const TopkStep step = pace.Look(Drawn(&random, TopkPace::kLookupsMin, ratio));
      EXPECT_EQ(step.flush, look % 10 == 0) << ratio << " " << look;
      EXPECT_EQ(step.epochs, 0u) << ratio << " " << look;
    }
  }
}

TEST(TopkPace, LooksAfterEachBatchWhereThereAreFewToAFlush) {
  TopkPace each(1);
  EXPECT_EQ(each.look_batches(), 1u);
  TopkPace seventh(7);
  EXPECT_EQ(seventh.look_batches(), 1u);
  for (int look = 1; look <= 70; ++look) {
    EXPECT_TRUE(each.Look({10000, 5000}).flush);
    EXPECT_EQ(seventh.Look({10000, 5000}).flush, look % 7 == 0);
  }
}

// Flushes of the looks behind a drift, with hit ratios that return to those before it.
TEST(TopkPace, FollowsADriftWithFlushesThatGrowApart) {
  TopkPace pace(100);
  for (int look = 1; look <= 13; ++look) pace.Look({10000, 8000});
  const TopkStep drift = pace.Look({10000, 4000});
  EXPECT_TRUE(drift.flush);
  EXPECT_EQ(drift.epochs, TopkPace::kEpochsMax);
  std::vector<int> flushes;
  for (int look = 1; look <= 45; ++look) {
    const TopkStep step = pace.Look({10000, 7500});
    EXPECT_EQ(step.epochs, 0u);
    if (step.flush) flushes.push_back(look);
  }
  EXPECT_EQ(flushes, (std::vector<int>{1, 3, 7, 15, 25, 35, 45}));
}

TEST(TopkPace, EndsAnEpochForEachTenthOfTheHitsThatIsGone) {
  const auto epochs_after_fall_to = [](uint64_t hits) {
    TopkPace pace(100);
    for (int look = 1; look <= 5; ++look) pace.Look({100000, 80000});
    return pace.Look({100000, hits}).epochs;
  };
  EXPECT_EQ(epochs_after_fall_to(80000), 0u);
  EXPECT_EQ(epochs_after_fall_to(77000), 0u);
  EXPECT_EQ(epochs_after_fall_to(74000), 1u);
  EXPECT_EQ(epochs_after_fall_to(70000), 2u);
  EXPECT_EQ(epochs_after_fall_to(60000), 3u);
  EXPECT_EQ(epochs_after_fall_to(0), TopkPace::kEpochsMax);
}

TEST(TopkPace, TakesALowerHitRatioThatStaysForTheUsualOne) {
  TopkPace pace(100);
  for (int look = 1; look <= 10; ++look) pace.Look({100000, 80000});
  EXPECT_GT(pace.Look({100000, 40000}).epochs, 0u);
  for (int look = 1; look <= 100; ++look) EXPECT_EQ(pace.Look({100000, 40000}).epochs, 0u);
}

TEST(TopkPace, SeesASecondDriftRightBehindTheFirst) {
  TopkPace pace(100);
  for (int look = 1; look <= 10; ++look) pace.Look({100000, 80000});
  EXPECT_GT(pace.Look({100000, 40000}).epochs, 0u);
  pace.Look({100000, 70000});
  EXPECT_GT(pace.Look({100000, 30000}).epochs, 0u);
}

TEST(TopkPace, JoinsLooksOfFewLookups) {
  TopkPace pace(100);
  for (int look = 1; look <= 5; ++look) pace.Look({100000, 80000});
  // The second look has enough together with the first one.
  EXPECT_EQ(pace.Look({TopkPace::kLookupsMin - 1, 0}).epochs, 0u);
  EXPECT_GT(pace.Look({1, 0}).epochs, 0u);
  EXPECT_EQ(pace.Look({0, 0}).epochs, 0u);
}

}  // namespace
}  // namespace embank::topk_pace_test
