// A seeded source of choices for tests: the same on every machine, unlike the distributions of
// <random>.
#ifndef EMBANK_TESTS_SUPPORT_RANDOM_H_
#define EMBANK_TESTS_SUPPORT_RANDOM_H_

#include <cstdint>

namespace embank::test {

class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t Bits() {
    state_ += 0x9E3779B97F4A7C15u;
    uint64_t x = state_;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
  }
  // 0 .. limit - 1.
  uint64_t Below(uint64_t limit) { return Bits() % limit; }
  // low .. high, both included.
  uint64_t Between(uint64_t low, uint64_t high) { return low + Below(high - low + 1); }
  bool OneIn(uint64_t n) { return Below(n) == 0; }
  // [0, 1) in steps of 2^-24.
  float Unit() { return static_cast<float>(Bits() >> 40) * 0x1p-24f; }
  // (-1, 1), with many binary digits.
  float Signed() { return 2.0f * Unit() - 1.0f; }

 private:
  uint64_t state_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_RANDOM_H_
