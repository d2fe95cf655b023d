// Checkpoints that are started, left to a thread of the store, and finished later: what they have,
// what a crash or a failure leaves, and what other calls do meanwhile.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/events.h"
#include "tests/support/latch_executor.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/threads.h"
#include "tests/support/trial_begin.h"
#include "tests/support/warnings.h"

namespace embank::test::started_checkpoints_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr uint64_t kSeed = 5;
constexpr Key kKeys = 2600;           // a quarter of them does not fit into memory
constexpr uint64_t kStepsMax = 3000;  // no call takes so many

// Every change, call and allocation; where a sanitizer makes each slow, one in some.
#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kStride = 149;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStride = 13;
#else
constexpr uint64_t kStride = 1;
#endif

void PutAll(Table* table, float factor) {
  for (Key first = 1; first < kKeys; first += 200) Put(table, KeysFrom(first, 200), factor);
}

class StartedCheckpointTest : public testing::Test {
 protected:
  StartedCheckpointTest()
      : world_(kSeed, std::make_unique<LatchExecutor>(&latch_)),
        table_(world_.Create("t", Optimizer::kNone)) {
    PutAll(table_, 1.0f);
  }
  // The thread of a checkpoint must not wait for ever when a test has failed.
  void TearDown() override {
    latch_.is_open = true;
    EXPECT_FALSE(latch_.has_given_up) << "nobody hurried the flush pass";
  }

  StartedCheckpoint& started() { return *world_->started_checkpoint(); }
  Status Start(const char* blob = "started") {
    return started().Start(std::as_bytes(std::span(blob, std::string(blob).size())));
  }
  Tables Now() { return *ReadAll(world_.get()); }
  // Stops the machine now; the next opening finds these contents.
  void ExpectAfterCrash(const Tables& expected, const std::string& blob, bool previous = false) {
    SpillWorld again(kSeed,
                     world_.disk().AfterCrash(world_.disk().changes(), Persistence::kNone, 1));
    if (previous) {
      ASSERT_TRUE(again.Open(true).ok());
    }
    ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), expected));
    const auto found = again->checkpoints()->Blob();
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(std::string(reinterpret_cast<const char*>(found->data()), found->size()), blob);
  }

  Latch latch_;
  SpillWorld world_;
  Table* table_;
};

TEST_F(StartedCheckpointTest, HasWhatWasChangedBeforeItsStartAndNothingElse) {
  Tables previous;
  for (int round = 0; round < 3; ++round) {
    Put(table_, KeysFrom(1 + 300 * static_cast<Key>(round), 400), 7.0f + static_cast<float>(round));
    const Tables at_start = Now();
    latch_.is_open = false;
    ASSERT_TRUE(Start().ok());
    PutAll(table_, 2.0f + static_cast<float>(round));
    ASSERT_TRUE(Erase(table_, KeysFrom(50, 900), {}).ok());
    Put(table_, KeysFrom(5000, 100), 3.0f);
    LookUp(table_, KeysFrom(1, 400));
    const Tables now = Now();
    latch_.is_open = true;
    const auto made = started().Finish();
    ASSERT_TRUE(made.ok()) << made.status();
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), now));
    ASSERT_NO_FATAL_FAILURE(ExpectAfterCrash(at_start, "started"));
    if (round > 0) {
      ASSERT_NO_FATAL_FAILURE(ExpectAfterCrash(previous, "started", true));
    }
    previous = at_start;
  }
}

