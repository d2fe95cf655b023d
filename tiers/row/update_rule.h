// The optimizers' steps on one element, in the fixed arithmetic of docs/arithmetic.md: the host
// loops and the GPU kernels run these same lines. float32, no contraction.
#ifndef EMBANK_TIERS_ROW_UPDATE_RULE_H_
#define EMBANK_TIERS_ROW_UPDATE_RULE_H_

#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "base/numeric.h"

namespace embank {

// The numbers of a rule; learning_rate is that of the batch.
struct UpdateRule {
  float learning_rate = 0.01f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  float initial_accumulator = 0.0f;
};

// Adds coupled weight decay, if it is not 0.
EMBANK_HOST_DEVICE inline float DecayedGradient(const UpdateRule& rule, float w, float g) {
  return g + rule.weight_decay * w;
}

EMBANK_HOST_DEVICE inline void StepSgd(const UpdateRule& rule, float g, float& w) {
  w = w - rule.learning_rate * g;
}

// w after a step of length `numerator` / `divisor`; a zero divisor means no step.
EMBANK_HOST_DEVICE inline float Stepped(float w, float numerator, float divisor) {
  const float next = w - numerator / divisor;  // unconditional, so that loops vectorise
  return divisor == 0.0f ? w : next;
}

// Duchi, Hazan, Singer 2011.
EMBANK_HOST_DEVICE inline void StepAdagrad(const UpdateRule& rule, float g, float& w, float& s) {
  s = s + g * g;
  w = Stepped(w, rule.learning_rate * g, std::sqrt(s) + rule.epsilon);
}

// Row-wise Adagrad: `divisor` = sqrt(s) + epsilon of the row's one s, already stepped.
EMBANK_HOST_DEVICE inline void StepRowwiseAdagrad(const UpdateRule& rule, float g, float divisor,
                                                  float& w) {
  w = Stepped(w, rule.learning_rate * g, divisor);
}

// The factors of Adam's bias corrections at a row's step count.
struct AdamStep {
  float step_size;        // learning_rate / (1 - beta1^step)
  float root_correction;  // sqrt(1 - beta2^step)
};

// Counts a step (up to 2^24, where a float stops counting) and corrects for it.
EMBANK_HOST_DEVICE inline AdamStep CountAdamStep(const UpdateRule& rule, float& step) {
  step = step + 1.0f;
  const auto steps = static_cast<uint32_t>(step);
  const double c1 = 1.0 - Power(static_cast<double>(rule.beta1), steps);
  const double c2 = 1.0 - Power(static_cast<double>(rule.beta2), steps);
  return {static_cast<float>(static_cast<double>(rule.learning_rate) / c1),
          static_cast<float>(std::sqrt(c2))};
}

// Kingma and Ba 2015, algorithm 1.
EMBANK_HOST_DEVICE inline void StepAdam(const UpdateRule& rule, AdamStep step, float g, float& w,
                                        float& m, float& v) {
  m = rule.beta1 * m + (1.0f - rule.beta1) * g;
  v = rule.beta2 * v + ((1.0f - rule.beta2) * g) * g;
  w = Stepped(w, step.step_size * m, std::sqrt(v) / step.root_correction + rule.epsilon);
}

// McMahan et al. 2013, algorithm 1 with l1 = l2 = 0.
EMBANK_HOST_DEVICE inline void StepFtrl(const UpdateRule& rule, float g, float& w, float& z,
                                        float& n) {
  const float n_next = n + g * g;
  const float sigma = (std::sqrt(n_next) - std::sqrt(n)) / rule.learning_rate;
  const float z_next = z + (g - sigma * w);
  const float w_next = ((-z_next) * rule.learning_rate) / std::sqrt(n_next);
  const bool steps = n_next != 0.0f;  // selected, not branched, so that loops vectorise
  z = steps ? z_next : z;
  w = steps ? w_next : w;
  n = steps ? n_next : n;
}

// The z of a new row, for which w is already the minimum.
EMBANK_HOST_DEVICE inline float InitialFtrlZ(const UpdateRule& rule, float w) {
  return ((-w) * std::sqrt(rule.initial_accumulator)) / rule.learning_rate;
}

// The lanes over which a row is reduced: one warp, two AVX-512 or four AVX2 registers.
inline constexpr uint32_t kReductionLanes = 32;

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_UPDATE_RULE_H_
