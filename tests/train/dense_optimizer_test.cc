// The optimizers of dense parameters against the formulas of docs/arithmetic.md, bit for bit.
#include "train/dense/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/support/random.h"

namespace embank::test::dense_optimizer_test {
namespace {

constexpr uint64_t kParameters = 40'001;  // parts of several threads, and a short one
constexpr uint32_t kSteps = 5;

struct Plain {
  float w, s = 0.0f, v = 0.0f;
};

// Powers by squaring, from the lowest bit of the exponent.
double PlainPower(double b, uint32_t t) {
  double r = 1.0;
  for (; t > 0; t /= 2, b = b * b) r = t % 2 == 1 ? r * b : r;
  return r;
}

float PlainClip(const UpdateRule& rule, float g) {
  const float limit = rule.max_gradient_value;
  return limit == 0.0f ? g : std::max(-limit, std::min(limit, g));
}

// The factor of all gradients: the squares are added by parts of 16,384.
double PlainScale(const UpdateRule& rule, const std::vector<float>& gradients) {
  double all = 0.0;
  for (size_t begin = 0; begin < gradients.size(); begin += 16'384) {
    double part = 0.0;
    for (size_t i = begin; i < std::min(begin + 16'384, gradients.size()); ++i) {
      const auto g = static_cast<double>(PlainClip(rule, gradients[i]));
      part += g * g;
    }
    all += part;
  }
  const auto limit = static_cast<double>(rule.max_gradient_norm);
  return limit == 0.0 || std::sqrt(all) <= limit ? 1.0 : limit / std::sqrt(all);
}

void PlainStep(Optimizer kind, const UpdateRule& rule, uint32_t step, float g, Plain* p) {
  if (rule.weight_decay != 0.0f) g = g + rule.weight_decay * p->w;
  const float lr = rule.learning_rate;
  if (kind == Optimizer::kSgd) {
    p->w = p->w - lr * g;
  } else if (kind == Optimizer::kAdagrad) {
    p->s = p->s + g * g;
    const float d = std::sqrt(p->s) + rule.epsilon;
    if (d != 0.0f) p->w = p->w - (lr * g) / d;
  } else {
    const double c1 = 1.0 - PlainPower(static_cast<double>(rule.beta1), step);
    const double c2 = 1.0 - PlainPower(static_cast<double>(rule.beta2), step);
    const auto a = static_cast<float>(static_cast<double>(lr) / c1);
    const auto h = static_cast<float>(std::sqrt(c2));
    p->s = rule.beta1 * p->s + (1.0f - rule.beta1) * g;
    p->v = rule.beta2 * p->v + ((1.0f - rule.beta2) * g) * g;
    const float d = std::sqrt(p->v) / h + rule.epsilon;
    if (d != 0.0f) p->w = p->w - (a * p->s) / d;
  }
}

void ExpectFormula(Optimizer kind, const UpdateRule& rule, uint32_t threads) {
  const std::unique_ptr<Executor> executor = MakeThreadPool(threads);
  StatusOr<DenseOptimizer> optimizer = DenseOptimizer::Create(kind, rule, kParameters);
  ASSERT_TRUE(optimizer.ok());
  Random random(23);
  std::vector<float> weights(kParameters), gradients(kParameters);
  std::vector<Plain> plain(kParameters);
  for (uint64_t i = 0; i < kParameters; ++i) {
    plain[i] = {.w = weights[i] = random.Signed(), .s = rule.initial_accumulator};
  }
  for (uint32_t step = 1; step <= kSteps; ++step) {
    for (float& g : gradients) g = random.OneIn(9) ? 0.0f : random.Signed();
    const double scale = PlainScale(rule, gradients);
    EXPECT_EQ(scale<1.0, rule.max_gradient_norm> 0.0f);
    for (uint64_t i = 0; i < kParameters; ++i) {
      const auto clipped = static_cast<double>(PlainClip(rule, gradients[i]));
      PlainStep(kind, rule, step, static_cast<float>(clipped * scale), &plain[i]);
    }
    optimizer->Step(executor.get(), gradients, weights);
    for (uint64_t i = 0; i < kParameters; ++i) {
      ASSERT_EQ(weights[i], plain[i].w) << "step " << step << ", parameter " << i;
    }
  }
}

TEST(DenseOptimizer, IsTheFormulaForAnyNumberOfThreads) {
  for (const Optimizer kind : {Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kAdam}) {
    for (const uint32_t threads : {1u, 2u, 5u}) {
      for (const float decay : {0.0f, 0.01f}) {
        UpdateRule rule{.learning_rate = 0.05f, .epsilon = 1e-8f, .weight_decay = decay};
        if (kind == Optimizer::kAdagrad) rule.initial_accumulator = 0.1f;
        ExpectFormula(kind, rule, threads);
      }
    }
  }
}

// docs/arithmetic.md, "Gradients": each number first, then the norm, then decay.
TEST(DenseOptimizer, ClipsTheGradient) {
  for (const uint32_t threads : {1u, 3u}) {
    for (const float value : {0.0f, 0.5f}) {
      for (const float norm : {0.0f, 3.0f}) {
        ExpectFormula(Optimizer::kAdagrad,
                      {.learning_rate = 0.05f,
                       .weight_decay = 0.01f,
                       .initial_accumulator = 0.1f,
                       .max_gradient_norm = norm,
                       .max_gradient_value = value},
                      threads);
      }
    }
  }
}

TEST(DenseOptimizer, MakesNoStepWhereTheDivisorIsZero) {
  for (const Optimizer kind : {Optimizer::kAdagrad, Optimizer::kAdam}) {
    ExpectFormula(kind, {.learning_rate = 0.05f, .epsilon = 0.0f}, 2);
  }
}

TEST(DenseOptimizer, GoesOnFromASavedState) {
  const std::unique_ptr<Executor> executor = MakeThreadPool(1);
  for (const Optimizer kind : {Optimizer::kSgd, Optimizer::kAdagrad, Optimizer::kAdam}) {
    const std::vector<float> gradients = {0.5f, -2.0f, 0.0f};
    std::vector<float> weights = {1.0f, 2.0f, 3.0f};
    StatusOr<DenseOptimizer> first = DenseOptimizer::Create(kind, {}, 3);
    first->Step(executor.get(), gradients, weights);
    std::vector<float> resumed_weights = weights;
    StatusOr<DenseOptimizer> second = DenseOptimizer::Create(kind, {}, 3);
    ASSERT_EQ(second->state().size(), first->state().size());
    std::ranges::copy(first->state(), second->state().begin());
    first->Step(executor.get(), gradients, weights);
    second->Step(executor.get(), gradients, resumed_weights);
    EXPECT_EQ(weights, resumed_weights);
    EXPECT_NE(weights[0], 1.0f);
  }
}

TEST(DenseOptimizer, HasTheStateOfAdamInOrder) {
  const std::unique_ptr<Executor> executor = MakeThreadPool(1);
  const UpdateRule rule;
  StatusOr<DenseOptimizer> optimizer = DenseOptimizer::Create(Optimizer::kAdam, rule, 2);
  std::vector<float> weights(2);
  optimizer->Step(executor.get(), std::vector{3.0f, 0.0f}, weights);
  const std::vector<float> state(optimizer->state().begin(), optimizer->state().end());
  EXPECT_EQ(state, (std::vector<float>{(1.0f - rule.beta1) * 3.0f, 0.0f,
                                       ((1.0f - rule.beta2) * 3.0f) * 3.0f, 0.0f, 1.0f}));
}

TEST(DenseOptimizer, TakesALearningRateForTheNextSteps) {
  const std::unique_ptr<Executor> executor = MakeThreadPool(1);
  StatusOr<DenseOptimizer> optimizer = DenseOptimizer::Create(Optimizer::kSgd, {}, 1);
  optimizer->set_learning_rate(0.5f);
  std::vector<float> weights = {1.0f};
  optimizer->Step(executor.get(), std::vector{1.0f}, weights);
  EXPECT_EQ(weights[0], 0.5f);
}

TEST(DenseOptimizer, RefusesTheOptimizersOfRowsAlone) {
  for (const Optimizer kind : {Optimizer::kNone, Optimizer::kRowwiseAdagrad, Optimizer::kFtrl}) {
    EXPECT_TRUE(IsInvalidArgument(DenseOptimizer::Create(kind, {}, 1).status()));
  }
}

}  // namespace
}  // namespace embank::test::dense_optimizer_test
