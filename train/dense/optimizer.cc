#include "train/dense/optimizer.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/simd_clones.h"
#include "base/status.h"

namespace embank {
namespace {

// 64 KiB of each array: a part is worth a thread, and stays in its cache.
constexpr uint64_t kPartParameters = 16384;

EMBANK_SIMD_CLONES void AddDecay(const UpdateRule& rule, uint64_t count, const float* __restrict w,
                                 float* __restrict g) {
  const UpdateRule r = rule;
  for (uint64_t i = 0; i < count; ++i) g[i] = DecayedGradient(r, w[i], g[i]);
}

// Whether gradients may be clipped, or get decay.
bool HasChange(const UpdateRule& rule) {
  return rule.weight_decay != 0.0f || rule.max_gradient_norm > 0.0f ||
         rule.max_gradient_value > 0.0f;
}

// The limit of a number of a gradient.
float LimitOf(const UpdateRule& rule) {
  return rule.max_gradient_value > 0.0f ? rule.max_gradient_value
                                        : std::numeric_limits<float>::infinity();
}

EMBANK_SIMD_CLONES void DenseSgd(const UpdateRule& rule, uint64_t count, const float* __restrict g,
                                 float* __restrict w) {
  const UpdateRule r = rule;
  for (uint64_t i = 0; i < count; ++i) StepSgd(r, g[i], w[i]);
}

EMBANK_SIMD_CLONES void DenseAdagrad(const UpdateRule& rule, uint64_t count,
                                     const float* __restrict g, float* __restrict w,
                                     float* __restrict s) {
  const UpdateRule r = rule;
  for (uint64_t i = 0; i < count; ++i) StepAdagrad(r, g[i], w[i], s[i]);
}

EMBANK_SIMD_CLONES void DenseAdam(const UpdateRule& rule, AdamStep step, uint64_t count,
                                  const float* __restrict g, float* __restrict w,
                                  float* __restrict m, float* __restrict v) {
  const UpdateRule r = rule;
  for (uint64_t i = 0; i < count; ++i) StepAdam(r, step, g[i], w[i], m[i], v[i]);
}

}  // namespace

uint64_t DenseStateFloats(Optimizer kind, uint64_t parameters) {
  if (kind == Optimizer::kAdam) return 2 * parameters + 1;
  return kind == Optimizer::kAdagrad ? parameters : 0;
}

StatusOr<DenseOptimizer> DenseOptimizer::Create(Optimizer kind, const UpdateRule& rule,
                                                uint64_t parameters) {
  if (kind != Optimizer::kSgd && kind != Optimizer::kAdagrad && kind != Optimizer::kAdam) {
    return InvalidArgumentError("dense parameters have SGD, Adagrad or Adam");
  }
  return DenseOptimizer(kind, rule, parameters);
}

DenseOptimizer::DenseOptimizer(Optimizer kind, const UpdateRule& rule, uint64_t parameters)
    : kind_(kind),
      rule_(rule),
      parameters_(parameters),
      state_(DenseStateFloats(kind, parameters),
             kind == Optimizer::kAdagrad ? rule.initial_accumulator : 0.0f) {}

void DenseOptimizer::Step(Executor* executor, std::span<const float> gradients,
                          std::span<float> weights) {
  EMBANK_CHECK(gradients.size() == parameters_ && weights.size() == parameters_);
  AdamStep step{};
  if (kind_ == Optimizer::kAdam) step = CountAdamStep(rule_, state_.back());
  const uint64_t parts = (parameters_ + kPartParameters - 1) / kPartParameters;
  EMBANK_CHECK(parts <= UINT32_MAX);
  if (HasChange(rule_)) changed_.resize(parameters_);
  const double scale = rule_.max_gradient_norm > 0.0f ? ScaleOf(executor, gradients) : 1.0;
  executor->ParallelFor(static_cast<uint32_t>(parts), [&](uint32_t part) {
    const uint64_t begin = part * kPartParameters;
    const uint64_t count = std::min(kPartParameters, parameters_ - begin);
    StepRange(step, scale, begin, gradients.subspan(begin, count), weights.subspan(begin, count));
  });
}

// The squares of each part are added in order, and then those of the parts.
double DenseOptimizer::ScaleOf(Executor* executor, std::span<const float> gradients) {
  const float limit = LimitOf(rule_);
  std::vector<double> squares((parameters_ + kPartParameters - 1) / kPartParameters);
  executor->ParallelFor(static_cast<uint32_t>(squares.size()), [&](uint32_t part) {
    const uint64_t begin = part * kPartParameters;
    double sum = 0.0;
    for (const float g : gradients.subspan(begin, std::min(kPartParameters, parameters_ - begin))) {
      const auto clipped = static_cast<double>(ClippedGradient(g, limit));
      sum += clipped * clipped;
    }
    squares[part] = sum;
  });
  double all = 0.0;
  for (const double sum : squares) all += sum;
  return GradientScale(rule_, all);
}

// The gradients of the parameters from `begin` on, after clipping and decay.
const float* DenseOptimizer::Changed(std::span<const float> gradients,
                                     std::span<const float> weights, double scale, uint64_t begin) {
  const bool clips = rule_.max_gradient_value > 0.0f || scale != 1.0;
  if (!clips && rule_.weight_decay == 0.0f) return gradients.data();
  const std::span<float> changed = std::span(changed_).subspan(begin, gradients.size());
  const float limit = LimitOf(rule_);
  for (size_t i = 0; i < changed.size(); ++i) {
    changed[i] = ScaledGradient(ClippedGradient(gradients[i], limit), scale);
  }
  if (rule_.weight_decay != 0.0f) AddDecay(rule_, weights.size(), weights.data(), changed.data());
  return changed.data();
}

void DenseOptimizer::StepRange(AdamStep step, double scale, uint64_t begin,
                               std::span<const float> gradients, std::span<float> weights) {
  const uint64_t count = weights.size();
  const float* const g = Changed(gradients, weights, scale, begin);
  float* const state = state_.empty() ? nullptr : state_.data() + begin;
  switch (kind_) {
    case Optimizer::kAdagrad:
      return DenseAdagrad(rule_, count, g, weights.data(), state);
    case Optimizer::kAdam:
      return DenseAdam(rule_, step, count, g, weights.data(), state, state + parameters_);
    default:
      return DenseSgd(rule_, count, g, weights.data());
  }
}

}  // namespace embank
