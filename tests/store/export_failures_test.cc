// Exports in a world that fails at any one step: a call of the disk, an allocation, a crash. The
// source has its checkpoint; the target is it, whole, or no store.
#include <gtest/gtest.h>

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "store/checkpoint/export.h"
#include "store/store.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/events.h"
#include "tests/support/export_world.h"
#include "tests/support/trial_begin.h"

namespace embank::test::export_failures_test {
namespace {

constexpr uint64_t kStepsMax = 3000;  // no export takes so many
// Every call, every allocation, every change; where a sanitizer makes each slow, one in some.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 11;
#else
constexpr uint64_t kStride = 1;
#endif

// With PMem one in some: the suite runs without it, too.
uint64_t Stride() { return WithPmem() ? 9 * kStride : kStride; }

// Wider steps may miss rare cases.
void ExpectAllMet(const Events& events) {
  std::fputs(events.Table().c_str(), stdout);
  if (Stride() > 1) return;
  EXPECT_EQ(events.Missing(), "");
}

// Every trial begins with a disk with a checkpoint.
TrialBegin MakeBegin() {
  TrialBegin begin;
  SpillWorld world(kExportSeed);
  MakeLast(&world);
  begin.last = *ReadAll(world.get());
  begin.disk = world.TakeDisk();
  return begin;
}

// Whether the target is the checkpoint; else that it is not taken for a store, nor for nothing when
// it has something.
void ExpectWholeOrNone(SpillWorld* world, const Tables& last, bool* whole, Events* events) {
  const auto store = OpenAt(world, "copy");
  *whole = store.ok();
  if (store.ok()) {
    events->Count("found whole");
    ASSERT_NO_FATAL_FAILURE(ExpectIs(store->get(), last));
    return;
  }
  ASSERT_TRUE(IsNotFound(store.status()) || IsDataLoss(store.status())) << store.status();
  events->Count(IsNotFound(store.status()) ? "not a store" : "segments without a manifest");
  if (FilesWith(world->disk(), "copy/segment-").empty()) return;
  const auto made = OpenAt(world, "copy", true);
  ASSERT_TRUE(IsDataLoss(made.status())) << made.status();
  ASSERT_TRUE(IsAlreadyExists((*world)->checkpoints()->Export("copy", GoOn)));
}

class ExportFailures : public testing::TestWithParam<bool> {
 protected:
  // The fault of a call, or that of links.
  static Status Always(const DiskCall& call) { return GetParam() ? NoLinks(call) : OkStatus(); }
};

INSTANTIATE_TEST_SUITE_P(, ExportFailures, testing::Bool(),
                         [](const auto& copies) { return copies.param ? "OfCopies" : "OfLinks"; });

TEST_P(ExportFailures, ACrashLeavesTheCheckpointOrNoStore) {
  const TrialBegin begin = MakeBegin();
  SpillWorld world(kExportSeed, begin.Copy());
  world.disk().SetFaults(Always);
  const size_t from = world.disk().changes();
  ASSERT_TRUE(world->checkpoints()->Export("copy", GoOn).ok());
  Events events;
  for (const char* const name : {"found whole", "not a store", "segments without a manifest"}) {
    events.Expect(name);
  }
  const size_t to = world.disk().changes();
  const std::unique_ptr<SimulatedDisk> disk = world.TakeDisk();
  for (size_t change = from; change <= to;
       change += change == to ? 1 : std::min(Stride(), to - change)) {
    for (const Persistence persistence : kPersistences) {
      SCOPED_TRACE(change);
      SpillWorld again(kExportSeed, disk->AfterCrash(change, persistence, change));
      ASSERT_NE(again.get(), nullptr);
      ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), begin.last));
      bool whole = false;
      ASSERT_NO_FATAL_FAILURE(ExpectWholeOrNone(&again, begin.last, &whole, &events));
      ASSERT_TRUE(whole || change < to) << "what returned OK is there";
      ASSERT_TRUE(again->checkpoints()->Export("second", GoOn).ok());
    }
  }
  ExpectAllMet(events);
}

struct Fault {
  Status status;
  bool stays;  // it and all later ones fail
};

// The images of a crash behind an export that has ended so.
void ExpectAfterCrash(const TrialBegin& begin, const Status& exported, const SimulatedDisk& disk,
                      Persistence persistence, uint64_t seed, Events* events) {
  // A manifest that is in doubt may be there or not: more is drawn.
  const bool in_doubt = !exported.ok() && !FilesWith(disk, "copy/MANIFEST").empty();
  for (uint64_t draw = 0; draw < (in_doubt ? 8u : 1u); ++draw) {
    SpillWorld again(kExportSeed, disk.AfterCrash(disk.changes(), persistence, seed + draw));
    ASSERT_NE(again.get(), nullptr);
    ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), begin.last));
    bool whole = false;
    Events of_crash;
    ASSERT_NO_FATAL_FAILURE(ExpectWholeOrNone(&again, begin.last, &whole, &of_crash));
    ASSERT_TRUE(whole || !exported.ok());
    if (whole && !exported.ok()) events->Count("crashed: found whole");
  }
}

