// Each rule against numbers worked out by hand, chosen so that most of them are exact.
#include "tiers/row/row_update.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "base/half.h"
#include "tests/support/random.h"
#include "tests/tiers/updated_row.h"

namespace embank::test::row_update_test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kTiny = std::numeric_limits<float>::denorm_min();

TEST(Sgd, StepsByRateTimesGradient) {
  UpdatedRow row = F32Row(Optimizer::kSgd, {.learning_rate = 0.5f}, {1.0f, -2.0f});
  row.Step({0.25f, 4.0f});
  EXPECT_EQ(row.W(0), 0.875f);
  EXPECT_EQ(row.W(1), -4.0f);
}

TEST(Sgd, DecaysTowardsZero) {
  UpdatedRow row =
      F32Row(Optimizer::kSgd, {.learning_rate = 0.5f, .weight_decay = 0.5f}, {1.0f, -2.0f});
  row.Step({0.25f, 4.0f});
  EXPECT_EQ(row.W(0), 1.0f - 0.5f * 0.75f);
  EXPECT_EQ(row.W(1), -2.0f - 0.5f * 3.0f);
}

TEST(Adagrad, DividesByTheRootOfTheSumOfSquares) {
  UpdatedRow row =
      F32Row(Optimizer::kAdagrad, {.learning_rate = 0.5f, .epsilon = 1.0f}, {2.0f, 2.0f});
  EXPECT_EQ(row.State(0), 0.0f);
  row.Step({3.0f, -3.0f});
  EXPECT_EQ(row.State(0), 9.0f);
  EXPECT_EQ(row.W(0), 2.0f - 1.5f / 4.0f);
  EXPECT_EQ(row.W(1), 2.0f + 1.5f / 4.0f);
  row.Step({4.0f, 0.0f});
  EXPECT_EQ(row.State(0), 25.0f);
  EXPECT_EQ(row.W(0), (2.0f - 1.5f / 4.0f) - 2.0f / 6.0f);
  EXPECT_EQ(row.State(1), 9.0f);
  EXPECT_EQ(row.W(1), 2.375f);
}

TEST(Adagrad, StartsAtItsInitialAccumulator) {
  UpdatedRow row =
      F32Row(Optimizer::kAdagrad,
             {.learning_rate = 0.5f, .epsilon = 1.0f, .initial_accumulator = 7.0f}, {2.0f});
  EXPECT_EQ(row.State(0), 7.0f);
  row.Step({3.0f});
  EXPECT_EQ(row.State(0), 16.0f);
  EXPECT_EQ(row.W(0), 2.0f - 1.5f / 5.0f);
}

TEST(Adagrad, MultipliesBeforeItDivides) {
  int orders_differ = 0;
  for (float g = 0.1f; g < 2.0f; g += 0.1f) {
    UpdatedRow row = F32Row(Optimizer::kAdagrad, {.learning_rate = 0.1f, .epsilon = 0.1f}, {0.0f});
    row.Step({g});
    const float divisor = std::sqrt(g * g) + 0.1f;
    EXPECT_EQ(row.W(0), -((0.1f * g) / divisor));
    if ((0.1f * g) / divisor != 0.1f * (g / divisor)) ++orders_differ;
  }
  EXPECT_GT(orders_differ, 3);
}

TEST(Adagrad, WithAZeroDivisorKeepsTheWeight) {
  UpdatedRow row =
      F32Row(Optimizer::kAdagrad, {.learning_rate = 1.0f, .epsilon = 0.0f}, {1.0f, 1.0f});
  row.Step({0.0f, 1e-30f});  // the square of the second underflows to zero
  EXPECT_EQ(row.W(0), 1.0f);
  EXPECT_EQ(row.W(1), 1.0f);
  EXPECT_EQ(row.State(1), 0.0f);
  row.Step({2.0f, 2.0f});
  EXPECT_EQ(row.W(0), 0.0f);
}

TEST(RowwiseAdagrad, HasOneMeanOfSquaresPerRow) {
  UpdatedRow row =
      F32Row(Optimizer::kRowwiseAdagrad,
             {.learning_rate = 0.5f, .epsilon = 1.0f, .initial_accumulator = 4.0f}, {1.0f, 1.0f});
  EXPECT_EQ(row.State(0), 4.0f);
  row.Step({3.0f, 1.0f});  // (9 + 1) / 2 = 5
  EXPECT_EQ(row.State(0), 9.0f);
  EXPECT_EQ(row.W(0), 1.0f - 1.5f / 4.0f);
  EXPECT_EQ(row.W(1), 1.0f - 0.5f / 4.0f);
}

