#include "train/dense/auc.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <vector>

#include "tests/support/random.h"
#include "train/scores.h"

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

struct Samples {
  std::vector<float> scores;
  std::vector<float> labels;
};

// Scores around a mean, by sums of four even ones; those of positive samples are higher.
Samples Draw(size_t count, float mean, float deviation) {
  Random random(7);
  Samples samples;
  for (size_t i = 0; i < count; ++i) {
    const bool is_positive = random.OneIn(10);
    float sum = is_positive ? 1.0f : 0.0f;
    for (int part = 0; part < 4; ++part) sum += 0.866f * random.Signed();
    samples.scores.push_back(mean + deviation * sum);
    samples.labels.push_back(is_positive ? 1.0f : 0.0f);
  }
  return samples;
}

double AucOfCounts(const std::vector<float>& scores, const std::vector<float>& labels) {
  AucCounts counts;
  counts.Add(std::span(scores).first(1), std::span(labels).first(1));
  counts.Add(std::span(scores).subspan(1), std::span(labels).subspan(1));
  return *counts.Auc();
}

TEST(AucCounts, AreNearTheExactOne) {
  for (const float mean : {-6.0f, -3.0f, 0.0f, 12.0f}) {
    for (const float deviation : {0.1f, 1.0f, 3.0f}) {
      const Samples samples = Draw(200'000, mean, deviation);
      const double exact = *Auc(samples.scores, samples.labels);
      EXPECT_NEAR(exact, 0.76, 0.01);
      EXPECT_NEAR(AucOfCounts(samples.scores, samples.labels), exact, 1e-4)
          << mean << " " << deviation;
    }
  }
}

TEST(AucCounts, HaveTheBoundsOfTheExactOne) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> rising = {-infinity, -1e4f, -2.0f, -1e-4f,  1e-4f,
                                     0.5f,      30.0f, 6e4f,  infinity};
  for (size_t positives = 1; positives < rising.size(); ++positives) {
    std::vector<float> labels(rising.size(), 0.0f);
    std::fill(labels.end() - static_cast<ptrdiff_t>(positives), labels.end(), 1.0f);
    EXPECT_EQ(AucOfCounts(rising, labels), 1.0);
    std::ranges::reverse(labels);
    EXPECT_EQ(AucOfCounts({rising.rbegin(), rising.rend()}, labels), 1.0);
  }
  EXPECT_EQ(AucOfCounts({-0.0f, 0.0f}, {1.0f, 0.0f}), 0.5);
  AucCounts counts;
  EXPECT_TRUE(IsFailedPrecondition(counts.Auc().status()));
  counts.Add(std::vector{1.0f, 2.0f}, std::vector{1.0f, 1.0f});
  EXPECT_TRUE(IsFailedPrecondition(counts.Auc().status()));
  counts.Add(std::vector{std::numeric_limits<float>::quiet_NaN()}, std::vector{0.0f});
  EXPECT_TRUE(IsInvalidArgument(counts.Auc().status()));
}

// Also where samples are in the order of their labels, so that the last million has one label.
TEST(Scores, HaveTheAucOfAllSamples) {
  const Samples drawn = Draw(3'000'000, -2.0f, 1.0f);
  std::vector<size_t> order(drawn.scores.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](size_t i) { return drawn.labels[i]; });
  Samples samples;
  for (const size_t i : order) {
    samples.scores.push_back(drawn.scores[i]);
    samples.labels.push_back(drawn.labels[i]);
  }
  constexpr size_t kBatch = 1 << 16;
  Scores scores;
  for (size_t begin = 0; begin < order.size(); begin += kBatch) {
    const size_t count = std::min(kBatch, order.size() - begin);
    scores.Add(std::span(samples.scores).subspan(begin, count),
               std::span(samples.labels).subspan(begin, count));
    if (scores.samples() != Scores::kKeptMax) continue;
    EXPECT_EQ(scores.auc(), *Auc(std::span(samples.scores).first(Scores::kKeptMax),
                                 std::span(samples.labels).first(Scores::kKeptMax)));
  }
  EXPECT_EQ(scores.samples(), order.size());
  EXPECT_NEAR(scores.auc(), *Auc(samples.scores, samples.labels), 1e-5);
}

}  // namespace
}  // namespace embank::test::auc_test
