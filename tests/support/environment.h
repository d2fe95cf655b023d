// The environment variables of the randomised suites.
#ifndef EMBANK_TESTS_SUPPORT_ENVIRONMENT_H_
#define EMBANK_TESTS_SUPPORT_ENVIRONMENT_H_

#include <cstdint>
#include <cstdlib>

namespace embank::test {

inline uint64_t NumberFromEnvironment(const char* name, uint64_t fallback) {
  const char* const text = std::getenv(name);
  return text == nullptr || *text == '\0' ? fallback : std::strtoull(text, nullptr, 10);
}

// A randomised suite runs so many times longer than usual.
inline uint64_t TestScale() { return NumberFromEnvironment("EMBANK_TEST_SCALE", 1); }

// The first seed of a randomised suite: a longer search continues where an earlier run has ended.
inline uint64_t FirstSeed() { return NumberFromEnvironment("EMBANK_TEST_SEED_BEGIN", 1); }

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_ENVIRONMENT_H_
