// One optimizer step of one payload, for host and device alike: the twin runs these lines in plain
// loops, the CUDA kernels with the lanes of a warp. The bits are those of tiers/row/row_update.h.
//
// A `Lanes` is a class with the loops over a row. It is HostLanes here, and WarpLanes in CUDA:
//
//   IsFirst()                     whether this thread writes the numbers that a row has once
//   Sync()                        waits until all threads of the row have come here
//   SumOfSquares(dim, gradient)   adds gradient(i)^2 over i, in the tree of docs/arithmetic.md
//   Update(dim, step)             calls step.Load(i), Step, Store(i) for each element i
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

// Rounds a float to value i of a vector.
template <ValueType kType>
EMBANK_HOST_DEVICE inline void StoreValue(std::byte* vector, uint32_t i, float value) {
  if constexpr (kType == ValueType::kF32) {
    reinterpret_cast<float*>(vector)[i] = value;
  } else {
    reinterpret_cast<uint16_t*>(vector)[i] =
        kType == ValueType::kF16 ? FloatToF16(value) : FloatToBf16(value);
  }
}

// An element on its way through a step: weight, decayed gradient, and its one or two states.
struct StepElement {
  float w;
  float g;
  float first;
  float second;
};

// One step of one payload.
template <Optimizer kOptimizer, ValueType kType>
class PayloadStep {
 public:
  EMBANK_HOST_DEVICE PayloadStep(const StepNumbers& numbers, std::byte* payload,
                                 const std::byte* gradient)
      : numbers_(numbers),
        vector_(payload),
        state_(reinterpret_cast<float*>(payload + numbers.state_offset_bytes)),
        gradient_(reinterpret_cast<const float*>(gradient)),
        decays_(numbers.rule.weight_decay != 0.0f) {}

  // Runs on all threads of the row at once.
  template <typename Lanes>
  EMBANK_HOST_DEVICE void Run(const Lanes& lanes) {
    if constexpr (kOptimizer == Optimizer::kAdam)
      CountStep(lanes, &state_[size_t{2} * numbers_.dim]);
    if constexpr (kOptimizer == Optimizer::kRowwiseAdagrad) CountSquares(lanes, state_);
    lanes.Update(numbers_.dim, *this);
  }

  // Reads element i.
  EMBANK_HOST_DEVICE StepElement Load(uint32_t i) const {
    StepElement element = {};
    element.w = LoadValue<kType>(vector_, i);
    element.g = Decayed(element.w, gradient_[i]);
    if constexpr (kStates > 0) element.first = state_[i];
    if constexpr (kStates > 1) element.second = state_[numbers_.dim + i];
    return element;
  }
  // Makes the step of one element.
  EMBANK_HOST_DEVICE void Step(StepElement* e) const {
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
      StepFtrl(rule, e->g, e->w, e->first, e->second);
    }
  }
  // Writes element i.
  EMBANK_HOST_DEVICE void Store(uint32_t i, const StepElement& element) const {
    StoreValue<kType>(vector_, i, element.w);
    if constexpr (kStates > 0) state_[i] = element.first;
    if constexpr (kStates > 1) state_[numbers_.dim + i] = element.second;
  }

 private:
  // Arrays of state with a number for each element.
  static constexpr uint32_t kStates =
      kOptimizer == Optimizer::kAdam || kOptimizer == Optimizer::kFtrl ? 2
      : kOptimizer == Optimizer::kAdagrad                              ? 1
                                                                       : 0;

  EMBANK_HOST_DEVICE float Decayed(float w, float g) const {
    return decays_ ? DecayedGradient(numbers_.rule, w, g) : g;
  }

  template <typename Lanes>
  EMBANK_HOST_DEVICE void CountStep(const Lanes& lanes, float* steps) {
    float count = *steps;
    adam_ = CountAdamStep(numbers_.rule, count);
    lanes.Sync();  // all have read it
    if (lanes.IsFirst()) *steps = count;
  }

  template <typename Lanes>
  EMBANK_HOST_DEVICE void CountSquares(const Lanes& lanes, float* accumulator) {
    const float squares = lanes.SumOfSquares(numbers_.dim, [this](uint32_t i) {
      return Decayed(LoadValue<kType>(vector_, i), gradient_[i]);
    });
    const float sum = *accumulator + squares / static_cast<float>(numbers_.dim);
    divisor_ = std::sqrt(sum) + numbers_.rule.epsilon;
    lanes.Sync();  // all have read it
    if (lanes.IsFirst()) *accumulator = sum;
  }

  const StepNumbers numbers_;
  std::byte* const vector_;
  float* const state_;
  const float* const gradient_;
  const bool decays_;
  AdamStep adam_ = {};
  float divisor_ = 0.0f;
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
  template <typename Gradient>
  float SumOfSquares(uint32_t dim, Gradient gradient) const {
    float sums[kReductionLanes] = {};
    for (uint32_t i = 0; i < dim; ++i) {
      const float g = gradient(i);
      sums[i % kReductionLanes] += g * g;
    }
    for (uint32_t half = kReductionLanes / 2; half > 0; half /= 2) {
      for (uint32_t j = 0; j < half; ++j) sums[j] += sums[j + half];
    }
    return sums[0];
  }

  // Makes the step of all elements i < dim.
  template <typename Step>
  void Update(uint32_t dim, const Step& step) const {
    for (uint32_t i = 0; i < dim; ++i) {
      StepElement element = step.Load(i);
      step.Step(&element);
      step.Store(i, element);
    }
  }
};

}  // namespace embank

#endif  // EMBANK_GPU_PAYLOAD_STEP_H_
