#include "tiers/row/row_update.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/half.h"
#include "base/seeded_bug.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

// One loop per rule over plain arrays, which the compiler vectorises. `g` is decayed already. The
// loops keep what a step overwrites, and return bits that are all 0 if all results are finite.

EMBANK_SIMD_CLONES void Scale(double scale, uint32_t dim, const float* __restrict g,
                              float* __restrict scaled) {
  for (uint32_t i = 0; i < dim; ++i) scaled[i] = ScaledGradient(g[i], scale);
}

// `decayed` may be `g`.
EMBANK_SIMD_CLONES void Decay(const UpdateRule& rule, uint32_t dim, const float* __restrict w,
                              const float* g, float* decayed) {
  const UpdateRule r = rule;
  for (uint32_t i = 0; i < dim; ++i) decayed[i] = DecayedGradient(r, w[i], g[i]);
}

EMBANK_SIMD_CLONES void Shrink(float factor, uint32_t dim, float* __restrict w) {
  for (uint32_t i = 0; i < dim; ++i) w[i] = factor * w[i];
}

EMBANK_SIMD_CLONES uint32_t StepAllSgd(const UpdateRule& rule, uint32_t dim,
                                       const float* __restrict g, float* __restrict w,
                                       float* __restrict former_w) {
  const UpdateRule r = rule;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    former_w[i] = w[i];
    StepSgd(r, g[i], w[i]);
    not_finite |= NotFiniteBits(w[i]);
  }
  return not_finite;
}

EMBANK_SIMD_CLONES uint32_t StepAllAdagrad(const UpdateRule& rule, uint32_t dim,
                                           const float* __restrict g, float* __restrict w,
                                           float* __restrict s, float* __restrict former_w,
                                           float* __restrict former_s) {
  const UpdateRule r = rule;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    former_w[i] = w[i];
    former_s[i] = s[i];
    StepAdagrad(r, g[i], w[i], s[i]);
    not_finite |= NotFiniteBits(w[i]) | NotFiniteBits(s[i]);
  }
  return not_finite;
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

template <typename Number>
Number FoldLanes(Number* lanes) {
  for (uint32_t half = kReductionLanes / 2; half > 0; half /= 2) {
    for (uint32_t j = 0; j < half; ++j) lanes[j] += lanes[j + half];
  }
  return lanes[0];
}

// The same sum in float64.
EMBANK_SIMD_CLONES double SumOfSquares(const float* __restrict x, uint32_t dim) {
  double lanes[kReductionLanes] = {};
  const uint32_t whole = dim / kReductionLanes * kReductionLanes;
  for (uint32_t begin = 0; begin < whole; begin += kReductionLanes) {
    for (uint32_t j = 0; j < kReductionLanes; ++j) {
      const auto wide = static_cast<double>(x[begin + j]);
      lanes[j] += wide * wide;
    }
  }
  for (uint32_t i = whole; i < dim; ++i) {
    const auto wide = static_cast<double>(x[i]);
    lanes[i - whole] += wide * wide;
  }
  return FoldLanes(lanes);
}

EMBANK_SIMD_CLONES uint32_t StepAllRowwise(const UpdateRule& rule, uint32_t dim, float divisor,
                                           const float* __restrict g, float* __restrict w,
                                           float* __restrict former_w) {
  const UpdateRule r = rule;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    former_w[i] = w[i];
    StepRowwiseAdagrad(r, g[i], divisor, w[i]);
    not_finite |= NotFiniteBits(w[i]);
  }
  return not_finite;
}

EMBANK_SIMD_CLONES uint32_t StepAllAdam(const UpdateRule& rule, AdamStep step, uint32_t dim,
                                        const float* __restrict g, float* __restrict w,
                                        float* __restrict m, float* __restrict v,
                                        float* __restrict former_w, float* __restrict former_m,
                                        float* __restrict former_v) {
  const UpdateRule r = rule;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    former_w[i] = w[i];
    former_m[i] = m[i];
    former_v[i] = v[i];
    StepAdam(r, step, g[i], w[i], m[i], v[i]);
    not_finite |= NotFiniteBits(w[i]) | NotFiniteBits(m[i]) | NotFiniteBits(v[i]);
  }
  return not_finite;
}

