// Keys made to measure: the inverse of Mix gives the key that has a wanted hash.
#ifndef EMBANK_TESTS_SUPPORT_INVERSE_MIX_H_
#define EMBANK_TESTS_SUPPORT_INVERSE_MIX_H_

#include <cstdint>

#include "base/types.h"

namespace embank::test {

// y with y ^ (y >> shift) == x.
constexpr uint64_t UndoXorShift(uint64_t x, int shift) {
  uint64_t y = x;
  for (int known = shift; known < 64; known += shift) y = x ^ (y >> shift);
  return y;
}

// The inverse of an odd number modulo 2^64: each step of Newton's doubles the correct bits.
constexpr uint64_t InverseOfOdd(uint64_t a) {
  uint64_t x = a;  // correct in three bits
  for (int step = 0; step < 5; ++step) x *= 2 - a * x;
  return x;
}

// The x whose Mix is `hash`.
constexpr uint64_t InverseMix(uint64_t hash) {
  uint64_t x = UndoXorShift(hash, 31) * InverseOfOdd(0x94D049BB133111EBu);
  x = UndoXorShift(x, 27) * InverseOfOdd(0xBF58476D1CE4E5B9u);
  return UndoXorShift(x, 30);
}

// The key whose hash in a table is `hash`.
constexpr Key KeyWithHash(uint64_t table_hash, KeyHash hash) {
  return InverseMix(hash) ^ table_hash;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_INVERSE_MIX_H_
