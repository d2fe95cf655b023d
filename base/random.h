// The source of all random numbers: a pure function of a seed and a position. So any part of a
// sequence can be made anywhere, in parallel, and is always the same.
#ifndef EMBANK_BASE_RANDOM_H_
#define EMBANK_BASE_RANDOM_H_

#include <cstdint>

#include "base/hash.h"
#include "base/host_device.h"

namespace embank {

class CounterRandom {
 public:
  EMBANK_HOST_DEVICE explicit constexpr CounterRandom(uint64_t seed) : seed_(seed) {}

  // 64 uniform bits: number `i` of the sequence.
  EMBANK_HOST_DEVICE constexpr uint64_t Bits(uint64_t i) const {
    return Mix(seed_ + (i + 1) * kGoldenRatio);
  }
  // Uniform in [0, 1), a multiple of 2^-24.
  EMBANK_HOST_DEVICE constexpr float UnitFloat(uint64_t i) const {
    // The 24 bits go through 32, which all machines convert many at a time.
    return static_cast<float>(static_cast<int32_t>(Bits(i) >> 40)) * 0x1p-24f;
  }
  // Uniform in (0, 1): the middles of 2^52 equal parts, exactly.
  EMBANK_HOST_DEVICE constexpr double UnitDouble(uint64_t i) const {
    return (static_cast<double>(Bits(i) >> 12) + 0.5) * 0x1p-52;
  }

 private:
  uint64_t seed_;
};

}  // namespace embank

#endif  // EMBANK_BASE_RANDOM_H_
