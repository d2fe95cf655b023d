// Checkpoints, and openings after them, in a world that fails at any one step: a call of the disk,
// an allocation, a crash.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/events.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/trial_begin.h"

namespace embank::test::checkpoint_failures_test {
namespace {

constexpr uint64_t kSeed = 7;
constexpr uint64_t kStepsMax = 3000;  // no call takes so many
Persistence PersistenceOf(uint64_t n) { return kPersistences[n % std::size(kPersistences)]; }

// Every trial begins with a disk with two checkpoints and the files of a third one that failed.
TrialBegin MakeBegin() {
  TrialBegin begin;
  SpillWorld world(kSeed);
  Table* const table = world.Create("t", Optimizer::kNone);
  world.Create("gone", Optimizer::kNone);
  Put(table, KeysFrom(1, 150), 1.0f);
  EXPECT_TRUE(world->checkpoints()->Make(BlobOf("first")).ok());
  LookUp(table, KeysFrom(20, 50));
  Put(table, KeysFrom(100, 100), 2.0f);
  EXPECT_TRUE(Erase(table, KeysFrom(1, 10), {}).ok());
  EXPECT_TRUE(world->checkpoints()->Make(BlobOf("last")).ok());
  begin.last = *ReadAll(world.get());
  Put(table, KeysFrom(1, 200), 9.0f);
  world.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRename ? UnavailableError("no") : OkStatus();
  });
  EXPECT_FALSE(world->checkpoints()->Make(BlobOf("failed")).ok());
  world.disk().SetFaults(nullptr);
  begin.disk = world.TakeDisk();
  return begin;
}

// Every call, every allocation, every change; where a sanitizer makes each slow, one in some.
#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 11;
#else
constexpr uint64_t kStride = 1;
#endif

// With PMem some of the allocations and of the changes: the suite runs without it, too.
uint64_t WideStride() { return WithPmem() ? 7 * kStride : kStride; }

// Wider steps may miss rare cases.
void ExpectAllMet(const Events& events, uint64_t stride = kStride) {
  if (stride > 1) return;
  EXPECT_EQ(events.Missing(), "");
}

// Changes of all kinds, the same each time.
void Change(SpillWorld* world) {
  Table* const table = *(*world)->catalog().Open("t");
  Put(table, KeysFrom(150, 80), 3.0f);
  LookUp(table, KeysFrom(60, 60));
  ASSERT_TRUE(Erase(table, KeysFrom(20, 30), {}).ok());
  ASSERT_TRUE((*world)->DropTable("gone").ok());
  Put(world->Create("new", Optimizer::kNone), KeysFrom(5, 40), 4.0f);
}

StatusOr<Tables> Now(SpillWorld* world) { return ReadAll(world->get()); }

// ---- the disk ----

enum class FaultOf { kDevice, kSpace, kProcess };

struct Fault {
  uint64_t n;  // of the disk's calls; with PMem of those of its files
  bool stays;  // it and all later ones fail
  FaultOf of;

  Status status() const {
    if (of == FaultOf::kSpace) return ResourceExhaustedError("f: no space left (ENOSPC)");
    if (of == FaultOf::kDevice) return UnavailableError("f: input/output error (EIO)");
    return CancelledError("killed");
  }
  std::string name() const {
    return status().ToString() + (stays ? " from " : " at ") + std::to_string(n);
  }
};

// Arms the fault, runs body, and says whether the fault was met.
template <typename Body>
bool WithFault(SimulatedDisk* disk, const Fault& fault, const Body& body) {
  std::atomic<uint64_t> calls{0};
  disk->SetFaults([&calls, fault](const DiskCall& call) {
    const bool counts = !WithPmem() || call.path.starts_with(kPmemPath);
    const uint64_t n = counts ? ++calls : calls.load();
    // A process is killed with all of its files.
    const bool is_one = counts || (fault.of == FaultOf::kProcess && n >= fault.n);
    const bool fails = n == fault.n || (fault.stays && n > fault.n);
    return is_one && fails ? fault.status() : OkStatus();
  });
  body();
  disk->SetFaults(nullptr);
  return calls >= fault.n;
}

