// Options of all rules, and steps that are not made because their results would not be finite.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <vector>

#include "tests/tiers/updated_row.h"
#include "tiers/row/row_update.h"

namespace embank::test::step_options_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kMax = std::numeric_limits<float>::max();

// ---- options of all rules ----

TEST(MaxGradientNorm, ScalesALongerGradientDownAndNoOther) {
  const UpdateRule rule = {.learning_rate = 1.0f, .max_gradient_norm = 5.0f};
  UpdatedRow row = F32Row(Optimizer::kSgd, rule, {0.0f, 0.0f});
  row.Step({3.0f, 4.0f});  // a norm of 5
  EXPECT_EQ(row.W(0), -3.0f);
  EXPECT_EQ(row.W(1), -4.0f);
  UpdatedRow longer = F32Row(Optimizer::kSgd, rule, {0.0f, 0.0f});
  longer.Step({6.0f, 8.0f});  // a half of it
  EXPECT_EQ(longer.W(0), -3.0f);
  EXPECT_EQ(longer.W(1), -4.0f);
}

TEST(MaxGradientNorm, IsComputedInFloat64) {
  UpdatedRow row =
      F32Row(Optimizer::kSgd, {.learning_rate = 1.0f, .max_gradient_norm = 5.0f}, {0.0f, 0.0f});
  row.Step({3e30f, 4e30f});  // the squares would overflow in float32
  EXPECT_NEAR(row.W(0), -3.0f, 1e-6f);
  EXPECT_NEAR(row.W(1), -4.0f, 1e-6f);
}

TEST(MaxGradientNorm, ComesBeforeDecay) {
  UpdatedRow row =
      F32Row(Optimizer::kSgd,
             {.learning_rate = 1.0f, .weight_decay = 0.5f, .max_gradient_norm = 1.0f}, {8.0f});
  row.Step({2.0f});  // scaled to 1, and 4 of decay
  EXPECT_EQ(row.W(0), 3.0f);
}

TEST(DecoupledWeightDecay, ShrinksTheWeightBeforeItsStep) {
  const UpdateRule rule = {.learning_rate = 0.5f, .decoupled_weight_decay = 0.5f};
  UpdatedRow row = F32Row(Optimizer::kSgd, rule, {4.0f, -8.0f});
  row.Step({1.0f, 0.0f});
  EXPECT_EQ(row.W(0), 3.0f - 0.5f);
  EXPECT_EQ(row.W(1), -6.0f);
  UpdatedRow half(ValueType::kF16, Optimizer::kAdagrad, rule, {4.0f});
  half.Step({2.0f});
  EXPECT_EQ(half.State(0), 4.0f) << "it is not in the gradient";
  EXPECT_EQ(half.W(0), 3.0f - 0.5f);
}

// z 3, n 9, without penalties w = -3 * 0.5 / 3.
TEST(Ftrl, L1TakesWeightsToZeroAndL2Shrinks) {
  UpdatedRow sparse = F32Row(Optimizer::kFtrl, {.learning_rate = 0.5f, .ftrl_l1 = 3.0f}, {0.0f});
  sparse.Step({3.0f});
  EXPECT_EQ(sparse.W(0), 0.0f);
  EXPECT_EQ(sparse.State(0), 3.0f);
  UpdatedRow shrunk = F32Row(Optimizer::kFtrl, {.learning_rate = 0.5f, .ftrl_l1 = 1.0f}, {0.0f});
  shrunk.Step({3.0f});
  EXPECT_EQ(shrunk.W(0), -(2.0f * 0.5f) / 3.0f);
  UpdatedRow ridge = F32Row(Optimizer::kFtrl, {.learning_rate = 0.5f, .ftrl_l2 = 2.0f}, {0.0f});
  ridge.Step({3.0f});
  EXPECT_EQ(ridge.W(0), -(3.0f * 0.5f) / (3.0f + 2.0f * 0.5f));
}