// The checkpoint comes to its barrier late: a call that returned earlier would be found out.
TEST_F(StartedCheckpointTest, HasNoRowThatIsWrittenOnceItsStartHasReturned) {
  const Tables at_start = Now();
  Mutex mutex;
  ConditionVariable has_written;
  bool is_written = false;
  world_.disk().SetFaults([&](const DiskCall& call) {
    MutexLock lock(&mutex);
    // It asks for the lock first of all.
    if (call.kind == DiskCall::Kind::kLockInPlace && !is_written) {
      has_written.WaitFor(&mutex, 300'000'000);
    }
    return OkStatus();
  });
  ASSERT_TRUE(Start().ok());
  Put(table_, KeysFrom(2500, 20), 9.0f);  // in memory: needs no disk
  {
    MutexLock lock(&mutex);
    is_written = true;
  }
  has_written.NotifyAll();
  const auto made = started().Finish();
  world_.disk().SetFaults(nullptr);
  ASSERT_TRUE(made.ok()) << made.status();
  ExpectAfterCrash(at_start, "started");
}

// Each batch writes one number to all its keys.
TEST_F(StartedCheckpointTest, HasBatchesOfOtherThreadsWhollyOrNotAtAll) {
  constexpr uint64_t kThreads = 3;
  constexpr Key kEach = 64;
  std::atomic<bool> over{false};
  std::vector<std::atomic<uint64_t>> returned(kThreads);
  std::vector<std::atomic<uint64_t>> begun(kThreads);
  std::vector<std::thread> writers;
  for (uint64_t t = 0; t < kThreads; ++t) {
    writers.emplace_back([&, t] {
      const std::vector<Key> keys = KeysFrom(10'000 + t * kEach, kEach);
      std::vector<float> rows(kEach * kDim);
      for (uint64_t step = 1; !over; ++step) {
        begun[t] = step;
        std::fill(rows.begin(), rows.end(), static_cast<float>(step));
        EXPECT_TRUE(Upsert(table_, keys, RowsOf(rows, kDim), {}).ok());
        returned[t] = step;
      }
    });
  }
  for (int round = 0; round < 4; ++round) {
    std::vector<uint64_t> least;
    std::vector<uint64_t> most;
    for (const auto& step : returned) least.push_back(step);
    const Status start = Start();
    for (const auto& step : begun) most.push_back(step);
    EXPECT_TRUE(start.ok()) << start;
    for (uint64_t t = 0; t < kThreads; ++t) {
      while (returned[t] < most[t] + 3) std::this_thread::yield();
    }
    const auto made = started().Finish();
    EXPECT_TRUE(made.ok()) << made.status();
    SpillWorld again(kSeed,
                     world_.disk().AfterCrash(world_.disk().changes(), Persistence::kNone, 1));
    const Rows found = ReadAll(again.get())->at("t");
    for (uint64_t t = 0; t < kThreads; ++t) {
      const auto first = found.find(10'000 + t * kEach);
      if (first == found.end()) {
        EXPECT_EQ(least[t], 0u);
        continue;
      }
      EXPECT_GE(first->second, static_cast<float>(least[t]));
      EXPECT_LE(first->second, static_cast<float>(most[t]));
      for (Key key = 10'000 + t * kEach; key < 10'000 + (t + 1) * kEach; ++key) {
        EXPECT_EQ(found.at(key), first->second) << "a batch is in it in part";
      }
    }
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
}

// ---- crashes ----

TEST_F(StartedCheckpointTest, IsThereAfterACrashOrTheOneBeforeItIs) {
  ASSERT_TRUE(world_->checkpoints()->Make(BlobOf("before")).ok());
  const Tables before = Now();
  Put(table_, KeysFrom(700, 900), 4.0f);
  const Tables at_start = Now();
  world_.disk().ClearHistory();
  latch_.is_open = false;
  ASSERT_TRUE(Start().ok());
  for (Key first = 1; first < kKeys; first += 400) Put(table_, KeysFrom(first, 150), 6.0f);
  latch_.is_open = true;
  for (Key first = 100; first < kKeys; first += 400) Put(table_, KeysFrom(first, 150), 8.0f);
  ASSERT_TRUE(started().Finish().ok());
  const size_t end = world_.disk().changes();
  Put(table_, KeysFrom(1, 1500), 5.0f);
  Events events;
  for (const char* const name : {"found the one before", "found the started one"}) {
    events.Expect(name);
  }
  Random random(kSeed);
  // With wider strides no crash comes while the checkpoint is under way.
  constexpr uint64_t kStrideMax = 37;
  size_t stride = std::max<size_t>(std::min<uint64_t>(kStride, kStrideMax), end / 150);
  for (size_t change = 0; change <= world_.disk().changes(); change += stride) {
    SCOPED_TRACE(change);
    const Persistence persistence = kPersistences[random.Below(std::size(kPersistences))];
    SpillWorld again(kSeed, world_.disk().AfterCrash(change, persistence, random.Bits()));
    ASSERT_NE(again.get(), nullptr);
    const StatusOr<Tables> found = ReadAll(again.get());
    ASSERT_TRUE(found.ok()) << found.status();
    ASSERT_TRUE(*found == at_start || (change < end && *found == before));
    events.Count(*found == at_start ? "found the started one" : "found the one before");
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

TEST_F(StartedCheckpointTest, IsThereWhenItsStoreIsClosedWithoutFinish) {
  const Tables at_start = Now();
  latch_.is_open = false;
  ASSERT_TRUE(Start("closed").ok());
  PutAll(table_, 2.0f);
  std::thread opener([&] {
    while (latch_.knocks == 0) std::this_thread::yield();
    latch_.is_open = true;
  });
  world_.Close();
  opener.join();
  ASSERT_TRUE(world_.Open().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), at_start));
  EXPECT_EQ(world_->checkpoints()->Blob()->size(), 6u);
}

// ---- failures ----

// Fails every sync of a file from now on.
void FailSyncs(SimulatedDisk* disk) {
  disk->SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kSync ? UnavailableError("no sync") : OkStatus();
  });
}

// Fails every rename, as that of a manifest, from now on.
void FailRenames(SimulatedDisk* disk) {
  disk->SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRename ? UnavailableError("no rename") : OkStatus();
  });
}

