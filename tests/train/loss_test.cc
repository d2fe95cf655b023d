#include "train/dense/loss.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/train/dense_values.h"

namespace embank::test::loss_test {
namespace {

TEST(LogLoss, IsTheLogarithmOfTheProbabilityOfTheLabel) {
  for (const float logit : {-30.0f, -3.0f, -0.1f, 0.0f, 0.5f, 7.0f, 30.0f}) {
    const std::vector<float> logits = {logit};
    const auto z = static_cast<double>(logit);
    EXPECT_NEAR(SumLogLoss(logits, std::vector{1.0f}), std::log1p(std::exp(-z)), 1e-14) << logit;
    EXPECT_NEAR(SumLogLoss(logits, std::vector{0.0f}), std::log1p(std::exp(z)), 1e-14) << logit;
  }
}

TEST(LogLoss, StaysFiniteForTheLargestLogits) {
  EXPECT_EQ(SumLogLoss(std::vector{3e38f}, std::vector{1.0f}), 0.0);
  EXPECT_EQ(SumLogLoss(std::vector{3e38f}, std::vector{0.0f}), static_cast<double>(3e38f));
}

TEST(LogLoss, IsNotFiniteForALogitThatIsNot) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float logit : {nan, infinity}) {
    std::vector<float> gradients(3);
    const double loss = SumLogLossBackward(std::vector{1.0f, logit, 2.0f},
                                           std::vector{0.0f, 0.0f, 1.0f}, 1.0f, gradients);
    EXPECT_FALSE(std::isfinite(loss)) << logit;
  }
}

TEST(LogLoss, IsLessThanNoNumberIfItIsOne) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_TRUE(IsLessLoss(0.5, 0.6));
  EXPECT_FALSE(IsLessLoss(0.6, 0.6));
  for (const double loss : {0.5, infinity}) {
    EXPECT_TRUE(IsLessLoss(loss, nan));
    EXPECT_FALSE(IsLessLoss(nan, loss));
  }
  EXPECT_FALSE(IsLessLoss(nan, nan));
}

TEST(LogLoss, HasTheGradientsOfDifferences) {
  constexpr uint32_t kSamples = 20;
  Random random(17);
  std::vector<float> logits(kSamples), labels(kSamples), gradients(kSamples);
  for (uint32_t i = 0; i < kSamples; ++i) {
    logits[i] = 8.0f * random.Signed();
    labels[i] = random.OneIn(3) ? 1.0f : 0.0f;
  }
  const double sum = SumLogLossBackward(logits, labels, 1.0f / kSamples, gradients);
  EXPECT_EQ(sum, SumLogLoss(logits, labels));
  ExpectDifferences(
      Matrix(logits.data(), 1, kSamples), ConstMatrix(gradients.data(), 1, kSamples),
      [&] { return SumLogLoss(logits, labels) / kSamples; }, 1e-5);
}

}  // namespace
}  // namespace embank::test::loss_test