const Fault kFaults[] = {
    {UnavailableError("f: input/output error (EIO)"), false},
    {UnavailableError("f: input/output error (EIO)"), true},
    {ResourceExhaustedError("f: no space left (ENOSPC)"), false},
    {ResourceExhaustedError("f: no space left (ENOSPC)"), true},
};

TEST_P(ExportFailures, FailuresOfTheDiskAreReportedAndTheSourceGoesOn) {
  const TrialBegin begin = MakeBegin();
  Events events;
  for (const char* const name :
       {"found whole", "not a store", "segments without a manifest", "made all the same",
        "not made", "made at the second try", "not removed", "crashed: found whole"}) {
    events.Expect(name);
  }
  for (const Fault& fault : kFaults) {
    bool met = true;
    for (uint64_t n = 1; met; n += Stride()) {
      SCOPED_TRACE(fault.status.ToString() + (fault.stays ? " from " : " at ") + std::to_string(n));
      ASSERT_LT(n, kStepsMax);
      SpillWorld world(kExportSeed, begin.Copy());
      const uint64_t first = world.disk().calls() + n;
      world.disk().SetFaults([&fault, first](const DiskCall& call) {
        // Records that the source writes meanwhile are not in the export.
        const bool is_source =
            call.kind == DiskCall::Kind::kWrite && !call.path.starts_with("copy/");
        const bool fails = call.number == first || (fault.stays && call.number > first);
        return fails && !is_source ? fault.status : Always(call);
      });
      const Status exported = world->checkpoints()->Export("copy", GoOn);
      met = world.disk().calls() >= first;
      world.disk().SetFaults(Always);
      ASSERT_TRUE(met || exported.ok()) << exported;
      if (!exported.ok()) {
        ASSERT_EQ(exported.code(), fault.status.code()) << exported;
      }
      if (met) events.Count(exported.ok() ? "made all the same" : "not made");
      const bool is_left = !fault.stays && !FilesWith(world.disk(), "copy/segment-").empty();
      for (const Persistence persistence : kPersistences) {
        // A crash now; of one kind where nothing is left, or nothing could be removed.
        if (!is_left && persistence != kPersistences[n % std::size(kPersistences)]) continue;
        ASSERT_NO_FATAL_FAILURE(
            ExpectAfterCrash(begin, exported, world.disk(), persistence, n, &events));
      }
      bool whole = false;
      ASSERT_NO_FATAL_FAILURE(ExpectWholeOrNone(&world, begin.last, &whole, &events));
      ASSERT_TRUE(whole || !exported.ok());
      if (!exported.ok()) {
        const Status second = world->checkpoints()->Export("copy", GoOn);
        ASSERT_TRUE(second.ok() || IsAlreadyExists(second)) << second;
        events.Count(second.ok() ? "made at the second try" : "not removed");
      }
      // The source goes on.
      ASSERT_NO_FATAL_FAILURE(Put(*world->catalog().Open("t"), KeysFrom(180, 60), 5.0f));
      const Tables now = *ReadAll(world.get());
      ASSERT_TRUE(world->checkpoints()->Make({}).ok());
      ASSERT_TRUE(world.Open().ok());
      ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
    }
  }
  ExpectAllMet(events);
}

TEST_P(ExportFailures, FailedAllocationsAreReportedAndTheSourceGoesOn) {
  const TrialBegin begin = MakeBegin();
  Events events;
  for (const char* const name : {"found whole", "not a store", "made all the same", "not made"}) {
    events.Expect(name);
  }
  for (const FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
    bool met = true;
    for (uint64_t n = 1; met; n += Stride()) {
      SCOPED_TRACE("allocation " + std::to_string(n) + (kind == FaultKind::kOnce ? "" : " on"));
      ASSERT_LT(n, kStepsMax);
      SpillWorld world(kExportSeed, begin.Copy());
      world.memory().AskFirst(&AllocationFaults::MustFail);
      world.disk().SetFaults(Always);
      Status exported;
      {
        const AllocationFaults faults(n, kind);
        exported = world->checkpoints()->Export("copy", GoOn);
        met = AllocationFaults::Failed() > 0;
      }
      ASSERT_TRUE(met || exported.ok()) << exported;
      if (!exported.ok()) {
        ASSERT_TRUE(IsResourceExhausted(exported)) << exported;
      }
      if (met) events.Count(exported.ok() ? "made all the same" : "not made");
      bool whole = false;
      ASSERT_NO_FATAL_FAILURE(ExpectWholeOrNone(&world, begin.last, &whole, &events));
      ASSERT_TRUE(whole || !exported.ok());
      ASSERT_NO_FATAL_FAILURE(Put(*world->catalog().Open("t"), KeysFrom(180, 60), 5.0f));
      ASSERT_TRUE(world->checkpoints()->Make({}).ok());
      ASSERT_TRUE(world->checkpoints()->Export("second", GoOn).ok());
    }
  }
  ExpectAllMet(events);
}

}  // namespace
}  // namespace embank::test::export_failures_test
