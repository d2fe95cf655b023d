#include "tiers/row/row_update.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

// One loop per rule over plain arrays, which the compiler vectorises. `g` is decayed already.

EMBANK_SIMD_CLONES void Decay(const UpdateRule& rule, uint32_t dim, const float* __restrict w,
                              const float* __restrict g, float* __restrict decayed) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) decayed[i] = DecayedGradient(r, w[i], g[i]);
}

EMBANK_SIMD_CLONES void StepAllSgd(const UpdateRule& rule, uint32_t dim, const float* __restrict g,
                                   float* __restrict w) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) StepSgd(r, g[i], w[i]);
}

EMBANK_SIMD_CLONES void StepAllAdagrad(const UpdateRule& rule, uint32_t dim,
                                       const float* __restrict g, float* __restrict w,
                                       float* __restrict s) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) StepAdagrad(r, g[i], w[i], s[i]);
}

// The sum of squares in the fixed tree: lanes first, then halves folded onto each other. A row may
// come in several arrays; all but the last have whole rounds of lanes.
struct SquareLanes {
  float lanes[kReductionLanes] = {};
};

EMBANK_SIMD_CLONES void AddSquares(const float* __restrict x, uint32_t dim, SquareLanes* sums) {
  float lanes[kReductionLanes];
  std::memcpy(lanes, sums->lanes, sizeof lanes);
  const uint32_t whole = dim / kReductionLanes * kReductionLanes;
  for (uint32_t begin = 0; begin < whole; begin += kReductionLanes) {
    for (uint32_t j = 0; j < kReductionLanes; ++j) lanes[j] += x[begin + j] * x[begin + j];
  }
  for (uint32_t i = whole; i < dim; ++i) lanes[i - whole] += x[i] * x[i];
  std::memcpy(sums->lanes, lanes, sizeof lanes);
}

float FoldLanes(SquareLanes* sums) {
  float* const lanes = sums->lanes;
  for (uint32_t half = kReductionLanes / 2; half > 0; half /= 2) {
    for (uint32_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

EMBANK_SIMD_CLONES void StepAllRowwise(const UpdateRule& rule, uint32_t dim, float divisor,
                                       const float* __restrict g, float* __restrict w) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) StepRowwiseAdagrad(r, g[i], divisor, w[i]);
}

EMBANK_SIMD_CLONES void StepAllAdam(const UpdateRule& rule, AdamStep step, uint32_t dim,
                                    const float* __restrict g, float* __restrict w,
                                    float* __restrict m, float* __restrict v) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) StepAdam(r, step, g[i], w[i], m[i], v[i]);
}

EMBANK_SIMD_CLONES void StepAllFtrl(const UpdateRule& rule, uint32_t dim, const float* __restrict g,
                                    float* __restrict w, float* __restrict z, float* __restrict n) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) StepFtrl(r, g[i], w[i], z[i], n[i]);
}

EMBANK_SIMD_CLONES void Widen(ValueType type, uint32_t dim, const uint16_t* __restrict from,
                              float* __restrict to) {
  if (type == ValueType::kF16) {
    for (uint32_t i = 0; i < dim; ++i) to[i] = F16ToFloat(from[i]);
  } else {
    for (uint32_t i = 0; i < dim; ++i) to[i] = Bf16ToFloat(from[i]);
  }
}

EMBANK_SIMD_CLONES void Narrow(ValueType type, uint32_t dim, const float* __restrict from,
                               uint16_t* __restrict to) {
  if (type == ValueType::kF16) {
    for (uint32_t i = 0; i < dim; ++i) to[i] = FloatToF16(from[i]);
  } else {
    for (uint32_t i = 0; i < dim; ++i) to[i] = FloatToBf16(from[i]);
  }
}

// The values that a step takes from the whole row before the first element steps.
struct RowScalars {
  AdamStep adam = {};
  float divisor = 0.0f;  // row-wise Adagrad
};

