// The optimizers' steps on one element, in the fixed arithmetic of docs/arithmetic.md: the host
// loops and the GPU kernels run these same lines. float32, no contraction.
#ifndef EMBANK_TIERS_ROW_UPDATE_RULE_H_
#define EMBANK_TIERS_ROW_UPDATE_RULE_H_

#include <bit>
#include <cmath>
#include <cstdint>

#include "base/host_device.h"
#include "base/numeric.h"
#include "base/random.h"
#include "base/types.h"

namespace embank {

// The numbers of a rule; learning_rate is that of the batch.
struct UpdateRule {
  float learning_rate = 0.01f;
  float beta1 = 0.9f;
  float beta2 = 0.999f;
  float epsilon = 1e-8f;
  float weight_decay = 0.0f;
  float initial_accumulator = 0.0f;
  float decoupled_weight_decay = 0.0f;
  float ftrl_l1 = 0.0f;
  float ftrl_l2 = 0.0f;
  float max_gradient_norm = 0.0f;   // of a key's sum; 0: no limit
  float max_gradient_value = 0.0f;  // of each number of each gradient; 0: no limit
  Rounding rounding = Rounding::kNearest;
};

// The seed of the draws by which call number `call` (from 1 on) rounds the row with this seed.
EMBANK_HOST_DEVICE constexpr uint64_t RoundingSeed(uint64_t row_seed, uint64_t call) {
  return Mix(Mix(~row_seed) + call * kGoldenRatio);
}
// The draw of element i: 24 uniform bits.
EMBANK_HOST_DEVICE constexpr uint32_t RoundingDraw(uint64_t seed, uint32_t i) {
  return static_cast<uint32_t>(CounterRandom(seed).Bits(i) >> 40);
}

// Bits that are all 0 if x is finite, and not all 0 otherwise: x - x is +0, or NaN.
EMBANK_HOST_DEVICE inline uint32_t NotFiniteBits(float x) { return std::bit_cast<uint32_t>(x - x); }

// A number of a gradient between the limits of max_gradient_value; `limit` may be infinite.
EMBANK_HOST_DEVICE inline float ClippedGradient(float g, float limit) {
  const float below = g > limit ? limit : g;
  return below < -limit ? -limit : below;
}

// The factor by which a sum with this sum of squares is scaled; 1: not at all.
EMBANK_HOST_DEVICE inline double GradientScale(const UpdateRule& rule, double squares) {
  const double norm = std::sqrt(squares);
  const auto limit = static_cast<double>(rule.max_gradient_norm);
  return norm > limit ? limit / norm : 1.0;
}
EMBANK_HOST_DEVICE inline float ScaledGradient(float g, double scale) {
  return static_cast<float>(static_cast<double>(g) * scale);
}

// The factor of decoupled weight decay: w becomes w times this before its step.
EMBANK_HOST_DEVICE inline float DecoupledFactor(const UpdateRule& rule) {
  return static_cast<float>(1.0 - static_cast<double>(rule.learning_rate) *
                                      static_cast<double>(rule.decoupled_weight_decay));
}

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

inline bool HasFtrlPenalty(const UpdateRule& rule) {
  return rule.ftrl_l1 != 0.0f || rule.ftrl_l2 != 0.0f;
}

// McMahan et al. 2013, algorithm 1 with beta = 0. Where both penalties are 0, both variants give
// the same bits, the signs of zeros included.
template <bool kHasPenalty>
EMBANK_HOST_DEVICE inline void StepFtrl(const UpdateRule& rule, float g, float& w, float& z,
                                        float& n) {
  const float n_next = n + g * g;
  const float root = std::sqrt(n_next);
  const float sigma = (root - std::sqrt(n)) / rule.learning_rate;
  const float z_next = z + (g - sigma * w);
  float toward = -z_next;
  float divisor = root;
  if constexpr (kHasPenalty) {
    const float beyond = std::fabs(z_next) - rule.ftrl_l1;
    toward = std::copysign(beyond > 0.0f ? beyond : 0.0f, toward);
    divisor = root + rule.ftrl_l2 * rule.learning_rate;
  }
  const float w_next = (toward * rule.learning_rate) / divisor;
  const bool steps = n_next != 0.0f;  // selected, not branched, so that loops vectorise
  z = steps ? z_next : z;
  w = steps ? w_next : w;
  n = steps ? n_next : n;
}

// The z of a new row, for which w is already the minimum.
EMBANK_HOST_DEVICE inline float InitialFtrlZ(const UpdateRule& rule, float w) {
  const float divisor = std::sqrt(rule.initial_accumulator) + rule.ftrl_l2 * rule.learning_rate;
  const float beyond = ((-w) * divisor) / rule.learning_rate;
  return w == 0.0f ? beyond : beyond - std::copysign(rule.ftrl_l1, w);
}

// The lanes over which a row is reduced: one warp, two AVX-512 or four AVX2 registers.
inline constexpr uint32_t kReductionLanes = 32;

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_UPDATE_RULE_H_
