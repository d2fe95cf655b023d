// One optimizer step of one payload, for host and device alike: the twin runs these lines in plain
// loops, the CUDA kernels with the lanes of a warp. The bits are those of tiers/row/row_update.h.
//
// A `Lanes` is a class with the loops over a row. It is HostLanes here, and WarpLanes in CUDA:
//
//   IsFirst()                     whether this thread writes the numbers that a row has once
//   Sync()                        waits until all threads of the row have come here
//   SumOfSquares<Number>(dim, gradient)
//                                 adds gradient(i)^2 over i, in the tree of docs/arithmetic.md
//   Update(dim, step, not_finite) calls step.Load(i) and Step(i) for each element i. If all bits
//                                 that Step returns and those of not_finite are 0, calls Store(i).
//                                 Returns whether it did, when all threads have come so far
#ifndef EMBANK_GPU_PAYLOAD_STEP_H_
#define EMBANK_GPU_PAYLOAD_STEP_H_

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/half.h"
#include "base/host_device.h"
#include "tiers/row/row_layout.h"
#include "tiers/row/update_rule.h"

namespace embank {

// The numbers of one StepRows.
struct StepNumbers {
  UpdateRule rule;
  uint32_t dim;
  uint32_t state_offset_bytes;  // in the payload
};

inline StepNumbers NumbersOf(const RowLayout& layout, const UpdateRule& rule) {
  return {rule, layout.dim, layout.state_offset_bytes - RowLayout::kVectorOffsetBytes};
}

// Value i of a vector, as a float.
template <ValueType kType>
EMBANK_HOST_DEVICE inline float LoadValue(const std::byte* vector, uint32_t i) {
  if constexpr (kType == ValueType::kF32) {
    return reinterpret_cast<const float*>(vector)[i];
  } else {
    const uint16_t half = reinterpret_cast<const uint16_t*>(vector)[i];
    return kType == ValueType::kF16 ? F16ToFloat(half) : Bf16ToFloat(half);
  }
}

// Row k of `seeds`, where rows are rounded by draws.
EMBANK_HOST_DEVICE inline uint64_t RoundingSeedAt(const UpdateRule& rule, const DeviceArray& seeds,
                                                  uint64_t k) {
  if (rule.rounding == Rounding::kNearest) return 0;
  return *reinterpret_cast<const uint64_t*>(seeds.rows + k * seeds.stride_bytes);
}

// An element on its way through a step: weight, decayed gradient, and its one or two states; the
// rounded weight of a 16-bit row.
struct StepElement {
  float w;
  float g;
  float first;
  float second;
  uint16_t half;
};

// One step of one payload.
template <Optimizer kOptimizer, ValueType kType>
class PayloadStep {
 public:
  // `rounding_seed` counts where rule.rounding is stochastic.
  EMBANK_HOST_DEVICE PayloadStep(const StepNumbers& numbers, std::byte* payload,
                                 const std::byte* gradient, uint64_t rounding_seed)
      : numbers_(numbers),
        vector_(payload),
        state_(reinterpret_cast<float*>(payload + numbers.state_offset_bytes)),
        gradient_(reinterpret_cast<const float*>(gradient)),
        rounding_seed_(rounding_seed),
        decays_(numbers.rule.weight_decay != 0.0f) {}

  // Runs on all threads of the row at once. Returns whether the step was made: if a number would
  // not be finite, the payload stays as it was.
  template <typename Lanes>
  EMBANK_HOST_DEVICE bool Run(const Lanes& lanes) {
    const UpdateRule& rule = numbers_.rule;
    if (rule.max_gradient_norm != 0.0f) {
      scale_ = GradientScale(rule, lanes.template SumOfSquares<double>(
                                       numbers_.dim, [this](uint32_t i) { return gradient_[i]; }));
    }
    if (rule.decoupled_weight_decay != 0.0f) factor_ = DecoupledFactor(rule);
    // The number that the row has once, behind its step.
    float* const once = state_ + (kOptimizer == Optimizer::kAdam ? size_t{2} * numbers_.dim : 0);
    float next = 0.0f;
    if constexpr (kOptimizer == Optimizer::kAdam) {
      next = *once;
      adam_ = CountAdamStep(rule, next);
    }
    if constexpr (kOptimizer == Optimizer::kRowwiseAdagrad) {
      const float squares = lanes.template SumOfSquares<float>(numbers_.dim, [this](uint32_t i) {
        return Changed(LoadValue<kType>(vector_, i), gradient_[i]);
      });
      next = *once + squares / static_cast<float>(numbers_.dim);
      divisor_ = std::sqrt(next) + rule.epsilon;
    }
    if (!lanes.Update(numbers_.dim, *this, NotFiniteBits(next))) return false;
    if constexpr (kOptimizer == Optimizer::kAdam || kOptimizer == Optimizer::kRowwiseAdagrad) {
      lanes.Sync();  // all have read it
      if (lanes.IsFirst()) *once = next;
    }
    return true;
  }