// body(fault), which says whether it was met, for the first call, the second, ... until none is.
template <typename Body>
void ForEachDiskFault(const Body& body) {
  for (const FaultOf of : {FaultOf::kDevice, FaultOf::kSpace}) {
    for (const bool stays : {false, true}) {
      bool met = true;
      for (uint64_t n = 1; met; n += kStride) {
        const Fault fault = {n, stays, of};
        SCOPED_TRACE(fault.name());
        ASSERT_NO_FATAL_FAILURE(body(fault, &met));
        ASSERT_LT(n, kStepsMax);
      }
    }
  }
}

// Crashes now: the store that is found is one of those.
void ExpectOneOf(const SimulatedDisk& disk, const std::vector<Tables>& those,
                 Persistence persistence, uint64_t seed, Events* events) {
  SpillWorld again(kSeed, disk.AfterCrash(disk.changes(), persistence, seed));
  ASSERT_NE(again.get(), nullptr);
  const StatusOr<Tables> found = Now(&again);
  ASSERT_TRUE(found.ok()) << found.status();
  size_t which = 0;
  while (which < those.size() && *found != those[which]) ++which;
  ASSERT_LT(which, those.size()) << "no checkpoint is like that";
  if (those.size() > 1) events->Count(which == 0 ? "found the last" : "found one under way");
}

void ExpectOneOf(const SimulatedDisk& disk, const std::vector<Tables>& those, uint64_t seed,
                 Events* events) {
  for (const Persistence persistence : kPersistences) {
    if (those.size() == 1 && persistence != PersistenceOf(seed)) continue;
    ASSERT_NO_FATAL_FAILURE(ExpectOneOf(disk, those, persistence, seed, events));
  }
}

// After a checkpoint that may have failed: rows in memory are whole, and a later checkpoint is
// made, or refused with the status that stopped the log.
void ExpectGoesOn(SpillWorld* world, std::vector<Tables> candidates, const Fault& fault,
                  Events* events) {
  Table* const table = *(*world)->catalog().Open("t");
  ASSERT_NO_FATAL_FAILURE(Put(table, KeysFrom(180, 60), 5.0f));
  const Tables now = *Now(world);
  const auto made = (*world)->checkpoints()->Make({});
  if (made.ok()) candidates.clear();
  if (!made.ok()) {
    EXPECT_FALSE(WithPmem()) << "the SSD works";
    EXPECT_EQ(made.status(), fault.status()) << "the log says why it has stopped";
  }
  candidates.push_back(now);
  events->Count(made.ok() ? "the next one is made" : "the log has stopped");
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world->get(), now));
  ExpectOneOf(world->disk(), candidates, PersistenceOf(fault.n + 2), fault.n, events);
}

TEST(CheckpointFailures, FailuresOfTheDiskLeaveTheLastOneOrTheOneUnderWay) {
  const TrialBegin begin = MakeBegin();
  Events events;
  for (const char* const name :
       {"made all the same", "not made", "the next one is made", "found the last"}) {
    events.Expect(name);
  }
  // The calls of PMem's files come before those of the manifest, and the log of the SSD goes on.
  if (!WithPmem()) {
    events.Expect("found one under way");
    events.Expect("the log has stopped");
  }
  ForEachDiskFault([&](const Fault& fault, bool* met) {
    SpillWorld world(kSeed, begin.Copy());
    ASSERT_NO_FATAL_FAILURE(Change(&world));
    const Tables now = *Now(&world);
    StatusOr<uint32_t> made;
    *met =
        WithFault(&world.disk(), fault, [&] { made = world->checkpoints()->Make(BlobOf("now")); });
    ASSERT_TRUE(*met || made.ok()) << made.status();
    if (!made.ok()) {
      ASSERT_EQ(made.status(), fault.status());
    }
    if (*met) events.Count(made.ok() ? "made all the same" : "not made");
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
    std::vector<Tables> candidates;
    if (!made.ok()) candidates.push_back(begin.last);
    candidates.push_back(now);
    ASSERT_NO_FATAL_FAILURE(ExpectOneOf(world.disk(), candidates, fault.n, &events));
    ASSERT_NO_FATAL_FAILURE(ExpectGoesOn(&world, candidates, fault, &events));
  });
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events);
}