TEST_F(StartedCheckpointTest, TellsItsFailureAtFinishAndTheNextOneIsMade) {
  ASSERT_TRUE(world_->checkpoints()->Make(BlobOf("before")).ok());
  const Tables before = Now();
  Put(table_, KeysFrom(1, 200), 4.0f);
  FailRenames(&world_.disk());
  ASSERT_TRUE(Start().ok()) << "its barrier needs no rename";
  const auto failed = started().Finish();
  EXPECT_TRUE(IsUnavailable(failed.status())) << failed.status();
  EXPECT_THAT(failed.status().ToString(), HasSubstr("no rename"));
  world_.disk().SetFaults(nullptr);
  ASSERT_NO_FATAL_FAILURE(ExpectAfterCrash(before, "before"));
  Put(table_, KeysFrom(300, 50), 6.0f);
  const Tables now = Now();
  ASSERT_TRUE(Start("again").ok());
  ASSERT_TRUE(started().Finish().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world_.get(), now));
  ExpectAfterCrash(now, "again");
}

TEST_F(StartedCheckpointTest, TellsTheLogOfItsFailureWhenItIsNotFinished) {
  const Warnings warnings;
  FailSyncs(&world_.disk());
  ASSERT_TRUE(Start().ok());
  world_.Close();
  const std::vector<std::string> lines = warnings.lines();
  ASSERT_FALSE(lines.empty());
  EXPECT_THAT(lines.back(), testing::AllOf(HasSubstr("nobody has finished"), HasSubstr("no sync")));
}

TEST_F(StartedCheckpointTest, IsNotStartedWhereItsBarrierCannotBeMade) {
  world_.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kLockInPlace ? UnavailableError("no look") : OkStatus();
  });
  EXPECT_TRUE(IsUnavailable(Start()));
  world_.disk().SetFaults(nullptr);
  EXPECT_TRUE(IsFailedPrecondition(started().Finish().status())) << "nothing is started";
  const std::vector<std::byte> large(kBlobBytesMax + 1);
  EXPECT_TRUE(IsInvalidArgument(started().Start(large)));
  ASSERT_TRUE(Start().ok());
  EXPECT_TRUE(started().Finish().ok());
}