// Elements [begin, begin + dim) of a row; `g` is decayed already.
struct Block {
  uint32_t begin;
  uint32_t dim;
  const float* g;
  float* w;
};

// Counts a row-wise Adagrad step in the row's accumulator, and returns the step's divisor.
float CountRowwiseStep(const RowLayout& layout, const UpdateRule& rule, SquareLanes* squares,
                       float* accumulator) {
  *accumulator = *accumulator + FoldLanes(squares) / static_cast<float>(layout.dim);
  return std::sqrt(*accumulator) + rule.epsilon;
}

void StepBlock(const RowLayout& layout, const UpdateRule& rule, const RowScalars& scalars,
               const Block& block, float* row_state) {
  float* const first = row_state + block.begin;
  float* const second = first + layout.dim;
  switch (layout.optimizer) {
    case Optimizer::kNone:
      break;
    case Optimizer::kSgd:
      return StepAllSgd(rule, block.dim, block.g, block.w);
    case Optimizer::kAdagrad:
      return StepAllAdagrad(rule, block.dim, block.g, block.w, first);
    case Optimizer::kRowwiseAdagrad:
      return StepAllRowwise(rule, block.dim, scalars.divisor, block.g, block.w);
    case Optimizer::kAdam:
      return StepAllAdam(rule, scalars.adam, block.dim, block.g, block.w, first, second);
    case Optimizer::kFtrl:
      return StepAllFtrl(rule, block.dim, block.g, block.w, first, second);
  }
  EMBANK_CHECK(false);
}

// The step of a row of floats that do not decay: one block, in place.
void StepInPlace(const RowLayout& layout, const UpdateRule& rule, const float* gradient,
                 std::byte* image) {
  const Block row = {0, layout.dim, gradient, reinterpret_cast<float*>(layout.Vector(image))};
  float* const state = layout.State(image);
  RowScalars scalars;
  if (layout.optimizer == Optimizer::kAdam) {
    scalars.adam = CountAdamStep(rule, state[size_t{2} * layout.dim]);
  } else if (layout.optimizer == Optimizer::kRowwiseAdagrad) {
    SquareLanes squares;
    AddSquares(gradient, layout.dim, &squares);
    scalars.divisor = CountRowwiseStep(layout, rule, &squares, state);
  }
  StepBlock(layout, rule, scalars, row, state);
}

// The step of a row whose elements are widened or decayed on their way. It takes one block after
// the other, so that the copies of a block are small enough for a stack.
class StepByBlocks {
 public:
  StepByBlocks(const RowLayout& layout, const UpdateRule& rule, const float* gradient,
               std::byte* image)
      : layout_(layout),
        rule_(rule),
        gradient_(gradient),
        vector_(layout.Vector(image)),
        state_(layout.State(image)),
        is_wide_(layout.value_type == ValueType::kF32),
        decays_(rule.weight_decay != 0.0f) {}

  void Run() {
    RowScalars scalars;
    if (layout_.optimizer == Optimizer::kAdam) {
      scalars.adam = CountAdamStep(rule_, state_[size_t{2} * layout_.dim]);
    } else if (layout_.optimizer == Optimizer::kRowwiseAdagrad) {
      scalars.divisor = CountRowwise();
    }
    for (uint32_t begin = 0; begin < layout_.dim; begin += kBlockDim) {
      const Block block = Load(begin);
      StepBlock(layout_, rule_, scalars, block, state_);
      if (!is_wide_) Narrow(layout_.value_type, block.dim, widened_, Halves(begin));
    }
  }

 private:
  static constexpr uint32_t kBlockDim = 512;
  static_assert(kBlockDim % kReductionLanes == 0);

  uint16_t* Halves(uint32_t begin) { return reinterpret_cast<uint16_t*>(vector_) + begin; }