TEST(CheckpointFailures, FailuresOfTheDiskAtOpeningChangeNothing) {
  const TrialBegin begin = MakeBegin();
  Events events;
  events.Expect("not opened");
  events.Expect("opened all the same");
  ForEachDiskFault([&](const Fault& fault, bool* met) {
    SpillWorld world(kSeed);
    world.SetDisk(begin.Copy());
    Status opened;
    *met = WithFault(&world.disk(), fault, [&] { opened = world.Open(); });
    ASSERT_TRUE(*met || opened.ok()) << opened;
    if (!opened.ok()) {
      ASSERT_EQ(opened.code(), fault.status().code()) << opened;
    }
    if (*met) events.Count(opened.ok() ? "opened all the same" : "not opened");
    ASSERT_TRUE(world.Open().ok());
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), begin.last));
    ASSERT_NO_FATAL_FAILURE(Change(&world));
    const Tables now = *Now(&world);
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ASSERT_NO_FATAL_FAILURE(ExpectOneOf(world.disk(), {now}, fault.n, &events));
  });
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events);
}

// The directory, the lock and the first manifest come to be.
TEST(CheckpointFailures, AFailedFirstOpeningLeavesADirectoryForAStore) {
  Events events;
  events.Expect("not opened");
  ForEachDiskFault([&](const Fault& fault, bool* met) {
    SpillWorld world(kSeed);
    world.SetPath("other");
    Status opened;
    *met = WithFault(&world.disk(), fault, [&] { opened = world.Open(); });
    ASSERT_TRUE(*met || opened.ok()) << opened;
    if (!opened.ok()) events.Count("not opened");
    opened = world.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    // If nothing works any more, a half-made checkpoint cannot be undone either.
    if (fault.stays) return;
    const auto expect_after_crash = [&](const Tables& expected, Persistence persistence) {
      const size_t changes = world.disk().changes();
      SpillWorld again(kSeed, world.disk().AfterCrash(changes, persistence, fault.n));
      again.SetPath("other");
      const Status found = again.Open();
      ASSERT_TRUE(found.ok()) << found;
      ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), expected));
    };
    // More than fits into memory: the log has segments.
    Table* const table = world.Create("t", Optimizer::kNone);
    for (Key first = 1; first < 3000; first += 500) Put(table, KeysFrom(first, 500), 1.0f);
    for (const Persistence persistence : kPersistences) {
      ASSERT_NO_FATAL_FAILURE(expect_after_crash({}, persistence));
    }
    const Tables now = *Now(&world);
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ASSERT_NO_FATAL_FAILURE(expect_after_crash(now, PersistenceOf(fault.n)));
  });
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events);
}

// A killed process leaves names that no sync has made durable: those that the next process has seen
// must stay.
TEST(CheckpointFailures, AKilledProcessLeavesForGoodWhatTheNextOneFinds) {
  const TrialBegin begin = MakeBegin();
  Events events;
  events.Expect("found the last");
  events.Expect("found one under way");
  bool met = true;
  for (uint64_t n = 1; met; n += kStride) {
    SCOPED_TRACE(n);
    SpillWorld world(kSeed, begin.Copy());
    ASSERT_NO_FATAL_FAILURE(Change(&world));
    const Tables now = *Now(&world);
    met = WithFault(&world.disk(), {n, true, FaultOf::kProcess}, [&] {
      world->checkpoints()->Make({}).status().IgnoreError();
      world.Close();
    });
    ASSERT_TRUE(world.Open().ok());
    const Tables found = *Now(&world);
    ASSERT_TRUE(found == begin.last || found == now);
    events.Count(found == now ? "found one under way" : "found the last");
    for (const Persistence persistence : kPersistences) {
      ASSERT_NO_FATAL_FAILURE(ExpectOneOf(world.disk(), {found}, persistence, n, &events));
    }
  }
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events);
}