TEST_F(StartedCheckpointTest, IsRefusedWhereTheSystemRefusesAThread) {
  const BatchGate& gate = *table_->store().gate;
  const uint32_t checkpoint = gate.checkpoint();
  latch_.refuses_threads = true;
  EXPECT_TRUE(IsResourceExhausted(Start()));
  EXPECT_EQ(gate.checkpoint(), checkpoint) << "no barrier";
  EXPECT_TRUE(IsFailedPrecondition(started().Finish().status()));
  EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
  latch_.refuses_threads = false;
  ASSERT_TRUE(Start().ok());
  EXPECT_EQ(started().Finish().value_or(0), 2u);
}

// A small store on one thread, for all failures of a kind: start and finish are one call there.
StatusOr<uint32_t> StartAndFinish(Store* store) {
  const Status start = store->started_checkpoint()->Start(BlobOf("now"));
  if (!start.ok()) return start;
  return store->started_checkpoint()->Finish();
}

// A failed call has left the last checkpoint or the started one; the next one can be made, unless
// the log has stopped.
void ExpectGoesOn(SpillWorld* world, const Tables& last, const Tables& now, bool made,
                  bool may_have_stopped, uint64_t seed, Events* events) {
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world->get(), now));
  const Persistence persistence = kPersistences[seed % std::size(kPersistences)];
  {
    SimulatedDisk& disk = world->disk();
    SpillWorld again(kSeed, disk.AfterCrash(disk.changes(), persistence, seed));
    const Tables found = *ReadAll(again.get());
    ASSERT_TRUE(found == now || (!made && found == last));
    events->Count(found == now ? "found the started one" : "found the one before");
  }
  const auto next = StartAndFinish(world->get());
  ASSERT_TRUE(next.ok() || may_have_stopped) << next.status();
  events->Count(next.ok() ? "the next one is made" : "the log has stopped");
}

TEST(StartedCheckpointFailures, EachFailureOfTheDiskLeavesTheLastOneOrTheStartedOne) {
  Events events;
  for (const char* const name : {"made", "not started", "not made", "found the one before",
                                 "found the started one", "the next one is made"}) {
    events.Expect(name);
  }
  SpillWorld begin(kSeed);
  Put(begin.Create("t", Optimizer::kNone), KeysFrom(1, 150), 1.0f);
  ASSERT_TRUE(begin->checkpoints()->Make(BlobOf("last")).ok());
  const Tables last = *ReadAll(begin.get());
  const std::unique_ptr<SimulatedDisk> disk = begin.TakeDisk();
  bool met = true;
  for (uint64_t n = 1; met; n += kStride) {
    SCOPED_TRACE(n);
    ASSERT_LT(n, kStepsMax);
    SpillWorld world(kSeed, disk->AfterCrash(disk->changes(), Persistence::kAll, 0));
    Put(*world->catalog().Open("t"), KeysFrom(100, 120), 2.0f);
    const Tables now = *ReadAll(world.get());
    const uint64_t fails_at = world.disk().calls() + n;
    world.disk().SetFaults([fails_at](const DiskCall& call) {
      return call.number == fails_at ? UnavailableError("EIO") : OkStatus();
    });
    const Status start = world->started_checkpoint()->Start(BlobOf("now"));
    StatusOr<uint32_t> made =
        start.ok() ? world->started_checkpoint()->Finish() : StatusOr<uint32_t>(start);
    world.disk().SetFaults(nullptr);
    met = world.disk().calls() >= fails_at;
    ASSERT_TRUE(made.ok() || met) << made.status();
    events.Count(made.ok() ? "made" : start.ok() ? "not made" : "not started");
    ASSERT_NO_FATAL_FAILURE(ExpectGoesOn(&world, last, now, made.ok(), met, n, &events));
  }
  std::fputs(events.Table().c_str(), stdout);
  if (kStride == 1) {
    EXPECT_EQ(events.Missing(), "");
  }
}