TEST(RowwiseAdagrad, DecaysOnceBeforeBothSumAndStep) {
  UpdatedRow row =
      F32Row(Optimizer::kRowwiseAdagrad,
             {.learning_rate = 0.5f, .epsilon = 0.0f, .weight_decay = 0.5f}, {2.0f, 2.0f});
  row.Step({1.0f, 1.0f});  // decayed to 2 each
  EXPECT_EQ(row.State(0), 4.0f);
  EXPECT_EQ(row.W(0), 2.0f - 1.0f / 2.0f);
}

TEST(RowwiseAdagrad, WithAZeroDivisorKeepsTheWeights) {
  UpdatedRow row =
      F32Row(Optimizer::kRowwiseAdagrad, {.learning_rate = 1.0f, .epsilon = 0.0f}, {1.0f, 2.0f});
  row.Step({0.0f, 0.0f});
  EXPECT_EQ(row.W(0), 1.0f);
  EXPECT_EQ(row.W(1), 2.0f);
}

// docs/arithmetic.md, "Sum": the lanes by their definition, the folding as a tree from its root.
struct Lanes {
  std::array<float, 32> sums{};
  float Folded(uint32_t lane, uint32_t lanes) const {
    if (lanes == 32) return sums[lane];
    return Folded(lane, 2 * lanes) + Folded(lane + lanes, 2 * lanes);
  }
};

float SumOfSquaresOnPaper(const std::vector<float>& x) {
  Lanes lanes;
  for (uint32_t lane = 0; lane < 32; ++lane) {
    for (size_t i = lane; i < x.size(); i += 32) lanes.sums[lane] += x[i] * x[i];
  }
  return lanes.Folded(0, 1);
}

TEST(RowwiseAdagrad, SumsSquaresInTheFixedTreeForEveryDim) {
  Random random(1);
  int order_matters = 0;
  for (uint32_t dim = 1; dim <= 4096; dim += dim < 200 ? 1 : 211) {
    std::vector<float> gradient(dim);
    for (float& g : gradient) g = random.Signed();
    UpdatedRow row = F32Row(Optimizer::kRowwiseAdagrad, {}, std::vector<float>(dim, 1.0f));
    row.Step(gradient);
    ASSERT_EQ(row.State(0), SumOfSquaresOnPaper(gradient) / static_cast<float>(dim)) << dim;
    float in_order = 0;
    for (const float g : gradient) in_order += g * g;
    order_matters += in_order != SumOfSquaresOnPaper(gradient) ? 1 : 0;
  }
  EXPECT_GT(order_matters, 100);
}

// beta1 = 1/2 and beta2 = 3/4 make the first step a step by the sign: a = 2 lr, h = 1/2.
TEST(Adam, FirstStepIsTheRateInTheGradientsDirection) {
  UpdatedRow row = F32Row(Optimizer::kAdam,
                          {.learning_rate = 1.0f, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.0f},
                          {10.0f, 10.0f});
  for (uint32_t i = 0; i < 5; ++i) EXPECT_EQ(row.State(i), 0.0f);
  row.Step({4.0f, -0.5f});
  EXPECT_EQ(row.State(0), 2.0f);
  EXPECT_EQ(row.State(1), -0.25f);
  EXPECT_EQ(row.State(2), 4.0f);
  EXPECT_EQ(row.State(3), 0.0625f);
  EXPECT_EQ(row.State(4), 1.0f);
  EXPECT_EQ(row.W(0), 9.0f);
  EXPECT_EQ(row.W(1), 11.0f);
}

TEST(Adam, SecondStepCorrectsForBothPowers) {
  UpdatedRow row =
      F32Row(Optimizer::kAdam,
             {.learning_rate = 1.0f, .beta1 = 0.5f, .beta2 = 0.75f, .epsilon = 0.25f}, {10.0f});
  row.Step({4.0f});
  EXPECT_EQ(row.W(0), 10.0f - 4.0f / 4.25f);
  row.Step({4.0f});
  EXPECT_EQ(row.State(0), 3.0f);  // 2 / 2 + 4 / 2
  EXPECT_EQ(row.State(1), 7.0f);  // 3/4 * 4 + 1/4 * 16
  EXPECT_EQ(row.State(2), 2.0f);
  const auto a = static_cast<float>(1.0 / 0.75);
  const auto h = static_cast<float>(std::sqrt(0.4375));
  EXPECT_EQ(row.W(0), (10.0f - 4.0f / 4.25f) - (a * 3.0f) / (std::sqrt(7.0f) / h + 0.25f));
}

