#include "train/dense/auc.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::auc_test {
namespace {

// The definition: all pairs of a positive and a negative sample.
double CountPairs(const std::vector<float>& scores, const std::vector<float>& labels) {
  uint64_t pairs = 0, doubled = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    for (size_t j = 0; j < scores.size(); ++j) {
      if (labels[i] != 1.0f || labels[j] != 0.0f) continue;
      ++pairs;
      doubled += scores[i] > scores[j] ? 2 : scores[i] == scores[j] ? 1 : 0;
    }
  }
  return static_cast<double>(doubled) / (2.0 * static_cast<double>(pairs));
}

TEST(Auc, IsTheCountOfPairsAlsoWithManyTies) {
  Random random(19);
  uint64_t ties = 0;
  for (uint32_t round = 0; round < 300; ++round) {
    const uint64_t samples = random.Between(2, 200), distinct = random.Between(1, 50);
    std::vector<float> scores(samples), labels(samples);
    for (size_t i = 0; i < samples; ++i) {
      scores[i] = static_cast<float>(random.Below(distinct)) - 25.0f;
      labels[i] = random.OneIn(4) ? 1.0f : 0.0f;
    }
    labels[0] = 0.0f, labels[1] = 1.0f;
    ties += samples > distinct ? 1 : 0;
    ASSERT_EQ(*Auc(scores, labels), CountPairs(scores, labels)) << round;
  }
  EXPECT_GT(ties, 0u);
}

TEST(Auc, HasItsBounds) {
  EXPECT_EQ(*Auc(std::vector{1.0f, 2.0f, 3.0f}, std::vector{0.0f, 0.0f, 1.0f}), 1.0);
  EXPECT_EQ(*Auc(std::vector{1.0f, 2.0f, 3.0f}, std::vector{1.0f, 0.0f, 0.0f}), 0.0);
  EXPECT_EQ(*Auc(std::vector{2.0f, 2.0f, 2.0f}, std::vector{1.0f, 0.0f, 0.0f}), 0.5);
  EXPECT_EQ(*Auc(std::vector{-0.0f, 0.0f}, std::vector{1.0f, 0.0f}), 0.5);
}

TEST(Auc, NeedsBothLabelsAndNoNan) {
  EXPECT_TRUE(IsFailedPrecondition(Auc(std::vector{1.0f, 2.0f}, std::vector{1.0f, 1.0f}).status()));
  EXPECT_TRUE(IsFailedPrecondition(Auc({}, {}).status()));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(IsInvalidArgument(Auc(std::vector{1.0f, nan}, std::vector{1.0f, 0.0f}).status()));
}

}  // namespace
}  // namespace embank::test::auc_test