TEST(StartedCheckpointFailures, EachFailedAllocationIsReportedAndTheNextOneIsMade) {
  Events events;
  for (const char* const name : {"made", "not started", "not made", "the next one is made"}) {
    events.Expect(name);
  }
  SpillWorld world(kSeed);
  world.memory().AskFirst(&AllocationFaults::MustFail);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  Tables last = *ReadAll(world.get());
  for (const FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
    bool met = true;
    for (uint64_t n = 1; met; n += kStride) {
      SCOPED_TRACE(n);
      ASSERT_LT(n, kStepsMax);
      Put(table, KeysFrom(1 + n % 300, 40), static_cast<float>(n % 1000 + 1));
      const Tables now = *ReadAll(world.get());
      Status start;
      StatusOr<uint32_t> made;
      {
        const AllocationFaults faults(n, kind);
        try {
          start = world->started_checkpoint()->Start(BlobOf("now"));
          made = start.ok() ? world->started_checkpoint()->Finish() : StatusOr<uint32_t>(start);
        } catch (const std::bad_alloc&) {  // The C API makes a status of it.
          const Unfaulted own;
          made = ResourceExhaustedError("no memory");
        }
        met = AllocationFaults::Failed() > 0;
      }
      ASSERT_TRUE(made.ok() || (met && IsResourceExhausted(made.status()))) << made.status();
      events.Count(made.ok() ? "made" : start.ok() ? "not made" : "not started");
      ASSERT_NO_FATAL_FAILURE(ExpectGoesOn(&world, last, now, made.ok(), false, n, &events));
      last = now;
    }
  }
  std::fputs(events.Table().c_str(), stdout);
  if (kStride == 1) {
    EXPECT_EQ(events.Missing(), "");
  }
}

// ---- other calls meanwhile ----

TEST_F(StartedCheckpointTest, IsOneAtATimeUntilItIsFinished) {
  EXPECT_TRUE(IsFailedPrecondition(started().Finish().status())) << "before a start";
  latch_.is_open = false;
  ASSERT_TRUE(Start("first").ok());
  const Status second = Start("second");
  EXPECT_TRUE(IsFailedPrecondition(second)) << second;
  EXPECT_THAT(second.ToString(), HasSubstr("embank_checkpoint_finish"));
  latch_.is_open = true;
  EXPECT_EQ(world_->checkpoints()->Blob()->size(), 5u) << "the first one has ended";
  EXPECT_TRUE(IsFailedPrecondition(Start("third"))) << "nobody has its result yet";
  EXPECT_EQ(started().Finish().value_or(0), 1u);
  EXPECT_TRUE(IsFailedPrecondition(started().Finish().status())) << "its result is given once";
  ASSERT_TRUE(Start("fourth").ok());
  EXPECT_EQ(started().Finish().value_or(0), 2u);
}

TEST_F(StartedCheckpointTest, GivesItsResultToOneOfTwoThreads) {
  for (uint32_t round = 1; round <= 20; ++round) {
    ASSERT_TRUE(Start().ok());
    std::atomic<int> got{0};
    std::atomic<int> refused{0};
    OnThreads(2, [&](uint64_t) {
      const auto made = started().Finish();
      got += made.ok() && *made == round ? 1 : 0;
      refused += IsFailedPrecondition(made.status()) ? 1 : 0;
    });
    ASSERT_EQ(got, 1);
    ASSERT_EQ(refused, 1);
  }
}

TEST_F(StartedCheckpointTest, IsStartedByOneOfTwoThreads) {
  for (uint32_t round = 1; round <= 20; ++round) {
    std::atomic<int> ok{0};
    std::atomic<int> refused{0};
    OnThreads(2, [&](uint64_t) {
      const Status start = Start();
      ok += start.ok() ? 1 : 0;
      refused += IsFailedPrecondition(start) ? 1 : 0;
    });
    ASSERT_EQ(ok, 1);
    ASSERT_EQ(refused, 1);
    ASSERT_EQ(started().Finish().value_or(0), round);
  }
}