TEST(Adam, CountsStepsUpToWhereAFloatStopsCounting) {
  UpdatedRow row = F32Row(Optimizer::kAdam, {}, {1.0f});
  row.State(2) = 0x1p24f - 1.0f;
  row.Step({1.0f});
  EXPECT_EQ(row.State(2), 0x1p24f);
  row.Step({1.0f});
  EXPECT_EQ(row.State(2), 0x1p24f);
  EXPECT_TRUE(std::isfinite(row.W(0)));
}

TEST(Adam, WithAZeroDivisorKeepsTheWeightWhileTheStateMoves) {
  UpdatedRow row =
      F32Row(Optimizer::kAdam, {.learning_rate = 1.0f, .beta1 = 0.5f, .epsilon = 0.0f}, {1.0f});
  row.Step({1e-30f});
  EXPECT_EQ(row.W(0), 1.0f);
  EXPECT_EQ(row.State(0), 0.5f * 1e-30f);
  EXPECT_EQ(row.State(1), 0.0f);
  EXPECT_EQ(row.State(2), 1.0f);
}

TEST(Adam, SquaresInTheWrittenOrder) {
  UpdatedRow row = F32Row(Optimizer::kAdam, {.beta2 = 0.999f}, {1.0f});
  row.Step({1e20f});  // the square alone would be infinite
  EXPECT_EQ(row.State(1), ((1.0f - 0.999f) * 1e20f) * 1e20f);
  UpdatedRow small = F32Row(Optimizer::kAdam, {.beta2 = 0.999f}, {1.0f});
  small.Step({0.3f});
  EXPECT_EQ(small.State(1), ((1.0f - 0.999f) * 0.3f) * 0.3f);
}

TEST(Ftrl, FollowsThePaperByHand) {
  UpdatedRow row = F32Row(Optimizer::kFtrl, {.learning_rate = 0.5f}, {0.0f});
  row.Step({3.0f});  // n 9, sigma 6, z 3
  EXPECT_EQ(row.State(0), 3.0f);
  EXPECT_EQ(row.State(1), 9.0f);
  EXPECT_EQ(row.W(0), -0.5f);
  row.Step({4.0f});  // n 25, sigma 4, z 3 + (4 + 2)
  EXPECT_EQ(row.State(0), 9.0f);
  EXPECT_EQ(row.State(1), 25.0f);
  EXPECT_EQ(row.W(0), -4.5f / 5.0f);
}

TEST(Ftrl, WithoutAnyGradientSoFarDoesNothing) {
  UpdatedRow row = F32Row(Optimizer::kFtrl, {.learning_rate = 0.5f}, {1.5f, 1.5f});
  row.Step({0.0f, 1e-30f});  // n' == 0 for both: the second square underflows
  EXPECT_EQ(row.W(0), 1.5f);
  EXPECT_EQ(row.W(1), 1.5f);
  EXPECT_EQ(row.State(0), 0.0f);
  EXPECT_EQ(row.State(1), 0.0f);
}

TEST(Ftrl, ANewRowIsItsOwnMinimum) {
  UpdatedRow row =
      F32Row(Optimizer::kFtrl, {.learning_rate = 0.5f, .initial_accumulator = 4.0f}, {1.0f, -3.0f});
  EXPECT_EQ(row.State(0), -4.0f);
  EXPECT_EQ(row.State(1), 12.0f);
  EXPECT_EQ(row.State(2), 4.0f);
  EXPECT_EQ(row.State(3), 4.0f);
  row.Step({0.0f, 0.0f});
  EXPECT_EQ(row.W(0), 1.0f);
  EXPECT_EQ(row.W(1), -3.0f);
}

TEST(Ftrl, StartsFromTheWeightAsItIsStored) {
  const UpdateRule rule = {.learning_rate = 0.5f, .initial_accumulator = 4.0f};
  UpdatedRow row(ValueType::kF16, Optimizer::kFtrl, rule, {0.1f});
  EXPECT_EQ(row.State(0), ((-F16ToFloat(FloatToF16(0.1f))) * 2.0f) / 0.5f);
}

