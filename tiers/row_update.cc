#include "tiers/row_update.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/half.h"

namespace embank {
namespace {

// Read and write element i of a vector as float; one per value type.
struct F32Values {
  float* values;
  float Get(uint32_t i) const { return values[i]; }
  void Set(uint32_t i, float w) const { values[i] = w; }
};
struct F16Values {
  uint16_t* values;
  float Get(uint32_t i) const { return F16ToFloat(values[i]); }
  void Set(uint32_t i, float w) const { values[i] = FloatToF16(w); }
};
struct Bf16Values {
  uint16_t* values;
  float Get(uint32_t i) const { return Bf16ToFloat(values[i]); }
  void Set(uint32_t i, float w) const { values[i] = FloatToBf16(w); }
};

template <typename Body>
void WithValues(const RowLayout& layout, std::byte* row, Body body) {
  std::byte* const vector = layout.Vector(row);
  switch (layout.value_type) {
    case ValueType::kF32:
      return body(F32Values{reinterpret_cast<float*>(vector)});
    case ValueType::kF16:
      return body(F16Values{reinterpret_cast<uint16_t*>(vector)});
    case ValueType::kBf16:
      return body(Bf16Values{reinterpret_cast<uint16_t*>(vector)});
  }
}

// Steps every element by `step(i, g, w)`.
template <typename Values, typename Step>
void StepElements(Values values, const UpdateRule& rule, uint32_t dim, const float* gradient,
                  Step step) {
  for (uint32_t i = 0; i < dim; ++i) {
    float w = values.Get(i);
    step(i, DecayedGradient(rule, w, gradient[i]), w);
    values.Set(i, w);
  }
}

// Sum of squares in the fixed tree: lanes first, then halves folded onto each other.
float SumOfSquares(const float* x, uint32_t dim) {
  float lanes[kReductionLanes] = {};
  for (uint32_t i = 0; i < dim; ++i) lanes[i % kReductionLanes] += x[i] * x[i];
  for (uint32_t half = kReductionLanes / 2; half > 0; half /= 2) {
    for (uint32_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

template <typename Values>
void StepRowwise(Values values, const UpdateRule& rule, uint32_t dim, float* gradient, float* s) {
  for (uint32_t i = 0; i < dim; ++i)
    gradient[i] = DecayedGradient(rule, values.Get(i), gradient[i]);
  *s = *s + SumOfSquares(gradient, dim) / static_cast<float>(dim);
  const float divisor = std::sqrt(*s) + rule.epsilon;
  for (uint32_t i = 0; i < dim; ++i) {
    float w = values.Get(i);
    StepRowwiseAdagrad(rule, gradient[i], divisor, w);
    values.Set(i, w);
  }
}

template <typename Values>
void StepValues(const RowLayout& layout, const UpdateRule& rule, Values values, float* gradient,
                float* state) {
  const uint32_t dim = layout.dim;
  switch (layout.optimizer) {
    case Optimizer::kNone:
      break;
    case Optimizer::kSgd:
      return StepElements(values, rule, dim, gradient,
                          [&](uint32_t, float g, float& w) { StepSgd(rule, g, w); });
    case Optimizer::kAdagrad:
      return StepElements(values, rule, dim, gradient, [&](uint32_t i, float g, float& w) {
        StepAdagrad(rule, g, w, state[i]);
      });
    case Optimizer::kRowwiseAdagrad:
      return StepRowwise(values, rule, dim, gradient, state);
    case Optimizer::kAdam: {
      const AdamStep adam = CountAdamStep(rule, state[size_t{2} * dim]);
      return StepElements(values, rule, dim, gradient, [&](uint32_t i, float g, float& w) {
        StepAdam(rule, adam, g, w, state[i], state[dim + i]);
      });
    }
    case Optimizer::kFtrl:
      return StepElements(values, rule, dim, gradient, [&](uint32_t i, float g, float& w) {
        StepFtrl(rule, g, w, state[i], state[dim + i]);
      });
  }
  EMBANK_CHECK(false);
}

}  // namespace

void ResetState(const RowLayout& layout, const UpdateRule& rule, std::byte* row) {
  float* const state = layout.State(row);
  switch (layout.optimizer) {
    case Optimizer::kNone:
    case Optimizer::kSgd:
      return;
    case Optimizer::kAdagrad:
    case Optimizer::kRowwiseAdagrad:
      std::fill_n(state, layout.state_floats, rule.initial_accumulator);
      return;
    case Optimizer::kAdam:
      std::memset(state, 0, layout.state_bytes());
      return;
    case Optimizer::kFtrl:
      WithValues(layout, row, [&](auto values) {
        for (uint32_t i = 0; i < layout.dim; ++i) state[i] = InitialFtrlZ(rule, values.Get(i));
      });
      std::fill_n(state + layout.dim, layout.dim, rule.initial_accumulator);
      return;
  }
}

void StepRow(const RowLayout& layout, const UpdateRule& rule, float* gradient, std::byte* row) {
  WithValues(layout, row,
             [&](auto values) { StepValues(layout, rule, values, gradient, layout.State(row)); });
}

}  // namespace embank