  // Reads element i.
  EMBANK_HOST_DEVICE StepElement Load(uint32_t i) const {
    StepElement element = {};
    element.w = LoadValue<kType>(vector_, i);
    element.g = Changed(element.w, gradient_[i]);
    if (numbers_.rule.decoupled_weight_decay != 0.0f) element.w = factor_ * element.w;
    if constexpr (kStates > 0) element.first = state_[i];
    if constexpr (kStates > 1) element.second = state_[numbers_.dim + i];
    return element;
  }
  // Makes the step of element i. Returns bits that are all 0 if its numbers are finite.
  EMBANK_HOST_DEVICE uint32_t Step(uint32_t i, StepElement* e) const {
    const UpdateRule& rule = numbers_.rule;
    if constexpr (kOptimizer == Optimizer::kSgd) StepSgd(rule, e->g, e->w);
    if constexpr (kOptimizer == Optimizer::kAdagrad) StepAdagrad(rule, e->g, e->w, e->first);
    if constexpr (kOptimizer == Optimizer::kRowwiseAdagrad) {
      StepRowwiseAdagrad(rule, e->g, divisor_, e->w);
    }
    if constexpr (kOptimizer == Optimizer::kAdam) {
      StepAdam(rule, adam_, e->g, e->w, e->first, e->second);
    }
    if constexpr (kOptimizer == Optimizer::kFtrl) {
      StepFtrl<true>(rule, e->g, e->w, e->first, e->second);
    }
    return Round(i, e) | NotFiniteBits(e->first) | NotFiniteBits(e->second);
  }
  // Writes element i.
  EMBANK_HOST_DEVICE void Store(uint32_t i, const StepElement& element) const {
    if constexpr (kType == ValueType::kF32) {
      reinterpret_cast<float*>(vector_)[i] = element.w;
    } else {
      reinterpret_cast<uint16_t*>(vector_)[i] = element.half;
    }
    if constexpr (kStates > 0) state_[i] = element.first;
    if constexpr (kStates > 1) state_[numbers_.dim + i] = element.second;
  }

 private:
  // Arrays of state with a number for each element.
  static constexpr uint32_t kStates =
      kOptimizer == Optimizer::kAdam || kOptimizer == Optimizer::kFtrl ? 2
      : kOptimizer == Optimizer::kAdagrad                              ? 1
                                                                       : 0;

  // A number of the gradient, scaled and decayed.
  EMBANK_HOST_DEVICE float Changed(float w, float g) const {
    if (scale_ != 1.0) g = ScaledGradient(g, scale_);
    return decays_ ? DecayedGradient(numbers_.rule, w, g) : g;
  }

  // Rounds a weight to the type of the row. Returns bits that are all 0 if the result is finite.
  EMBANK_HOST_DEVICE uint32_t Round(uint32_t i, StepElement* e) const {
    if constexpr (kType == ValueType::kF32) {
      return NotFiniteBits(e->w);
    } else {
      constexpr bool kIsF16 = kType == ValueType::kF16;
      if (numbers_.rule.rounding == Rounding::kNearest) {
        e->half = kIsF16 ? FloatToF16(e->w) : FloatToBf16(e->w);
      } else {
        const uint32_t draw = RoundingDraw(rounding_seed_, i);
        e->half = kIsF16 ? DrawF16(e->w, draw) : DrawBf16(e->w, draw);
      }
      constexpr uint16_t kExponent = kIsF16 ? kF16Exponent : kBf16Exponent;
      return (e->half & kExponent) == kExponent ? 1u : 0u;
    }
  }

  const StepNumbers numbers_;
  std::byte* const vector_;
  float* const state_;
  const float* const gradient_;
  const uint64_t rounding_seed_;
  const bool decays_;
  AdamStep adam_ = {};
  float divisor_ = 0.0f;
  float factor_ = 1.0f;
  double scale_ = 1.0;
};

// Calls call.template operator()<optimizer, value type>(); returns false, without a call, for a
// table that has no optimizer.
template <typename Call>
bool WithStepOf(Optimizer optimizer, ValueType type, Call call) {
  const auto with_type = [&]<Optimizer kOptimizer>() {
    switch (type) {
      case ValueType::kF32:
        call.template operator()<kOptimizer, ValueType::kF32>();
        return true;
      case ValueType::kF16:
        call.template operator()<kOptimizer, ValueType::kF16>();
        return true;
      case ValueType::kBf16:
        call.template operator()<kOptimizer, ValueType::kBf16>();
        return true;
    }
    return false;
  };
  switch (optimizer) {
    case Optimizer::kNone:
      return false;
    case Optimizer::kSgd:
      return with_type.template operator()<Optimizer::kSgd>();
    case Optimizer::kAdagrad:
      return with_type.template operator()<Optimizer::kAdagrad>();
    case Optimizer::kRowwiseAdagrad:
      return with_type.template operator()<Optimizer::kRowwiseAdagrad>();
    case Optimizer::kAdam:
      return with_type.template operator()<Optimizer::kAdam>();
    case Optimizer::kFtrl:
      return with_type.template operator()<Optimizer::kFtrl>();
  }
  return false;
}

// All lanes of a row, one after the other on one thread.
struct HostLanes {
  bool IsFirst() const { return true; }
  void Sync() const {}

  // Adds gradient(i)^2 over i < dim, lane by lane, and then folds the lanes.
  template <typename Number, typename Gradient>
  Number SumOfSquares(uint32_t dim, Gradient gradient) const {
    Number sums[kReductionLanes] = {};
    for (uint32_t i = 0; i < dim; ++i) {
      const auto g = static_cast<Number>(gradient(i));
      sums[i % kReductionLanes] += g * g;
    }
    for (uint32_t half = kReductionLanes / 2; half > 0; half /= 2) {
      for (uint32_t j = 0; j < half; ++j) sums[j] += sums[j + half];
    }
    return sums[0];
  }

  // Makes the step of all elements i < dim, twice: first to see that all numbers are finite.
  template <typename Step>
  bool Update(uint32_t dim, const Step& step, uint32_t not_finite) const {
    for (uint32_t i = 0; i < dim; ++i) {
      StepElement element = step.Load(i);
      not_finite |= step.Step(i, &element);
    }
    if (not_finite != 0) return false;
    for (uint32_t i = 0; i < dim; ++i) {
      StepElement element = step.Load(i);
      step.Step(i, &element);
      step.Store(i, element);
    }
    return true;
  }
};

}  // namespace embank

#endif  // EMBANK_GPU_PAYLOAD_STEP_H_