TEST(WeightDecay, TheTiniestIsAdded) {
  UpdatedRow row = F32Row(Optimizer::kAdam, {.beta1 = 0.0f, .weight_decay = kTiny}, {1.0f});
  row.Step({0.0f});
  EXPECT_EQ(row.State(0), kTiny) << "subnormal numbers are kept";
}

TEST(SixteenBitRows, AreRoundedOnceAtTheEnd) {
  // With g = -1 and a divisor of one the step is the rate: in float32 it ends a little above the
  // middle of two values, and so goes up; a rate rounded to 16 bits before would end in the middle,
  // and go down to even.
  const std::pair<ValueType, float> cases[] = {{ValueType::kF16, 0x1p-11f},
                                               {ValueType::kBf16, 0x1p-8f}};
  for (const auto& [type, half_step] : cases) {
    for (const Optimizer optimizer :
         {Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kRowwiseAdagrad}) {
      UpdatedRow row(type, optimizer, {.learning_rate = half_step + 0x1p-23f, .epsilon = 0.0f},
                     {1.0f});
      row.Step({-1.0f});
      EXPECT_EQ(row.W(0), 1.0f + 2 * half_step) << static_cast<int>(optimizer);
    }
    UpdatedRow row(type, Optimizer::kSgd, {.learning_rate = half_step}, {1.0f});
    row.Step({-1.0f});
    EXPECT_EQ(row.W(0), 1.0f) << "ties go to even";
  }
}

TEST(SixteenBitRows, ThatWouldOverflowStayAsTheyAre) {
  UpdatedRow row(ValueType::kF16, Optimizer::kSgd, {.learning_rate = 1.0f}, {65504.0f, 1.0f});
  EXPECT_TRUE(row.Step({-15.0f, -1.0f}));
  EXPECT_EQ(row.W(0), 65504.0f);
  EXPECT_FALSE(row.Step({-16.0f, -1.0f})) << "65520 is rounded to infinity";
  EXPECT_EQ(row.W(0), 65504.0f);
  EXPECT_EQ(row.W(1), 2.0f);
}

TEST(SixteenBitRows, KeepTheirStateInFloat32) {
  UpdatedRow row(ValueType::kBf16, Optimizer::kAdagrad, {.epsilon = 1.0f}, {1.0f});
  row.Step({0.3f});
  EXPECT_EQ(row.State(0), 0.3f * 0.3f);
}

TEST(StepRow, TouchesOnlyVectorAndState) {
  for (const ValueType type : {ValueType::kF32, ValueType::kF16, ValueType::kBf16}) {
    for (int32_t optimizer = 1; optimizer <= 5; ++optimizer) {
      for (const uint32_t dim : {1u, 2u, 3u, 7u, 33u}) {
        UpdatedRow row(type, static_cast<Optimizer>(optimizer), {}, std::vector<float>(dim, 0.5f));
        EXPECT_TRUE(row.SurroundingsAreIntact()) << optimizer << " " << dim;
        row.Step(std::vector<float>(dim, 0.25f));
        EXPECT_TRUE(row.SurroundingsAreIntact()) << optimizer << " " << dim;
        for (uint32_t i = 0; i < dim; ++i) {
          EXPECT_NE(row.W(i), 0.5f) << optimizer << " element " << i << " of " << dim;
        }
      }
    }
  }
}

// Gradients where floats may not stand, at `offset` bytes from where they may.
class GradientRows {
 public:
  GradientRows(size_t count, uint32_t dim, size_t offset_bytes, Random* random)
      : dim_(dim),
        stride_bytes_(dim * sizeof(float) + 1),
        bytes_(offset_bytes + count * stride_bytes_) {
    for (size_t i = 0; i < count; ++i) {
      std::byte* const gradient = bytes_.data() + offset_bytes + i * stride_bytes_;
      pointers_.push_back(gradient);
      for (uint32_t j = 0; j < dim; ++j) {
        const float value = random->Signed();
        std::memcpy(gradient + j * sizeof value, &value, sizeof value);
      }
    }
  }
  std::span<const std::byte* const> pointers() const { return pointers_; }
  float Value(size_t i, uint32_t j) const {
    float value;
    std::memcpy(&value, pointers_[i] + j * sizeof value, sizeof value);
    return value;
  }
  // One after the other, from the first.
  std::vector<float> Sum() const {
    std::vector<float> sum(dim_);
    for (uint32_t j = 0; j < dim_; ++j) sum[j] = Value(0, j);
    for (size_t i = 1; i < pointers_.size(); ++i) {
      for (uint32_t j = 0; j < dim_; ++j) sum[j] = sum[j] + Value(i, j);
    }
    return sum;
  }