// Its manifest may exist although no call has said so: its files are not used again.
TEST(CheckpointFailures, OneThatMayBeThereKeepsItsSegments) {
  SpillWorld world(kSeed);
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(1, 400), 1.0f);
  const Tables first = *Now(&world);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  Put(table, KeysFrom(1, 400), 2.0f);
  const Tables in_doubt = *Now(&world);
  world.disk().SetFaults([renamed = false](const DiskCall& call) mutable {
    renamed = renamed || call.kind == DiskCall::Kind::kRename;
    const bool fails = renamed && call.kind == DiskCall::Kind::kSyncDirectory;
    return fails ? UnavailableError("no answer") : OkStatus();
  });
  ASSERT_TRUE(IsUnavailable(world->checkpoints()->Make({}).status()));
  // All its rows die, and there is need of space.
  for (const float factor : {3.0f, 4.0f, 5.0f}) {
    Put(table, KeysFrom(1, 400), factor);
    for (Key key = 1000; key < 3400; key += 400) Put(table, KeysFrom(key, 400), factor);
  }
  Events events;
  events.Expect("found the last");
  events.Expect("found one under way");
  for (uint64_t seed = 0; seed < 5; ++seed)
    ExpectOneOf(world.disk(), {first, in_doubt}, seed, &events);
  ExpectAllMet(events);
}

// A sync of the directory that failed may have dropped the name of a segment that was made between
// the log's own sync and that one: no later checkpoint may rely on it.
TEST(CheckpointFailures, AFailedSyncOfTheManifestIsNotMadeUpForByLaterOnes) {
  SpillWorld world(kSeed);
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(1, 100), 1.0f);
  std::vector<Tables> candidates = {*Now(&world)};
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  Put(table, KeysFrom(50, 100), 2.0f);
  candidates.push_back(*Now(&world));
  bool renames = false;
  world.disk().SetRenameHook([&] {
    renames = true;
    // More than memory has space for: the log gets segments.
    for (Key first = 1000; first < 4000; first += 500) Put(table, KeysFrom(first, 500), 3.0f);
  });
  world.disk().SetFaults([&renames](const DiskCall& call) {
    const bool fails = renames && call.kind == DiskCall::Kind::kSyncDirectory;
    return fails ? UnavailableError("no answer") : OkStatus();
  });
  const auto made = world->checkpoints()->Make({});
  world.disk().SetFaults(nullptr);
  world.disk().SetRenameHook(nullptr);
  ASSERT_TRUE(IsUnavailable(made.status())) << made.status();
  const Tables now = *Now(&world);
  const auto next = world->checkpoints()->Make({});
  if (next.ok()) candidates = {now};
  Events events;
  for (const Persistence persistence : kPersistences) {
    ExpectOneOf(world.disk(), candidates, persistence, 1, &events);
  }
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
  // The next opening can continue.
  ASSERT_TRUE(world.Open().ok());
  Put(*world->catalog().Open("t"), KeysFrom(1, 30), 5.0f);
  const Tables later = *Now(&world);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ExpectOneOf(world.disk(), {later}, Persistence::kNone, 1, &events);
}

// ---- memory ----

// Like the C API: no exception leaves.
template <typename Body>
Status Guarded(const Body& body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    const Unfaulted own;
    return ResourceExhaustedError("no memory");
  }
}

// body(kind, n, &met) for the first allocation, the second, ... until none is left to fail.
template <typename Body>
void ForEachAllocation(const Body& body) {
  for (const FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
    bool met = true;
    for (uint64_t n = 1; met; n += WideStride()) {
      SCOPED_TRACE("allocation " + std::to_string(n) + (kind == FaultKind::kOnce ? "" : " on"));
      ASSERT_NO_FATAL_FAILURE(body(kind, n, &met));
      ASSERT_LT(n, kStepsMax);
    }
  }
}

TEST(CheckpointFailures, FailedAllocationsAreReportedAndTheNextOneIsMade) {
  const TrialBegin begin = MakeBegin();
  Events events;
  for (const char* const name : {"made all the same", "not made", "found the last"}) {
    events.Expect(name);
  }
  ForEachAllocation([&](FaultKind kind, uint64_t n, bool* met) {
    SpillWorld world(kSeed, begin.Copy());
    world.memory().AskFirst(&AllocationFaults::MustFail);
    ASSERT_NO_FATAL_FAILURE(Change(&world));
    const Tables now = *Now(&world);
    StatusOr<uint32_t> made;
    {
      const AllocationFaults faults(n, kind);
      made = world->checkpoints()->Make(BlobOf("now"));
      *met = AllocationFaults::Failed() > 0;
    }
    if (!made.ok()) {
      ASSERT_TRUE(IsResourceExhausted(made.status())) << made.status();
    }
    ASSERT_TRUE(*met || made.ok()) << made.status();
    if (*met) events.Count(made.ok() ? "made all the same" : "not made");
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
    std::vector<Tables> candidates;
    if (!made.ok()) candidates.push_back(begin.last);
    candidates.push_back(now);
    ASSERT_NO_FATAL_FAILURE(ExpectOneOf(world.disk(), candidates, PersistenceOf(n), n, &events));
    Put(*world->catalog().Open("t"), KeysFrom(180, 60), 5.0f);
    const Tables then = *Now(&world);
    const auto next = world->checkpoints()->Make({});
    ASSERT_TRUE(next.ok()) << next.status();
    ASSERT_NO_FATAL_FAILURE(ExpectOneOf(world.disk(), {then}, n + 2, &events));
  });
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events, WideStride());
}

