// A sample of the inputs of a click log: a function of their positions.
#ifndef EMBANK_TRAIN_POPULARITY_SAMPLE_H_
#define EMBANK_TRAIN_POPULARITY_SAMPLE_H_

#include <cstdint>

#include "base/random.h"

namespace embank {

// FAE's default (Adnan et al. 2021, section 4.1.1).
inline constexpr double kSampledShareDefault = 0.05;

// FAE's input sampler (Adnan et al. 2021, section 4.1.1). An input is in the sample by a hash of
// its position: without replacement, and in whatever order and parts the inputs are read. Of two
// samples with one seed, the larger one has all inputs of the smaller one. Thread-safe.
class InputSample {
 public:
  // `share` is above 0, and at most 1: all inputs.
  InputSample(double share, uint64_t seed);

  double share() const { return share_; }
  // Returns whether the sample has the input at a position.
  bool Has(uint64_t position) const { return random_.Bits(position) <= last_; }

 private:
  double share_;
  CounterRandom random_;
  uint64_t last_;  // the highest hash in the sample
};

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_SAMPLE_H_