 private:
  const uint32_t dim_;
  const size_t stride_bytes_;
  std::vector<std::byte> bytes_;
  std::vector<const std::byte*> pointers_;
};

TEST(SumGradients, AddsOneAfterTheOtherForEveryCountDimAndAlignment) {
  Random random(3);
  for (const uint32_t dim : {1u, 3u, 16u, 17u, 63u, 64u, 65u, 100u, 128u, 200u, 4095u, 4096u}) {
    for (const size_t count : {1, 2, 3, 31, 32}) {
      for (const size_t offset_bytes : {0, 1, 2, 3, 4}) {
        const GradientRows gradients(count, dim, offset_bytes, &random);
        std::vector<float> sum(dim + 1, 77.0f);
        SumGradients(gradients.pointers(), dim, 0.0f, sum.data());
        EXPECT_EQ(sum[dim], 77.0f) << "wrote behind the end";
        sum.resize(dim);
        ASSERT_EQ(sum, gradients.Sum()) << dim << " floats, " << count << " gradients";
      }
    }
  }
}

TEST(SumGradients, ClipsEachNumberFirst) {
  Random random(5);
  for (const uint32_t dim : {1u, 17u, 64u, 100u, 129u}) {
    for (const size_t count : {1, 2, 32}) {
      const GradientRows gradients(count, dim, 1, &random);
      std::vector<float> sum(dim);
      SumGradients(gradients.pointers(), dim, 0.25f, sum.data());
      for (uint32_t j = 0; j < dim; ++j) {
        float expected = std::clamp(gradients.Value(0, j), -0.25f, 0.25f);
        for (size_t i = 1; i < count; ++i) {
          expected += std::clamp(gradients.Value(i, j), -0.25f, 0.25f);
        }
        ASSERT_EQ(sum[j], expected) << j << " of " << dim << ", " << count << " gradients";
      }
    }
  }
}

TEST(AddSum, AddsEveryElement) {
  Random random(4);
  for (const uint32_t dim : {1u, 3u, 15u, 16u, 17u, 64u, 100u, 4096u}) {
    std::vector<float> sum(dim + 1, 77.0f);
    std::vector<float> other(dim);
    std::vector<float> expected(dim + 1, 77.0f);
    for (uint32_t j = 0; j < dim; ++j) {
      sum[j] = random.Signed();
      other[j] = random.Signed();
      expected[j] = sum[j] + other[j];
    }
    AddSum(other.data(), dim, sum.data());
    ASSERT_EQ(sum, expected) << dim;
  }
}

TEST(AllFinite, SeesEveryElement) {
  for (const uint32_t dim : {1u, 3u, 15u, 16u, 17u, 64u, 100u}) {
    std::vector<float> gradient(dim, std::numeric_limits<float>::max());
    std::vector<std::byte> bytes(dim * sizeof(float) + 1);
    const auto finite = [&] {
      std::memcpy(bytes.data() + 1, gradient.data(), dim * sizeof(float));
      return AllFinite(bytes.data() + 1, dim);
    };
    EXPECT_TRUE(finite());
    for (uint32_t j = 0; j < dim; ++j) {
      for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        gradient[j] = bad;
        EXPECT_FALSE(finite()) << bad << " at " << j << " of " << dim;
      }
      gradient[j] = -0.0f;
    }
  }
}

TEST(StepRowDeathTest, ATableWithoutOptimizerIsADefectOfOurs) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(F32Row(Optimizer::kNone, {}, {1.0f}).Step({1.0f}), "broken");
}

// ---- long rows, which the compiler steps many elements at a time ----

std::vector<float> SignedFloats(Random* random, size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = random->Signed();
  return values;
}

// Multiples of 2^-12, so that a sum of their squares is exact in any order.
std::vector<float> DrawGradient(Random* random, size_t count) {
  std::vector<float> gradient = SignedFloats(random, count);
  for (float& g : gradient) g = std::round(g * 0x1p12f) * 0x1p-12f;
  return gradient;
}