template <bool kHasPenalty>
[[gnu::always_inline]] inline uint32_t StepAllFtrlAs(const UpdateRule& rule, uint32_t dim,
                                                     const float* __restrict g, float* __restrict w,
                                                     float* __restrict z, float* __restrict n,
                                                     float* __restrict former_w,
                                                     float* __restrict former_z,
                                                     float* __restrict former_n) {
  const UpdateRule r = rule;
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    former_w[i] = w[i];
    former_z[i] = z[i];
    former_n[i] = n[i];
    StepFtrl<kHasPenalty>(r, g[i], w[i], z[i], n[i]);
    not_finite |= NotFiniteBits(w[i]) | NotFiniteBits(z[i]) | NotFiniteBits(n[i]);
  }
  return not_finite;
}

EMBANK_SIMD_CLONES uint32_t StepAllFtrl(const UpdateRule& rule, uint32_t dim,
                                        const float* __restrict g, float* __restrict w,
                                        float* __restrict z, float* __restrict n,
                                        float* __restrict former_w, float* __restrict former_z,
                                        float* __restrict former_n) {
  return HasFtrlPenalty(rule)
             ? StepAllFtrlAs<true>(rule, dim, g, w, z, n, former_w, former_z, former_n)
             : StepAllFtrlAs<false>(rule, dim, g, w, z, n, former_w, former_z, former_n);
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

// As Narrow, by the draws of the elements from `begin` on.
EMBANK_SIMD_CLONES void NarrowByDraw(ValueType type, uint64_t seed, uint32_t begin, uint32_t dim,
                                     const float* __restrict from, uint16_t* __restrict to) {
  if (type == ValueType::kF16) {
    for (uint32_t i = 0; i < dim; ++i) to[i] = DrawF16(from[i], RoundingDraw(seed, begin + i));
  } else {
    for (uint32_t i = 0; i < dim; ++i) to[i] = DrawBf16(from[i], RoundingDraw(seed, begin + i));
  }
}

// Returns bits that are all 0 if all values are finite. The sum of a full exponent and its lowest
// bit is the highest bit of a word; no other sum has that.
EMBANK_SIMD_CLONES uint32_t NotFiniteHalves(ValueType type, uint32_t dim,
                                            const uint16_t* __restrict halves) {
  const uint16_t exponent = type == ValueType::kF16 ? kF16Exponent : kBf16Exponent;
  const auto lowest = static_cast<uint16_t>(0x8000u - exponent);
  uint16_t sums = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    sums |= static_cast<uint16_t>((halves[i] & exponent) + lowest);
  }
  return sums & 0x8000u;
}

// The values that a step takes from the whole row before the first element steps.
struct RowScalars {
  AdamStep adam = {};
  float divisor = 0.0f;     // row-wise Adagrad
  uint32_t not_finite = 0;  // bits of the row's one number
};

// Elements [begin, begin + dim) of a row, and where their former values go. `g` is decayed already.
struct Block {
  uint32_t begin;
  uint32_t dim;
  const float* g;
  float* w;
  float* former_w;
};

// The states of a row, one array behind the other, and where the former ones go.
struct RowState {
  float* now;
  float* former;
};

// Counts a step of Adam.
RowScalars CountAdam(const RowLayout& layout, const UpdateRule& rule, const RowState& state) {
  const size_t at = size_t{2} * layout.dim;
  state.former[at] = state.now[at];
  RowScalars scalars;
  scalars.adam = CountAdamStep(rule, state.now[at]);
  scalars.not_finite = NotFiniteBits(state.now[at]);
  return scalars;
}

