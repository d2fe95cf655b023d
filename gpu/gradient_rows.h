// Reads of gradients, for host and device alike: the sum of those of equal keys, and the search for
// numbers that are not finite.
#ifndef EMBANK_GPU_GRADIENT_ROWS_H_
#define EMBANK_GPU_GRADIENT_ROWS_H_

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/host_device.h"
#include "gpu/device.h"
#include "tiers/row/update_rule.h"

namespace embank {

// Gradients of equal keys are added in runs of so many (docs/arithmetic.md).
inline constexpr uint32_t kGradientRun = 32;

// The gradients of one SumRows.
struct GradientTerms {
  const uint32_t* positions;
  DeviceArray gradients;
  float limit;  // of each number; infinite: none
};

// `limit` of SumRows as that of its terms.
inline float LimitOfTerms(float limit) { return limit == 0.0f ? HUGE_VALF : limit; }

// Returns element i of the k-th gradient of a row of SumRows.
EMBANK_HOST_DEVICE inline float GradientTerm(const DeviceRow& row, const GradientTerms& terms,
                                             uint32_t k, uint32_t i) {
  const uint64_t position = terms.positions[uint64_t{row.index} + k];
  const std::byte* const gradient = terms.gradients.rows + position * terms.gradients.stride_bytes;
  return ClippedGradient(reinterpret_cast<const float*>(gradient)[i], terms.limit);
}

#if defined(__CUDA_ARCH__)
#define EMBANK_UNROLL_TERMS _Pragma("unroll 8")  // so many loads are under way at once
#else
#define EMBANK_UNROLL_TERMS
#endif

// Returns element i of the sum of a row's gradients.
EMBANK_HOST_DEVICE inline float SumElement(const DeviceRow& row, const GradientTerms& terms,
                                           uint32_t i) {
  float sum = 0.0f;
  for (uint32_t begin = 0; begin < row.count; begin += kGradientRun) {
    const uint32_t rest = row.count - begin;
    const uint32_t end = begin + (rest < kGradientRun ? rest : kGradientRun);
    float run = GradientTerm(row, terms, begin, i);
    EMBANK_UNROLL_TERMS
    for (uint32_t k = begin + 1; k < end; ++k) {
      run = run + GradientTerm(row, terms, k, i);
    }
    sum = begin == 0 ? run : sum + run;  // 0 + -0 would not be -0
  }
  return sum;
}

// Whether a float is NaN or infinite.
EMBANK_HOST_DEVICE inline bool IsNotFinite(float value) {
  constexpr uint32_t kExponentMask = 0x7F800000;
  return (std::bit_cast<uint32_t>(value) & kExponentMask) == kExponentMask;
}

}  // namespace embank

#endif  // EMBANK_GPU_GRADIENT_ROWS_H_