TEST(CheckpointFailures, FailedAllocationsAtOpeningChangeNothing) {
  const TrialBegin begin = MakeBegin();
  Events events;
  events.Expect("not opened");
  SpillWorld world(kSeed, begin.Copy());
  world.memory().AskFirst(&AllocationFaults::MustFail);
  ForEachAllocation([&](FaultKind kind, uint64_t n, bool* met) {
    world.Close();
    Status opened;
    {
      const AllocationFaults faults(n, kind);
      opened = Guarded([&] { return world.Open(); });
      *met = AllocationFaults::Failed() > 0;
    }
    if (!opened.ok()) {
      ASSERT_TRUE(IsResourceExhausted(opened)) << opened;
      events.Count("not opened");
    }
    ASSERT_TRUE(*met || opened.ok()) << opened;
    ASSERT_EQ(world.memory().outstanding() == 0, !opened.ok());
    if (n % 16 != 0 && !opened.ok()) return;
    ASSERT_TRUE(world.Open().ok());
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), begin.last));
  });
  EXPECT_EQ(world.memory().misuses(), 0u);
  ASSERT_NO_FATAL_FAILURE(Change(&world));
  const Tables now = *Now(&world);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectOneOf(world.disk(), {now}, 1, &events));
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events, WideStride());
}

// ---- crashes after crashes ----

// An opening changes the disk, too. A crash in it, or in the first checkpoint after it, leaves the
// former contents.
TEST(CheckpointFailures, ACrashWhileAStoreRecoversLeavesItsCheckpoint) {
  const TrialBegin begin = MakeBegin();
  // Orphans of all kinds: of a crash in the midst of a checkpoint.
  SpillWorld world(kSeed, begin.Copy());
  ASSERT_NO_FATAL_FAILURE(Change(&world));
  const Tables under_way = *Now(&world);
  const size_t from = world.disk().changes();
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const std::unique_ptr<SimulatedDisk> disk = world.TakeDisk();
  Random random(3);
  Events events;
  events.Expect("found the last");
  events.Expect("found one under way");
  events.Expect("crashes while it was opened");
  for (size_t change = from; change <= disk->changes(); change += WideStride()) {
    const Persistence persistence = kPersistences[random.Below(std::size(kPersistences))];
    SpillWorld opened(kSeed, disk->AfterCrash(change, persistence, random.Bits()));
    const Tables found = *Now(&opened);
    ASSERT_TRUE(found == begin.last || found == under_way);
    const size_t after_opening = opened.disk().changes();
    Put(*opened->catalog().Open("t"), KeysFrom(500, 70), 6.0f);
    const Tables next = *Now(&opened);
    ASSERT_TRUE(opened->checkpoints()->Make({}).ok());
    for (size_t second = 0; second <= opened.disk().changes(); second += 2 * WideStride() + 1) {
      const Persistence p = kPersistences[random.Below(std::size(kPersistences))];
      SpillWorld again(kSeed, opened.disk().AfterCrash(second, p, random.Bits()));
      ASSERT_NE(again.get(), nullptr);
      const Tables left = *Now(&again);
      const bool may_be_next = second > after_opening;
      ASSERT_TRUE(left == found || (may_be_next && left == next)) << change << ", " << second;
      if (second < after_opening) events.Count("crashes while it was opened");
      events.Count(left == found ? "found the last" : "found one under way");
    }
  }
  std::fputs(events.Table().c_str(), stdout);
  ExpectAllMet(events, WideStride());
}

}  // namespace
}  // namespace embank::test::checkpoint_failures_test