// Counts a step of row-wise Adagrad in the row's accumulator.
RowScalars CountRowwise(const RowLayout& layout, const UpdateRule& rule, SquareLanes* squares,
                        const RowState& state) {
  *state.former = *state.now;
  *state.now = *state.now + FoldLanes(squares->lanes) / static_cast<float>(layout.dim);
  RowScalars scalars;
  scalars.divisor = std::sqrt(*state.now) + rule.epsilon;
  scalars.not_finite = NotFiniteBits(*state.now);
  return scalars;
}

[[gnu::always_inline]] inline uint32_t StepBlock(const RowLayout& layout, const UpdateRule& rule,
                                                 const RowScalars& scalars, const Block& block,
                                                 const RowState& state) {
  float* const first = state.now + block.begin;
  float* const second = first + layout.dim;
  float* const former_first = state.former + block.begin;
  float* const former_second = former_first + layout.dim;
  switch (layout.optimizer) {
    case Optimizer::kNone:
      break;
    case Optimizer::kSgd:
      return StepAllSgd(rule, block.dim, block.g, block.w, block.former_w);
    case Optimizer::kAdagrad:
      return StepAllAdagrad(rule, block.dim, block.g, block.w, first, block.former_w, former_first);
    case Optimizer::kRowwiseAdagrad:
      return StepAllRowwise(rule, block.dim, scalars.divisor, block.g, block.w, block.former_w);
    case Optimizer::kAdam:
      return StepAllAdam(rule, scalars.adam, block.dim, block.g, block.w, first, second,
                         block.former_w, former_first, former_second);
    case Optimizer::kFtrl:
      return StepAllFtrl(rule, block.dim, block.g, block.w, first, second, block.former_w,
                         former_first, former_second);
  }
  EMBANK_CHECK(false);
}

// Makes the row what it was. Returns whether its step was made.
[[gnu::noinline]] bool Restore(const RowLayout& layout, std::byte* former, std::byte* image) {
  if (Seeded(SeededBug::kNotFiniteStepMade)) return true;
  std::memcpy(layout.Vector(image), layout.Vector(former), layout.vector_bytes);
  std::memcpy(layout.State(image), layout.State(former), layout.state_bytes());
  return false;
}

// The step of a row of floats as they are, with the gradient as it is: one block, in place.
bool StepInPlace(const RowLayout& layout, const UpdateRule& rule, const float* gradient,
                 std::byte* image, std::byte* former) {
  const Block row = {0, layout.dim, gradient, reinterpret_cast<float*>(layout.Vector(image)),
                     reinterpret_cast<float*>(layout.Vector(former))};
  const RowState state = {layout.State(image), layout.State(former)};
  RowScalars scalars;
  if (layout.optimizer == Optimizer::kAdam) {
    scalars = CountAdam(layout, rule, state);
  } else if (layout.optimizer == Optimizer::kRowwiseAdagrad) {
    SquareLanes squares;
    AddSquares(gradient, layout.dim, &squares);
    scalars = CountRowwise(layout, rule, &squares, state);
  }
  const uint32_t not_finite = scalars.not_finite | StepBlock(layout, rule, scalars, row, state);
  return not_finite == 0 || Restore(layout, former, image);
}

// The step of a row whose elements or gradients change on their way. It takes one block after the
// other, so that the copies of a block are small enough for a stack.
class StepByBlocks {
 public:
  StepByBlocks(const RowLayout& layout, const UpdateRule& rule, uint64_t rounding_seed,
               const float* gradient, std::byte* image, std::byte* former)
      : layout_(layout),
        rule_(rule),
        rounding_seed_(rounding_seed),
        gradient_(gradient),
        image_(image),
        former_(former),
        state_{layout.State(image), layout.State(former)},
        is_wide_(layout.value_type == ValueType::kF32),
        is_in_place_(is_wide_ && rule.decoupled_weight_decay == 0.0f),
        decays_(rule.weight_decay != 0.0f) {}

