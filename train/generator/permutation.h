// A bijection of 0..n-1 that looks random: it scatters popular ids.
#ifndef EMBANK_TRAIN_GENERATOR_PERMUTATION_H_
#define EMBANK_TRAIN_GENERATOR_PERMUTATION_H_

#include <cstdint>

namespace embank {

// It takes constant memory. The results are the same on every machine. Thread-safe.
class Permutation {
 public:
  Permutation(uint64_t n, uint64_t seed);

  // The image of i < n.
  uint64_t operator()(uint64_t i) const;

 private:
  uint64_t Scramble(uint64_t x) const;

  uint64_t n_;
  uint64_t seed_;
  uint32_t bits_;  // of the smallest power of two that holds n
  uint64_t mask_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_GENERATOR_PERMUTATION_H_
