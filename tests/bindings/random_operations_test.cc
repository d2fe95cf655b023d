// Random sequences of operations, store against oracle, bit for bit. EMBANK_TEST_SCALE multiplies
// the number of seeds (1 by default, 10 in full runs); EMBANK_TEST_SEED replays one of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "base/mutex.h"
#include "tests/bindings/random_plan.h"
#include "tests/bindings/random_run.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/threads.h"

namespace embank::test {
namespace {

// About 20 s. AddressSanitizer makes a seed five times slower, ThreadSanitizer twenty times.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeedsPerScale = 48;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeedsPerScale = 120;
#else
constexpr uint64_t kSeedsPerScale = 500;
#endif

// Seeds are independent: each thread has a part of them.
constexpr uint64_t kThreads = 2;

// "" or the line that tells what differs and how to see it again.
std::string RunSeed(uint64_t seed, Events* events) {
  std::string wrong = RandomRun(MakePlan(seed), events).Run();
  if (wrong.empty()) return "";
  return "replay with EMBANK_TEST_SEED=" + std::to_string(seed) +
         " random_operations_test: " + wrong;
}

// Every kThreads-th seed from `first` on; stops after a few that fail.
Events RunSeeds(uint64_t first, uint64_t seeds) {
  Events events;
  int failures = 0;
  for (uint64_t seed = first; seed <= seeds && failures < 3; seed += kThreads) {
    const std::string wrong = RunSeed(seed, &events);
    if (wrong.empty()) continue;
    ADD_FAILURE() << wrong;
    ++failures;
  }
  return events;
}

TEST(RandomOperations, GiveTheBitsOfTheOracle) {
  Events events;
  uint64_t only = NumberFromEnvironment("EMBANK_TEST_SEED", 0);
  if (only != 0) {
    EXPECT_EQ(RunSeed(only, &events), "");
    std::fputs(events.Table().c_str(), stdout);
    return;
  }
  RandomRun::ExpectAll(&events);
  uint64_t seeds = kSeedsPerScale * TestScale();
  Mutex mutex;
  OnThreads(kThreads, [&](uint64_t thread) {
    const Events some = RunSeeds(1 + thread, seeds);
    MutexLock lock(&mutex);
    events.Add(some);
  });
  std::printf("%llu seeds met\n%s", static_cast<unsigned long long>(seeds), events.Table().c_str());
  EXPECT_EQ(events.Missing(), "") << "these never happened";
}

}  // namespace
}  // namespace embank::test