  bool Run() {
    if (rule_.max_gradient_norm != 0.0f) {
      scale_ = GradientScale(rule_, SumOfSquares(gradient_, layout_.dim));
    }
    if (!is_in_place_) {
      std::memcpy(layout_.Vector(former_), layout_.Vector(image_), layout_.vector_bytes);
    }
    RowScalars scalars;
    if (layout_.optimizer == Optimizer::kAdam) {
      scalars = CountAdam(layout_, rule_, state_);
    } else if (layout_.optimizer == Optimizer::kRowwiseAdagrad) {
      scalars = CountSquares();
    }
    uint32_t not_finite = scalars.not_finite;
    for (uint32_t begin = 0; begin < layout_.dim; begin += kBlockDim) {
      const Block block = Load(begin);
      not_finite |= StepBlock(layout_, rule_, scalars, block, state_) | Store(block);
    }
    return not_finite == 0 || Restore(layout_, former_, image_);
  }

 private:
  static constexpr uint32_t kBlockDim = 512;
  static_assert(kBlockDim % kReductionLanes == 0);

  float* Floats(std::byte* image, uint32_t begin) {
    return reinterpret_cast<float*>(layout_.Vector(image)) + begin;
  }
  uint16_t* Halves(uint32_t begin) {
    return reinterpret_cast<uint16_t*>(layout_.Vector(image_)) + begin;
  }

  Block Load(uint32_t begin) {
    const uint32_t dim = std::min(layout_.dim - begin, kBlockDim);
    float* const w = is_in_place_ ? Floats(image_, begin) : weights_;
    if (!is_wide_) {
      Widen(layout_.value_type, dim, Halves(begin), weights_);
    } else if (!is_in_place_) {
      std::memcpy(weights_, Floats(image_, begin), dim * sizeof(float));
    }
    const float* g = gradient_ + begin;
    if (scale_ != 1.0) {
      Scale(scale_, dim, g, changed_);
      g = changed_;
    }
    if (decays_) {
      Decay(rule_, dim, w, g, changed_);
      g = changed_;
    }
    if (rule_.decoupled_weight_decay != 0.0f) Shrink(DecoupledFactor(rule_), dim, w);
    return {begin, dim, g, w, is_in_place_ ? Floats(former_, begin) : unused_};
  }

  // Returns bits that are all 0 if all rounded values are finite.
  uint32_t Store(const Block& block) {
    if (is_in_place_) return 0;
    if (is_wide_) {
      std::memcpy(Floats(image_, block.begin), weights_, block.dim * sizeof(float));
      return 0;
    }
    uint16_t* const to = Halves(block.begin);
    if (rule_.rounding == Rounding::kNearest) {
      Narrow(layout_.value_type, block.dim, weights_, to);
    } else {
      NarrowByDraw(layout_.value_type, rounding_seed_, block.begin, block.dim, weights_, to);
    }
    return NotFiniteHalves(layout_.value_type, block.dim, to);
  }

  // The row's accumulator takes all elements before the first one steps.
  RowScalars CountSquares() {
    SquareLanes squares;
    for (uint32_t begin = 0; begin < layout_.dim; begin += kBlockDim) {
      const Block block = Load(begin);
      AddSquares(block.g, block.dim, &squares);
    }
    return CountRowwise(layout_, rule_, &squares, state_);
  }

  const RowLayout& layout_;
  const UpdateRule& rule_;
  const uint64_t rounding_seed_;
  const float* const gradient_;
  std::byte* const image_;
  std::byte* const former_;
  const RowState state_;
  const bool is_wide_;
  const bool is_in_place_;
  const bool decays_;
  double scale_ = 1.0;
  float weights_[kBlockDim];
  float changed_[kBlockDim];
  float unused_[kBlockDim];  // what StepBlock keeps of weights_
};