// The gradient as max_gradient_norm leaves it.
std::vector<float> Limited(const UpdateRule& rule, std::vector<float> gradient) {
  double squares = 0.0;
  for (const float g : gradient) squares += static_cast<double>(g) * static_cast<double>(g);
  const double scale = static_cast<double>(rule.max_gradient_norm) / std::sqrt(squares);
  if (scale == 0.0 || scale >= 1.0) return gradient;
  for (float& g : gradient) g = static_cast<float>(static_cast<double>(g) * scale);
  return gradient;
}

// Rules by name, types and lengths: more and less than a multiple of the widest vector.
class LongRows : public testing::TestWithParam<Optimizer> {
 protected:
  // Calls check(type, rule, dim) for all of them.
  template <typename Check>
  static void ForEachShape(Check check) {
    constexpr UpdateRule kPlain = {.learning_rate = 0.1f, .epsilon = 1e-3f};
    UpdateRule decays = kPlain;
    decays.weight_decay = 0.125f;
    UpdateRule all_options = decays;
    all_options.decoupled_weight_decay = 0.25f;
    all_options.ftrl_l1 = 0.03f;
    all_options.ftrl_l2 = 0.5f;
    all_options.max_gradient_norm = 0.5f;
    for (const ValueType type : {ValueType::kF32, ValueType::kF16, ValueType::kBf16}) {
      for (const UpdateRule& rule : {kPlain, decays, all_options}) {
        for (const uint32_t dim : {16u, 33u, 100u, 700u}) check(type, rule, dim);
      }
    }
  }
};

TEST_P(LongRows, StepEveryElementAsARowOfItsOwn) {
  Random random(11);
  ForEachShape([&](ValueType type, const UpdateRule& rule, uint32_t dim) {
    const std::vector<float> w = SignedFloats(&random, dim);
    UpdatedRow row(type, GetParam(), rule, w);
    std::vector<UpdatedRow> alone;
    UpdateRule of_one = rule;
    of_one.max_gradient_norm = 0.0f;
    for (const float value : w) alone.emplace_back(type, GetParam(), of_one, std::vector{value});
    for (int step = 0; step < 5; ++step) {
      const std::vector<float> gradient = DrawGradient(&random, dim);
      row.Step(gradient);
      const std::vector<float> limited = Limited(rule, gradient);
      for (uint32_t i = 0; i < dim; ++i) alone[i].Step({limited[i]});
    }
    // Each kind of state is an array of the row, but Adam's count of steps.
    const uint32_t kinds = StateFloats(GetParam(), dim) / dim;
    for (uint32_t i = 0; i < dim; ++i) {
      ASSERT_EQ(row.W(i), alone[i].W(0)) << i << " of " << dim;
      for (uint32_t kind = 0; kind < kinds; ++kind) {
        ASSERT_EQ(row.State(kind * dim + i), alone[i].State(kind)) << i << " of " << dim;
      }
    }
    ASSERT_TRUE(row.SurroundingsAreIntact());
  });
}

INSTANTIATE_TEST_SUITE_P(ElementWise, LongRows,
                         testing::Values(Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kAdam,
                                         Optimizer::kFtrl));

TEST_F(LongRows, RowwiseAdagradDividesEveryElementByTheRootOfTheRowsSum) {
  Random random(12);
  ForEachShape([&](ValueType type, const UpdateRule& rule, uint32_t dim) {
    UpdatedRow row(type, Optimizer::kRowwiseAdagrad, rule, SignedFloats(&random, dim));
    UpdatedRow rounded(type, Optimizer::kNone, rule, {0.0f});
    std::vector<float> before(dim);
    for (uint32_t i = 0; i < dim; ++i) before[i] = row.W(i);
    const std::vector<float> gradient = DrawGradient(&random, dim);
    row.Step(gradient);
    const std::vector<float> limited = Limited(rule, gradient);
    const float divisor = std::sqrt(row.State(0)) + rule.epsilon;
    for (uint32_t i = 0; i < dim; ++i) {
      const float g = limited[i] + rule.weight_decay * before[i];
      const float shrunk = DecoupledFactor(rule) * before[i];
      rounded.SetW(0, shrunk - rule.learning_rate * g / divisor);
      ASSERT_EQ(row.W(i), rounded.W(0)) << i << " of " << dim;
    }
  });
}

}  // namespace
}  // namespace embank::test::row_update_test
