// Random sequences of operations, store against oracle, bit for bit. EMBANK_TEST_SCALE multiplies
// the number of seeds; EMBANK_TEST_SEED replays one of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/bindings/random_plan.h"
#include "tests/bindings/random_run.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/hbm_tier.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/seeds.h"

namespace embank::test::random_operations_test {
namespace {

// AddressSanitizer makes a seed five times slower, ThreadSanitizer twenty times.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSeedsPerScale = 48, kDivisorAtScaleOne = 1;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSeedsPerScale = 48, kDivisorAtScaleOne = 1;
#else
// At a scale of 1, half of them, which takes a minute less; nightly runs have all.
constexpr uint64_t kSeedsPerScale = 500, kDivisorAtScaleOne = 2;
#endif

// Events of stores that evict, compact, checkpoint and are opened again.
constexpr uint64_t kOperationsOnDiskPerSeed = 400;

std::string RunSeed(uint64_t seed, Events* events) {
  return RandomRun(MakePlan(seed), events).Run();
}

// hbm_matrix_test counts pre-images: here it is the scheduler that brings them about.
void ExpectHotEvents(const Events& events, uint64_t seeds) {
  for (const char* name :
       {"rows moved to device memory", "rows moved from device memory", "rows written back",
        "positions answered by device memory", "lookups through device memory",
        "upserts through device memory", "gradients through device memory"}) {
    EXPECT_GT(events.Times(name), 0u) << name;
  }
  if (seeds < 100) return;
  EXPECT_GE(events.Times(kOperationsOnDisk) + events.Times(kOperationsInMemory), 500'000u);
  // A drift is rare: some ten epochs end early in a hundred runs.
  EXPECT_GT(events.Times("epochs that a drift has ended"), 0u);
}

TEST(RandomOperations, GiveTheBitsOfTheOracle) {
  Events events;
  RandomRun::ExpectAll(&events);
  // The second run is for the tier that it adds.
  const uint64_t divisor = TestScale() == 1 ? kDivisorAtScaleOne : 1;
  const uint64_t seeds = kSeedsPerScale * TestScale() / (WithPmem() || WithHbm() ? 4 : divisor);
  const bool are_all = RunSeeds("random_operations_test", seeds, &events, RunSeed);
  std::fputs(events.Table().c_str(), stdout);
  if (!are_all) return;
  const uint64_t on_disk = events.Times(kOperationsOnDisk);
  const uint64_t in_memory = events.Times(kOperationsInMemory);
  std::printf(
      "quantities: %llu seeds, %llu operations with evictions, compaction, checkpoints and "
      "reopening, %llu in memory\n",
      static_cast<unsigned long long>(seeds), static_cast<unsigned long long>(on_disk),
      static_cast<unsigned long long>(in_memory));
  EXPECT_GE(on_disk, kOperationsOnDiskPerSeed * seeds);
  // The other runs have fewer seeds, and are for what their tiers add.
  if (WithPmem()) {
    EXPECT_GT(events.Times("rows demoted"), 0u);
  }
  if (WithHbm()) ExpectHotEvents(events, seeds);
  if (WithPmem() || WithHbm()) return;
  EXPECT_EQ(events.Missing(), "") << "these never happened";
}

}  // namespace
}  // namespace embank::test::random_operations_test
