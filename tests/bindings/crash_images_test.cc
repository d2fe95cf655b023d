// Workloads drawn by seed, crashed before every change that they make to the disk, ten images of
// each crash. The store that is opened then is the last checkpoint or the one under way, bit for
// bit, also when that opening is crashed again. EMBANK_TEST_SCALE: more workloads; EMBANK_TEST_SEED
// replays one of them.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "tests/bindings/crash_images.h"
#include "tests/bindings/random_plan.h"
#include "tests/bindings/random_run.h"
#include "tests/support/environment.h"
#include "tests/support/events.h"
#include "tests/support/hbm_tier.h"
#include "tests/support/pmem_tier.h"
#include "tests/support/seeds.h"

namespace embank::test::crash_images_test {
namespace {

// Every change; where a sanitizer makes each crash slow, one in some.
#if defined(__SANITIZE_ADDRESS__)
constexpr size_t kStride = 7;
#else
constexpr size_t kStride = 1;
#endif

constexpr uint64_t kWorkloadsPerTenScales = 24;
constexpr uint64_t kImagesPerScale = 2000;

// The second run is for the tier that it adds.
size_t Stride() { return kStride * (WithPmem() || WithHbm() ? 2 : 1); }

std::string RunSeed(uint64_t seed, Events* events) {
  RandomRun run(MakeCrashPlan(seed), events);
  std::string wrong = run.Run();
  if (!wrong.empty()) return wrong;
  const CrashedWorkload workload = run.TakeWorkload();
  return CrashImages(workload, events).Try(Stride());
}

TEST(CrashImages, AreTheLastCheckpointOrTheOneUnderWayBitForBit) {
  Events events;
  CrashImages::ExpectAll(&events);
  for (const char* const name :
       {"upsert found", "lookup created", "gradients found", "tables dropped", "checkpoints",
        "checkpoints started", "segments given up"}) {
    events.Expect(name);
  }
  // Stores with device memory have more DRAM, and few workloads.
  for (const char* const name : {"erase found", "rows in the log", "rows moved by compaction"}) {
    if (!WithHbm()) events.Expect(name);
  }
  for (const char* const name : {"rows moved to device memory", "rows moved from device memory"}) {
    if (WithHbm()) events.Expect(name);
  }
  for (const char* const name : {"rows written to PMem", "rows demoted"}) {
    if (WithPmem()) events.Expect(name);
  }
  const uint64_t workloads = (kWorkloadsPerTenScales * TestScale() + 9) / 10;
  const bool are_all = RunSeeds("crash_images_test", workloads, &events, RunSeed);
  // Few workloads may lack what is rare; then some more of them follow.
  constexpr uint64_t kMoreMax = 12;
  for (uint64_t i = 0; are_all && kStride == 1 && i < kMoreMax && !events.Missing().empty(); ++i) {
    const uint64_t seed = FirstSeed() + workloads + i;
    EXPECT_EQ(RunSeed(seed, &events), "")
        << "replay with EMBANK_TEST_SEED=" << seed << " ctest -R '^crash_images_test$'";
  }
  std::fputs(events.Table().c_str(), stdout);
  if (!are_all) return;
  const uint64_t images = events.Times(kCrashImages);
  std::printf("quantities: %llu crash images of %llu workloads, %llu recoveries crashed again\n",
              static_cast<unsigned long long>(images), static_cast<unsigned long long>(workloads),
              static_cast<unsigned long long>(events.Times(kRecoveriesCrashed)));
  EXPECT_GE(images, kImagesPerScale * TestScale() / Stride());
  if (kStride > 1) return;  // which may miss what is rare
  EXPECT_EQ(events.Missing(), "") << "these never happened";
}

}  // namespace
}  // namespace embank::test::crash_images_test