  Block Load(uint32_t begin) {
    const uint32_t dim = std::min(layout_.dim - begin, kBlockDim);
    float* const w = is_wide_ ? reinterpret_cast<float*>(vector_) + begin : widened_;
    if (!is_wide_) Widen(layout_.value_type, dim, Halves(begin), widened_);
    if (!decays_) return {begin, dim, gradient_ + begin, w};
    Decay(rule_, dim, w, gradient_ + begin, decayed_);
    return {begin, dim, decayed_, w};
  }

  // The row's accumulator takes all elements before the first one steps.
  float CountRowwise() {
    SquareLanes squares;
    for (uint32_t begin = 0; begin < layout_.dim; begin += kBlockDim) {
      const Block block = Load(begin);
      AddSquares(block.g, block.dim, &squares);
    }
    return CountRowwiseStep(layout_, rule_, &squares, state_);
  }

  const RowLayout& layout_;
  const UpdateRule& rule_;
  const float* const gradient_;
  std::byte* const vector_;
  float* const state_;
  const bool is_wide_;
  const bool decays_;
  float widened_[kBlockDim];
  float decayed_[kBlockDim];
};

}  // namespace

void ResetState(const RowLayout& layout, const UpdateRule& rule, std::byte* image) {
  float* const state = layout.State(image);
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
    case Optimizer::kFtrl: {
      const std::byte* const vector = layout.Vector(image);
      if (layout.value_type == ValueType::kF32) {
        std::memcpy(state, vector, layout.vector_bytes);
      } else {
        Widen(layout.value_type, layout.dim, reinterpret_cast<const uint16_t*>(vector), state);
      }
      for (uint32_t i = 0; i < layout.dim; ++i) state[i] = InitialFtrlZ(rule, state[i]);
      std::fill_n(state + layout.dim, layout.dim, rule.initial_accumulator);
      return;
    }
  }
}

void StepRow(const RowLayout& layout, const UpdateRule& rule, const float* gradient,
             std::byte* image) {
  if (layout.value_type == ValueType::kF32 && rule.weight_decay == 0.0f) {
    return StepInPlace(layout, rule, gradient, image);
  }
  StepByBlocks(layout, rule, gradient, image).Run();
}

// A block of the sum stays in registers while all gradients go by.
EMBANK_SIMD_CLONES void SumGradients(std::span<const std::byte* const> gradients, uint32_t dim,
                                     float* __restrict sum) {
  constexpr uint32_t kBlock = 64;
  uint32_t begin = 0;
  for (; begin + kBlock <= dim; begin += kBlock) {
    float block[kBlock];
    std::memcpy(block, gradients[0] + begin * sizeof(float), sizeof block);
    for (size_t g = 1; g < gradients.size(); ++g) {
      float terms[kBlock];
      std::memcpy(terms, gradients[g] + begin * sizeof(float), sizeof terms);
      for (uint32_t i = 0; i < kBlock; ++i) block[i] += terms[i];
    }
    std::memcpy(sum + begin, block, sizeof block);
  }
  const uint32_t rest = dim - begin;
  std::memcpy(sum + begin, gradients[0] + begin * sizeof(float), rest * sizeof(float));
  for (size_t g = 1; g < gradients.size(); ++g) {
    const std::byte* const terms = gradients[g] + begin * sizeof(float);
    for (uint32_t i = 0; i < rest; ++i) {
      float term = 0;
      std::memcpy(&term, terms + i * sizeof term, sizeof term);
      sum[begin + i] += term;
    }
  }
}

EMBANK_SIMD_CLONES void AddSum(const float* __restrict other, uint32_t dim, float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += other[i];
}

EMBANK_SIMD_CLONES bool AllFinite(const std::byte* gradient, uint32_t dim) {
  constexpr uint32_t kExponentMask = 0x7F800000;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    uint32_t bits = 0;
    std::memcpy(&bits, gradient + i * sizeof bits, sizeof bits);
    not_finite |= static_cast<uint32_t>((bits & kExponentMask) == kExponentMask);
  }
  return not_finite == 0;
}

}  // namespace embank
