#include "train/dense/softmax_gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "tests/train/dense_values.h"

namespace embank::test::softmax_gate_test {
namespace {

constexpr uint32_t kSamples = 4, kExperts = 3, kDim = 5;

class SoftmaxGate : public testing::Test {
 protected:
  SoftmaxGate() {
    for (uint32_t e = 0; e < kExperts; ++e) {
      experts_.emplace_back(kSamples, kDim, e);
      expert_gradients_.emplace_back(kSamples, kDim);
    }
    for (uint32_t e = 0; e < kExperts; ++e) {
      expert_views_.emplace_back(experts_[e].FillSigned(&random_).view());
      expert_gradient_views_.push_back(expert_gradients_[e].FillWhole(&random_, 0).view());
    }
    logits_.FillSigned(&random_), output_gradient_.FillSigned(&random_);
  }

  double Loss() {
    SoftmaxGateForward(logits_.view(), expert_views_, weights_.view(), output_.view());
    return WeightedSum(output_.view(), output_gradient_.view());
  }
  void Backward() {
    SoftmaxGateBackward(weights_.view(), expert_views_, output_gradient_.view(),
                        {logit_gradient_.view(), expert_gradient_views_});
  }

  Random random_{13};
  OwnedMatrix logits_{kSamples, kExperts}, weights_{kSamples, kExperts, 1};
  OwnedMatrix logit_gradient_{kSamples, kExperts};
  OwnedMatrix output_{kSamples, kDim, 2}, output_gradient_{kSamples, kDim};
  std::vector<OwnedMatrix> experts_, expert_gradients_;
  std::vector<ConstMatrix> expert_views_;
  std::vector<Matrix> expert_gradient_views_;
};

TEST_F(SoftmaxGate, WeighsByTheSoftmax) {
  Loss();
  for (uint32_t s = 0; s < kSamples; ++s) {
    double sum = 0.0;
    for (uint32_t e = 0; e < kExperts; ++e) sum += std::exp(logits_.At(s, e));
    for (uint32_t d = 0; d < kDim; ++d) {
      double expected = 0.0;
      for (uint32_t e = 0; e < kExperts; ++e) {
        expected += std::exp(logits_.At(s, e)) / sum * experts_[e].At(s, d);
      }
      EXPECT_NEAR(output_.At(s, d), expected, 1e-6);
    }
  }
}

TEST_F(SoftmaxGate, HasTheGradientsOfDifferences) {
  Loss();
  Backward();
  ExpectDifferences(
      logits_.view(), logit_gradient_.view(), [&] { return Loss(); }, 1e-3);
  for (uint32_t e = 0; e < kExperts; ++e) {
    ExpectDifferences(
        experts_[e].view(), expert_gradients_[e].view(), [&] { return Loss(); }, 1e-3);
  }
}

TEST_F(SoftmaxGate, AddsToTheGradientsOfExpertsThatSeveralTasksHave) {
  Loss();
  Backward();
  const float once = expert_gradients_[1].At(2, 3);
  Backward();
  EXPECT_EQ(expert_gradients_[1].At(2, 3), once + once);
}

TEST_F(SoftmaxGate, DoesNotOverflowForLargeLogits) {
  logits_.At(0, 0) = 3e38f, logits_.At(0, 1) = -3e38f, logits_.At(0, 2) = 3e38f;
  Loss();
  EXPECT_EQ(weights_.At(0, 0), 0.5f);
  EXPECT_EQ(weights_.At(0, 1), 0.0f);
  EXPECT_EQ(weights_.At(0, 2), 0.5f);
}

}  // namespace
}  // namespace embank::test::softmax_gate_test
