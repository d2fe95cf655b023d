// 16-bit floats: widening is exact, narrowing rounds once, to nearest even or by a draw.
#ifndef EMBANK_BASE_HALF_H_
#define EMBANK_BASE_HALF_H_

#include <bit>
#include <cstdint>

#include "base/host_device.h"

namespace embank {

// A bfloat16: the upper half of a float.
EMBANK_HOST_DEVICE inline float Bf16ToFloat(uint16_t h) {
  return std::bit_cast<float>(static_cast<uint32_t>(h) << 16);
}

// NaN stays NaN (made quiet); overflow becomes infinity.
EMBANK_HOST_DEVICE inline uint16_t FloatToBf16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x40u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

// The exponents of the types: a NaN or an infinity has all of these bits.
inline constexpr uint16_t kBf16Exponent = 0x7F80;
inline constexpr uint16_t kF16Exponent = 0x7C00;

// An IEEE binary16.
EMBANK_HOST_DEVICE inline float F16ToFloat(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000u) << 16;
  const uint32_t magnitude = h & 0x7FFFu;
  if (magnitude >= 0x7C00u) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  }
  // Scaling by 2^112 moves the exponent bias from 15 to 127 and makes subnormals normal, exactly.
  const float scaled = std::bit_cast<float>(magnitude << 13) * 0x1p112f;
  return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(scaled));
}

// NaN stays NaN (made quiet); overflow becomes infinity.
EMBANK_HOST_DEVICE inline uint16_t FloatToF16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) {
    return static_cast<uint16_t>(sign | 0x7E00u | ((magnitude >> 13) & 0x3FFu));
  }
  // 65520 and more round past the largest half.
  if (magnitude >= 0x477FF000u) return static_cast<uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {  // below 2^-14: a subnormal half, a multiple of 2^-24
    // Adding 0.5 (whose last bit is 2^-24) lets the float adder round to nearest even.
    const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(rounded) - 0x3F000000u));
  }
  const uint32_t rebiased = magnitude - (112u << 23);
  return static_cast<uint16_t>(sign | ((rebiased + 0xFFFu + ((rebiased >> 13) & 1u)) >> 13));
}

// Rounds by a draw of 24 uniform bits: to the neighbour farther from zero with the probability that
// is the value's distance from the nearer one, as a part of the distance of both
// (docs/arithmetic.md). A representable value stays as it is.
EMBANK_HOST_DEVICE inline uint16_t DrawBf16(float value, uint32_t draw24) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return FloatToBf16(value);
  const bool goes_up = (draw24 >> 8) < (bits & 0xFFFFu);
  return static_cast<uint16_t>((bits >> 16) + (goes_up ? 1 : 0));
}

// As DrawBf16.
EMBANK_HOST_DEVICE inline uint16_t DrawF16(float value, uint32_t draw24) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u;
  const uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude >= 0x47800000u) return FloatToF16(value);  // 2^16, where infinity stands, or more
  if (magnitude < 0x38800000u) {                           // below 2^-14: multiples of 2^-24
    const float scaled = std::bit_cast<float>(magnitude) * 0x1p24f;  // exact
    const auto whole = static_cast<uint32_t>(static_cast<int32_t>(scaled));
    const float part = scaled - static_cast<float>(static_cast<int32_t>(whole));
    const float drawn = static_cast<float>(static_cast<int32_t>(draw24)) * 0x1p-24f;
    return static_cast<uint16_t>(sign | (whole + (drawn < part ? 1 : 0)));
  }
  const uint32_t rebiased = magnitude - (112u << 23);
  const bool goes_up = (draw24 >> 11) < (rebiased & 0x1FFFu);
  return static_cast<uint16_t>(sign | ((rebiased >> 13) + (goes_up ? 1 : 0)));
}

}  // namespace embank

#endif  // EMBANK_BASE_HALF_H_