TEST(Ftrl, ANewRowIsItsOwnMinimumWithPenaltiesToo) {
  UpdatedRow row =
      F32Row(Optimizer::kFtrl,
             {.learning_rate = 0.5f, .initial_accumulator = 4.0f, .ftrl_l1 = 3.0f, .ftrl_l2 = 2.0f},
             {1.0f, -2.0f, 0.0f});
  EXPECT_EQ(row.State(0), -6.0f - 3.0f);  // -1 * (2 + 2 * 0.5) / 0.5, and l1
  row.Step({0.0f, 0.0f, 0.0f});
  EXPECT_EQ(row.W(0), 1.0f);
  EXPECT_EQ(row.W(1), -2.0f);
  EXPECT_EQ(row.W(2), 0.0f);
}

// Steps of 1e-4 are less than half of the distance of halves at 1, 2^-10.
TEST(StochasticRounding, KeepsTheMeanOfStepsThatAreTooSmall) {
  for (const ValueType type : {ValueType::kF16, ValueType::kBf16}) {
    constexpr uint32_t kDim = 512;
    UpdateRule rule = {.learning_rate = 1e-4f};
    UpdatedRow nearest(type, Optimizer::kSgd, rule, std::vector<float>(kDim, 1.0f));
    rule.rounding = Rounding::kStochastic;
    UpdatedRow drawn(type, Optimizer::kSgd, rule, std::vector<float>(kDim, 1.0f));
    for (uint64_t call = 1; call <= 1000; ++call) {
      nearest.Step(std::vector<float>(kDim, -1.0f));
      drawn.Step(std::vector<float>(kDim, -1.0f), RoundingSeed(7, call));
    }
    double sum = 0.0;
    for (uint32_t i = 0; i < kDim; ++i) {
      EXPECT_EQ(nearest.W(i), 1.0f);
      sum += drawn.W(i);
    }
    // A step of 2^-10 (2^-7) with probability p has the variance p * 2^-20 (2^-14): the mean of 512
    // elements has a deviation of 0.0005 (0.0014) at most.
    EXPECT_NEAR(sum / kDim, 1.1, type == ValueType::kF16 ? 0.003 : 0.008);
  }
}

constexpr Optimizer kRules[] = {Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad,
                                Optimizer::kAdam, Optimizer::kFtrl};

// A row of halves is what the same row of floats would be, each element rounded by its own draw.
TEST(StochasticRounding, TakesTheDrawOfEachElement) {
  constexpr uint64_t kSeed = 77;
  for (const ValueType type : {ValueType::kF16, ValueType::kBf16}) {
    for (const Optimizer optimizer : kRules) {
      for (const uint32_t dim : {1u, 16u, 33u, 100u, 700u}) {
        UpdateRule rule = {.learning_rate = 1e-4f, .epsilon = 1e-3f};
        std::vector<float> w(dim);
        std::vector<float> gradient(dim);
        for (uint32_t i = 0; i < dim; ++i) {
          w[i] = 0.5f + 0.25f * static_cast<float>(i % 5);
          gradient[i] = static_cast<float>(i % 13) - 6.0f;
        }
        UpdatedRow wide(ValueType::kF32, optimizer, rule, w);
        wide.Step(gradient);
        rule.rounding = Rounding::kStochastic;
        UpdatedRow drawn(type, optimizer, rule, w);
        drawn.Step(gradient, kSeed);
        for (uint32_t i = 0; i < dim; ++i) {
          const uint32_t draw = RoundingDraw(kSeed, i);
          ASSERT_EQ(drawn.W(i), type == ValueType::kF16 ? F16ToFloat(DrawF16(wide.W(i), draw))
                                                        : Bf16ToFloat(DrawBf16(wide.W(i), draw)))
              << static_cast<int>(optimizer) << ", " << i << " of " << dim;
        }
      }
    }
  }
}

// ---- steps that would leave numbers that are not finite ----

struct Overflow {
  Optimizer optimizer;
  ValueType type;
  float gradient;
};

