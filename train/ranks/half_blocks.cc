#include "train/ranks/half_blocks.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "base/half.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

constexpr uint32_t kInfinity = 0x7F800000u;
// From here on a number rounds to a half that is infinite.
constexpr float kTooLarge = 65520.0f;
// That of blocks with numbers of 2^127 or more.
constexpr int kExponentOfLargest = 15 - 127;

// Two factors, since one alone may be no float: subnormal numbers are scaled by up to 2^164. Each
// step is exact, but for numbers that are far below the smallest half.
struct Factors {
  explicit Factors(int exponent)
      : first(std::ldexp(1.0f, exponent / 2)), second(std::ldexp(1.0f, exponent - exponent / 2)) {}
  float first;
  float second;
};

// The bits of the largest finite magnitude: magnitudes are ordered as their bits.
EMBANK_SIMD_CLONES uint32_t LargestMagnitude(const float* floats, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = std::bit_cast<uint32_t>(floats[i]) & 0x7FFFFFFFu;
    largest = std::max(largest, magnitude < kInfinity ? magnitude : 0u);
  }
  return largest;
}

// The exponent of the power of two by which the largest number gets 2^15 or more, or as near to it
// as a half allows.
int ExponentFor(float largest) {
  if (largest == 0.0f) return 0;
  const int exponent = 15 - std::ilogb(largest);
  const Factors factors(exponent);
  return largest * factors.first * factors.second < kTooLarge ? exponent : exponent - 1;
}

EMBANK_SIMD_CLONES void Encode(const float* floats, size_t count, Factors factors,
                               uint16_t* halves) {
  for (size_t i = 0; i < count; ++i) {
    halves[i] = FloatToF16(floats[i] * factors.first * factors.second);
  }
}

EMBANK_SIMD_CLONES void Decode(const uint16_t* halves, size_t count, Factors factors,
                               float* floats) {
  for (size_t i = 0; i < count; ++i) {
    floats[i] = F16ToFloat(halves[i]) * factors.first * factors.second;
  }
}

// A number next to 2^128 rounds to it, which is no float.
void MakeFinite(const uint16_t* halves, std::span<float> floats) {
  for (size_t i = 0; i < floats.size(); ++i) {
    const bool was_finite = (halves[i] & kF16Exponent) != kF16Exponent;
    if (was_finite && std::isinf(floats[i])) {
      floats[i] = std::copysign(std::numeric_limits<float>::max(), floats[i]);
    }
  }
}

// Calls visit(number of the block, its floats).
template <typename Float, typename Visit>
void ForEachBlock(std::span<Float> floats, Visit visit) {
  for (uint64_t begin = 0; begin < floats.size(); begin += kHalfBlock) {
    visit(begin / kHalfBlock,
          floats.subspan(begin, std::min<uint64_t>(kHalfBlock, floats.size() - begin)));
  }
}

uint64_t BlocksOf(uint64_t floats) { return (floats + kHalfBlock - 1) / kHalfBlock; }

}  // namespace

void EncodeHalfBlocks(std::span<const float> floats, std::byte* halves) {
  auto* const exponents = reinterpret_cast<int16_t*>(halves);
  auto* const values = reinterpret_cast<uint16_t*>(halves) + BlocksOf(floats.size());
  ForEachBlock(floats, [&](uint64_t number, std::span<const float> block) {
    const auto largest = std::bit_cast<float>(LargestMagnitude(block.data(), block.size()));
    const int exponent = ExponentFor(largest);
    exponents[number] = static_cast<int16_t>(exponent);
    Encode(block.data(), block.size(), Factors(exponent), values + number * kHalfBlock);
  });
}

void DecodeHalfBlocks(const std::byte* halves, std::span<float> floats) {
  const auto* const exponents = reinterpret_cast<const int16_t*>(halves);
  const auto* const values = reinterpret_cast<const uint16_t*>(halves) + BlocksOf(floats.size());
  ForEachBlock(floats, [&](uint64_t number, std::span<float> block) {
    const uint16_t* const of_block = values + number * kHalfBlock;
    Decode(of_block, block.size(), Factors(-exponents[number]), block.data());
    if (exponents[number] <= kExponentOfLargest) MakeFinite(of_block, block);
  });
}

}  // namespace embank
