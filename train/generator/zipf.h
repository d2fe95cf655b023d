// Bounded Zipf ranks: P(r) ~ r^-s for r = 1..n, any s >= 0 (0: uniform), exactly, in constant
// memory.
#ifndef EMBANK_TRAIN_GENERATOR_ZIPF_H_
#define EMBANK_TRAIN_GENERATOR_ZIPF_H_

#include <cstdint>
#include <span>

#include "base/random.h"
#include "base/status_or.h"

namespace embank {

// Rejection-inversion (Hörmann and Derflinger, ACM TOMACS 6(3), 1996): invert the integral of x^-s
// and reject the little that lies between it and the steps of the discrete distribution.
//
// The rank at a position is a function of (n, s, seed, position) only, the same bits on every
// machine: any range of a stream can be made by any thread. Thread-safe.
class ZipfSampler {
 public:
  // Positions in the double arithmetic are exact up to here, with space for the halves.
  static constexpr uint64_t kRankMax = uint64_t{1} << 48;
  static constexpr double kExponentMax = 100.0;

  // INVALID_ARGUMENT: n not in 1..kRankMax, s not in 0..kExponentMax.
  static StatusOr<ZipfSampler> Create(uint64_t n, double s, uint64_t seed);

  // The rank at one position of the stream, 1..n.
  uint64_t Rank(uint64_t position) const;

  // The rank for uniform numbers in (0, 1): `first`, and numbers 1, 2, ... of `attempts` where it
  // is rejected. Samplers that get the same `first` give ranks that rise together, each with its
  // own distribution.
  uint64_t Draw(double first, CounterRandom attempts) const;

  // The ranks at positions `first`, `first` + 1, ...
  void Ranks(uint64_t first, std::span<uint64_t> ranks) const;

 private:
  ZipfSampler(uint64_t n, double s, uint64_t seed);

  double Density(double x) const;   // x^-s
  double Integral(double x) const;  // of the density from 1 to x
  double IntegralInverse(double y) const;

  uint64_t n_;
  double s_;
  CounterRandom random_;
  double integral_low_;   // the sampled interval of integrals: the whole first step ...
  double integral_high_;  // ... to half a step past the last
  double accept_below_;   // a step closer than this to its inverse needs no check
};

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_ZIPF_H_
