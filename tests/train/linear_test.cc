// The linear layer and the functions of one value.
#include "train/dense/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/crc32c.h"
#include "tests/train/dense_values.h"
#include "train/dense/activation.h"
#include "train/dense/gemm.h"

namespace embank::test::linear_test {
namespace {

class Linear : public testing::Test {
 protected:
  static constexpr uint32_t kSamples = 7, kInputs = 5, kOutputs = 3;

  void SetUp() override {
    ASSERT_TRUE(PrepareGemm().ok());
    for (float& b : bias_) b = static_cast<float>(random_.Below(9));
  }

  Random random_{3};
  OwnedMatrix input_{kSamples, kInputs, 2}, weights_{kOutputs, kInputs};
  OwnedMatrix output_{kSamples, kOutputs, 1}, output_gradient_{kSamples, kOutputs, 4};
  OwnedMatrix weight_gradient_{kOutputs, kInputs}, input_gradient_{kSamples, kInputs, 3};
  std::vector<float> bias_ = std::vector<float>(kOutputs), bias_gradient_ = bias_;
};

TEST_F(Linear, IsThePlainLoopForWholeNumbers) {
  input_.FillWhole(&random_, 20), weights_.FillWhole(&random_, 20);
  output_gradient_.FillWhole(&random_, 20);
  LinearForward(input_.view(), weights_.view(), bias_, output_.view());
  LinearBackward(input_.view(), weights_.view(), output_gradient_.view(),
                 {weight_gradient_.view(), bias_gradient_, input_gradient_.view()});
  for (uint32_t o = 0; o < kOutputs; ++o) {
    float bias = 0.0f;
    for (uint32_t s = 0; s < kSamples; ++s) {
      float sum = bias_[o];
      for (uint32_t i = 0; i < kInputs; ++i) sum += input_.At(s, i) * weights_.At(o, i);
      EXPECT_EQ(output_.At(s, o), sum);
      bias += output_gradient_.At(s, o);
    }
    EXPECT_EQ(bias_gradient_[o], bias);
    for (uint32_t i = 0; i < kInputs; ++i) {
      float sum = 0.0f;
      for (uint32_t s = 0; s < kSamples; ++s) sum += output_gradient_.At(s, o) * input_.At(s, i);
      EXPECT_EQ(weight_gradient_.At(o, i), sum);
    }
  }
  for (uint32_t s = 0; s < kSamples; ++s) {
    for (uint32_t i = 0; i < kInputs; ++i) {
      float sum = 0.0f;
      for (uint32_t o = 0; o < kOutputs; ++o) sum += output_gradient_.At(s, o) * weights_.At(o, i);
      EXPECT_EQ(input_gradient_.At(s, i), sum);
    }
  }
  output_.ExpectPaddingIntact();
  input_gradient_.ExpectPaddingIntact();
}

TEST_F(Linear, HasTheGradientsOfDifferences) {
  input_.FillSigned(&random_), weights_.FillSigned(&random_), output_gradient_.FillSigned(&random_);
  LinearBackward(input_.view(), weights_.view(), output_gradient_.view(),
                 {weight_gradient_.view(), bias_gradient_, input_gradient_.view()});
  auto Loss = [&] {
    LinearForward(input_.view(), weights_.view(), bias_, output_.view());
    return WeightedSum(output_.view(), output_gradient_.view());
  };
  ExpectDifferences(input_.view(), input_gradient_.view(), Loss, 1e-3);
  ExpectDifferences(weights_.view(), weight_gradient_.view(), Loss, 1e-3);
  ExpectDifferences(Matrix(bias_.data(), 1, kOutputs),
                    ConstMatrix(bias_gradient_.data(), 1, kOutputs), Loss, 1e-3);
}

TEST_F(Linear, LeavesOutAGradientOfTheInputThatNobodyNeeds) {
  input_.FillWhole(&random_, 5), weights_.FillWhole(&random_, 5);
  output_gradient_.FillWhole(&random_, 5);
  LinearBackward(input_.view(), weights_.view(), output_gradient_.view(),
                 {weight_gradient_.view(), bias_gradient_, {}});
  EXPECT_NE(weight_gradient_.At(0, 0), OwnedMatrix::kPadding);
}

TEST(InitializeLinear, DrawsTheDeviationsOfDlrm) {
  constexpr uint32_t kOutputs = 256, kInputs = 512;
  OwnedMatrix weights(kOutputs, kInputs);
  std::vector<float> bias(kOutputs);
  InitializeLinear(1, weights.view(), bias);
  auto Deviation = [](std::span<const float> values) {
    double squares = 0.0;
    for (const float x : values) squares += static_cast<double>(x) * static_cast<double>(x);
    return std::sqrt(squares / static_cast<double>(values.size()));
  };
  const std::span<const float> all(weights.view().data, kOutputs * kInputs);
  EXPECT_NEAR(Deviation(all) / std::sqrt(2.0 / (kOutputs + kInputs)), 1.0, 0.01);
  EXPECT_NEAR(Deviation(bias) / std::sqrt(1.0 / kOutputs), 1.0, 0.15);
  // Released bits: a run that is repeated elsewhere begins with the same weights.
  EXPECT_EQ(ExtendCrc32c(0, std::as_bytes(all)), 3675701290u);
}

TEST(Relu, CutsNegativeValuesAndTheirGradients) {
  constexpr float kIn[] = {-1.0f, -0.0f, 0.0f, 2.0f, -1e-40f, 5.0f};
  constexpr float kOut[] = {0.0f, 0.0f, 0.0f, 2.0f, 0.0f, 5.0f};
  // Less and more than the widest vector.
  for (const uint32_t columns : {3u, 39u}) {
    std::vector<float> x, expected_x, g, expected_g;
    for (uint32_t i = 0; i < 2 * columns; ++i) {
      x.push_back(kIn[i % 6]);
      expected_x.push_back(kOut[i % 6]);
      g.push_back(static_cast<float>(i + 1));
      expected_g.push_back(kOut[i % 6] > 0.0f ? g.back() : 0.0f);
    }
    ReluForward({x.data(), 2, columns});
    EXPECT_EQ(x, expected_x);
    ReluBackward(ConstMatrix{x.data(), 2, columns}, {g.data(), 2, columns});
    EXPECT_EQ(g, expected_g);
  }
}

TEST(Relu, KeepsNan) {
  float x = std::numeric_limits<float>::quiet_NaN();
  ReluForward({&x, 1, 1});
  EXPECT_TRUE(std::isnan(x));
}

TEST(SigmoidLayer, HasTheValuesAndGradientsOfTheFunction) {
  Random random(5);
  OwnedMatrix input(4, 3), gradient(4, 3), weights(4, 3), output(4, 3);
  input.FillSigned(&random), weights.FillSigned(&random);
  auto Loss = [&] {
    double loss = 0.0;
    for (uint32_t i = 0; i < 4; ++i) {
      for (uint32_t j = 0; j < 3; ++j) {
        output.At(i, j) = input.At(i, j);
        loss += static_cast<double>(weights.At(i, j)) /
                (1.0 + std::exp(-static_cast<double>(input.At(i, j))));
      }
    }
    SigmoidForward(output.view());
    EXPECT_NEAR(WeightedSum(output.view(), weights.view()), loss, 1e-6);
    return loss;
  };
  Loss();
  for (uint32_t i = 0; i < 4; ++i) {
    for (uint32_t j = 0; j < 3; ++j) gradient.At(i, j) = weights.At(i, j);
  }
  SigmoidBackward(output.view(), gradient.view());
  ExpectDifferences(input.view(), gradient.view(), Loss, 1e-4);
}

TEST(SigmoidLayer, ReachesItsBounds) {
  EXPECT_EQ(Sigmoid(0.0), 0.5);
  EXPECT_EQ(Sigmoid(-1e300), 0.0);
  EXPECT_EQ(Sigmoid(1e300), 1.0);
  EXPECT_EQ(Sigmoid(-30.0) + Sigmoid(30.0), 1.0);
  EXPECT_TRUE(std::isnan(Sigmoid(std::numeric_limits<double>::quiet_NaN())));
}

}  // namespace
}  // namespace embank::test::linear_test