// Not inlined, so that a step in place needs no space for blocks.
[[gnu::noinline]] bool StepThroughBlocks(const RowLayout& layout, const UpdateRule& rule,
                                         uint64_t rounding_seed, const float* gradient,
                                         std::byte* image, std::byte* former) {
  return StepByBlocks(layout, rule, rounding_seed, gradient, image, former).Run();
}

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

bool StepRow(const RowLayout& layout, const UpdateRule& rule, uint64_t rounding_seed,
             const float* gradient, std::byte* image, std::byte* former) {
  // Options are not negative: what is not 0 has bits.
  const uint32_t changes = std::bit_cast<uint32_t>(rule.weight_decay) |
                           std::bit_cast<uint32_t>(rule.decoupled_weight_decay) |
                           std::bit_cast<uint32_t>(rule.max_gradient_norm);
  if (layout.value_type == ValueType::kF32 && changes == 0) {
    return StepInPlace(layout, rule, gradient, image, former);
  }
  return StepThroughBlocks(layout, rule, rounding_seed, gradient, image, former);
}

namespace {

// A block of the sum stays in registers while all gradients go by.
template <bool kClips>
[[gnu::always_inline]] inline void SumAll(std::span<const std::byte* const> gradients, uint32_t dim,
                                          float limit, float* __restrict sum) {
  const auto clipped = [limit](float g) { return kClips ? ClippedGradient(g, limit) : g; };
  constexpr uint32_t kBlock = 64;
  uint32_t begin = 0;
  for (; begin + kBlock <= dim; begin += kBlock) {
    float block[kBlock];
    std::memcpy(block, gradients[0] + begin * sizeof(float), sizeof block);
    for (uint32_t i = 0; i < kBlock; ++i) block[i] = clipped(block[i]);
    for (size_t g = 1; g < gradients.size(); ++g) {
      float terms[kBlock];
      std::memcpy(terms, gradients[g] + begin * sizeof(float), sizeof terms);
      for (uint32_t i = 0; i < kBlock; ++i) block[i] += clipped(terms[i]);
    }
    std::memcpy(sum + begin, block, sizeof block);
  }
  const uint32_t rest = dim - begin;
  std::memcpy(sum + begin, gradients[0] + begin * sizeof(float), rest * sizeof(float));
  for (uint32_t i = begin; i < dim; ++i) sum[i] = clipped(sum[i]);
  for (size_t g = 1; g < gradients.size(); ++g) {
    const std::byte* const terms = gradients[g] + begin * sizeof(float);
    for (uint32_t i = 0; i < rest; ++i) {
      float term = 0;
      std::memcpy(&term, terms + i * sizeof term, sizeof term);
      sum[begin + i] += clipped(term);
    }
  }
}

EMBANK_SIMD_CLONES void SumAsTheyAre(std::span<const std::byte* const> gradients, uint32_t dim,
                                     float* __restrict sum) {
  SumAll<false>(gradients, dim, 0.0f, sum);
}

EMBANK_SIMD_CLONES void SumClipped(std::span<const std::byte* const> gradients, uint32_t dim,
                                   float limit, float* __restrict sum) {
  SumAll<true>(gradients, dim, limit, sum);
}

}  // namespace

void SumGradients(std::span<const std::byte* const> gradients, uint32_t dim, float limit,
                  float* sum) {
  if (limit == 0.0f) return SumAsTheyAre(gradients, dim, sum);
  SumClipped(gradients, dim, limit, sum);
}

EMBANK_SIMD_CLONES void AddSum(const float* __restrict other, uint32_t dim, float* __restrict sum) {
  for (uint32_t i = 0; i < dim; ++i) sum[i] += other[i];
}

EMBANK_SIMD_CLONES bool AllFinite(const std::byte* gradient, uint32_t dim) {
  uint32_t not_finite = 0;
  for (uint32_t i = 0; i < dim; ++i) {
    float number = 0;
    std::memcpy(&number, gradient + i * sizeof number, sizeof number);
    not_finite |= NotFiniteBits(number);
  }
  return not_finite == 0;
}

}  // namespace embank
