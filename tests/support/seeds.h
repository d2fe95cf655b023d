// The seeds of a suite whose seeds are independent of one another: two threads share them.
#ifndef EMBANK_TESTS_SUPPORT_SEEDS_H_
#define EMBANK_TESTS_SUPPORT_SEEDS_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <string>

#include "base/threads/mutex.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/threads.h"

namespace embank::test {

// Runs body(seed, &events) for so many seeds from FirstSeed() on, or for EMBANK_TEST_SEED alone.
// The body returns "", or an error, which fails the test with the command that replays it: `suite`
// is what ctest calls it. False: only one seed was run, so no quantity is expected.
template <typename Body>
bool RunSeeds(const char* suite, uint64_t seeds, Events* events, const Body& body) {
  constexpr uint64_t kThreads = 2;
  constexpr int kFailuresMax = 3;
  const uint64_t only = NumberFromEnvironment("EMBANK_TEST_SEED", 0);
  const uint64_t begin = only != 0 ? only : FirstSeed();
  const uint64_t end = begin + (only != 0 ? 1 : seeds);
  std::atomic<uint64_t> next{begin};
  std::atomic<int> failures{0};
  Mutex mutex;
  OnThreads(kThreads, [&](uint64_t) {
    Events some;
    while (failures < kFailuresMax) {
      const uint64_t seed = next++;
      if (seed >= end) break;
      const std::string wrong = body(seed, &some);
      if (wrong.empty()) continue;
      ADD_FAILURE() << "replay with EMBANK_TEST_SEED=" << seed << " ctest -R '^" << suite
                    << "$': " << wrong;
      ++failures;
    }
    MutexLock lock(&mutex);
    events->Add(some);
  });
  return only == 0;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SEEDS_H_