// A thread that waits for it opens the latch by hurrying it.
class HurriedStart : public StartedCheckpointTest {
 protected:
  HurriedStart() { latch_.pace = table_->store().gate->pace(); }
  // A start hurries nothing: the latch stays closed for a while.
  void StartAndKnock() {
    latch_.is_open = false;
    latch_.knocks = 0;
    ASSERT_TRUE(Start().ok());
    while (latch_.knocks < 20 && !latch_.is_open) std::this_thread::yield();
    ASSERT_FALSE(latch_.is_open);
  }
};

TEST_F(HurriedStart, IsHurriedByFinish) {
  ASSERT_NO_FATAL_FAILURE(StartAndKnock());
  EXPECT_EQ(started().Finish().value_or(0), 1u);
}

TEST_F(HurriedStart, IsHurriedByClosing) {
  const Tables at_start = Now();
  ASSERT_NO_FATAL_FAILURE(StartAndKnock());
  world_.Close();
  ASSERT_TRUE(world_.Open().ok());
  ExpectIs(world_.get(), at_start);
}

TEST_F(HurriedStart, IsWaitedForByACheckpointThatFollows) {
  ASSERT_NO_FATAL_FAILURE(StartAndKnock());
  Put(table_, KeysFrom(1, 10), 5.0f);
  const Tables now = Now();
  EXPECT_EQ(world_->checkpoints()->Make(BlobOf("later")).value_or(0), 2u);
  EXPECT_EQ(started().Finish().value_or(0), 1u) << "its result has waited";
  ExpectAfterCrash(now, "later");
}

TEST_F(HurriedStart, IsWaitedForByDropsAndExports) {
  world_.Create("other", Optimizer::kNone);
  const Tables at_start = Now();
  ASSERT_NO_FATAL_FAILURE(StartAndKnock());
  ASSERT_TRUE(world_->DropTable("other").ok());
  EXPECT_EQ(started().Finish().value_or(0), 1u);
  ASSERT_NO_FATAL_FAILURE(ExpectAfterCrash(at_start, "started"));
  Tables now = Now();
  ASSERT_NO_FATAL_FAILURE(StartAndKnock());
  const Status exported =
      world_->checkpoints()->Export("export", [](uint64_t, uint64_t) { return true; });
  ASSERT_TRUE(exported.ok()) << exported;
  EXPECT_EQ(started().Finish().value_or(0), 2u);
  world_.options().path = "export";
  world_.options().pmem_path.clear();
  world_.options().pmem_bytes = 0;
  ASSERT_TRUE(world_.Open().ok());
  ExpectIs(world_.get(), now);
}

// A new table needs no end of a checkpoint, and is not in the started one.
TEST_F(HurriedStart, GoesOnWhileATableIsMade) {
  const Tables at_start = Now();
  ASSERT_NO_FATAL_FAILURE(StartAndKnock());
  Put(world_.Create("new", Optimizer::kNone), KeysFrom(1, 30), 2.0f);
  EXPECT_FALSE(latch_.is_open);
  EXPECT_EQ(started().Finish().value_or(0), 1u);
  ExpectAfterCrash(at_start, "started");
}

TEST(StartedCheckpointOfAReadOnlyStore, IsRefused) {
  SpillWorld world(kSeed);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  world.options().read_only = true;
  world.options().may_create = false;
  world.options().hbm_bytes = 0;
  world.options().flush_iters = 0;
  ASSERT_TRUE(world.Open().ok());
  EXPECT_TRUE(IsFailedPrecondition(world->started_checkpoint()->Start({})));
  EXPECT_TRUE(IsFailedPrecondition(world->started_checkpoint()->Finish().status()));
}

}  // namespace
}  // namespace embank::test::started_checkpoints_test