// The smallest gradients of the rules that were seen to spoil a row.
constexpr Overflow kOverflows[] = {
    {Optimizer::kSgd, ValueType::kF32, kMax},
    {Optimizer::kSgd, ValueType::kF16, 7e4f},
    {Optimizer::kSgd, ValueType::kBf16, kMax},
    {Optimizer::kAdagrad, ValueType::kF32, 1e20f},
    {Optimizer::kAdagrad, ValueType::kF16, 1e20f},
    {Optimizer::kRowwiseAdagrad, ValueType::kF32, 1e20f},
    {Optimizer::kRowwiseAdagrad, ValueType::kBf16, 1e20f},
    {Optimizer::kAdam, ValueType::kF32, 3e38f},
    {Optimizer::kFtrl, ValueType::kF32, 1e20f},
    {Optimizer::kFtrl, ValueType::kF16, 1e20f},
};

TEST(NotFinite, AStepIsNotMadeWhereverTheGradientIsTooLarge) {
  for (const Overflow& c : kOverflows) {
    for (const uint32_t dim : {1u, 5u, 16u, 33u, 600u, 1025u}) {
      for (const float decay : {0.0f, 0.125f}) {
        UpdatedRow row(c.type, c.optimizer, {.learning_rate = 2.0f, .weight_decay = decay},
                       std::vector<float>(dim, -0.5f));
        row.Step(std::vector<float>(dim, 0.25f));
        const std::vector<std::byte> before = row.Bytes();
        for (uint32_t at = 0; at < dim; at += 1 + dim / 7) {
          std::vector<float> gradient(dim, 0.25f);
          gradient[at] = c.gradient;
          EXPECT_FALSE(row.Step(gradient)) << static_cast<int>(c.optimizer) << " at " << at;
          ASSERT_EQ(row.Bytes(), before) << static_cast<int>(c.optimizer) << " at " << at;
        }
        EXPECT_TRUE(row.Step(std::vector<float>(dim, 0.25f)));
        EXPECT_NE(row.Bytes(), before);
      }
    }
  }
}

TEST(NotFinite, ARowThatIsNotFiniteStaysUntilItIsWritten) {
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    for (const ValueType type : {ValueType::kF32, ValueType::kF16, ValueType::kBf16}) {
      for (const Optimizer optimizer : kRules) {
        UpdatedRow row(type, optimizer, {.learning_rate = 0.5f}, std::vector<float>(40, 0.5f));
        row.Step(std::vector<float>(40, 1.0f));
        const uint32_t states = StateFloats(optimizer, 40);
        for (uint32_t at = 0; at < std::min(states, 80u); at += 13) {
          const float good = row.State(at);
          row.State(at) = bad;
          const std::vector<std::byte> before = row.Bytes();
          EXPECT_FALSE(row.Step(std::vector<float>(40, 1.0f))) << "state " << at;
          EXPECT_EQ(row.Bytes(), before);
          row.State(at) = good;
        }
        row.SetW(39, bad);
        const std::vector<std::byte> before = row.Bytes();
        EXPECT_FALSE(row.Step(std::vector<float>(40, 0.0f))) << static_cast<int>(optimizer);
        EXPECT_FALSE(row.Step(std::vector<float>(40, 1.0f))) << static_cast<int>(optimizer);
        EXPECT_EQ(row.Bytes(), before);
        row.SetW(39, 0.5f);
        EXPECT_TRUE(row.Step(std::vector<float>(40, 1.0f)));
      }
    }
  }
}

TEST(NotFinite, ASumThatOverflowedIsNoStep) {
  for (const Optimizer optimizer : kRules) {
    for (const float norm : {0.0f, 1.0f}) {
      UpdatedRow row =
          F32Row(optimizer, {.learning_rate = 0.0078125f, .max_gradient_norm = norm}, {1.0f, 1.0f});
      EXPECT_FALSE(row.Step({kInfinity, 1.0f})) << static_cast<int>(optimizer);
      EXPECT_FALSE(row.Step({1.0f, std::numeric_limits<float>::quiet_NaN()}));
      EXPECT_EQ(row.W(0), 1.0f);
    }
  }
}

}  // namespace
}  // namespace embank::test::step_options_test
