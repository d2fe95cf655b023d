#include "train/generator/permutation.h"

#include <algorithm>
#include <bit>

#include "base/hash.h"

namespace embank {

Permutation::Permutation(uint64_t n, uint64_t seed)
    : n_(n),
      seed_(Mix(seed)),
      bits_(std::max(1, 64 - std::countl_zero(n - 1))),
      mask_(~uint64_t{0} >> (64 - bits_)) {}

uint64_t Permutation::Scramble(uint64_t x) const {
  // Each line is a bijection of bits_ bits: adding, multiplying by an odd number, folding the upper
  // half onto the lower.
  const uint32_t shift = (bits_ + 1) / 2;
  for (uint64_t round = 0; round < 4; ++round) {
    const uint64_t key = Mix(seed_ + round);
    x = (x + key) & mask_;
    x = (x * (key | 1)) & mask_;
    x ^= x >> shift;
  }
  return x;
}

uint64_t Permutation::operator()(uint64_t i) const {
  // Walking on until the value falls below n stays on one cycle, so the walk is a bijection too;
  // less than half of the values lie above, so it takes fewer than two steps on average.
  uint64_t x = Scramble(i);
  while (x >= n_) x = Scramble(x);
  return x;
}

}  // namespace embank
