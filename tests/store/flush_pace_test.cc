#include "store/gate/flush_pace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/hooked_executor.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::flush_pace_test {
namespace {

constexpr uint64_t kHourNs = uint64_t{3600} * 1'000'000'000;
constexpr uint32_t kQuiet = FlushPace::kQuietLooks;

// ---- whether batches run beside a flush pass ----

TEST(FlushPace, AFlushPassWithoutBatchesIsAlone) {
  FlushPace pace;
  pace.Begin(7);
  for (int look = 0; look < 100; ++look) EXPECT_FALSE(pace.IsBeside(7));
}

TEST(FlushPace, BatchesBeforeAFlushPassAreNotBesideIt) {
  FlushPace pace;
  pace.Begin(0);
  EXPECT_TRUE(pace.IsBeside(5));
  pace.Begin(9);
  EXPECT_FALSE(pace.IsBeside(9));
  EXPECT_TRUE(pace.IsBeside(10));
}

TEST(FlushPace, ANewBatchIsSeenAndCountsUntilQuietLooks) {
  FlushPace pace;
  pace.Begin(0);
  for (uint64_t batches = 1; batches < 4; ++batches) {
    for (uint32_t look = 0; look < kQuiet; ++look) EXPECT_TRUE(pace.IsBeside(batches)) << look;
    EXPECT_FALSE(pace.IsBeside(batches));
    EXPECT_FALSE(pace.IsBeside(batches));
  }
}

TEST(FlushPace, EachNewBatchBeginsTheQuietAnew) {
  FlushPace pace;
  pace.Begin(0);
  for (uint32_t look = 0; look < 10 * kQuiet; ++look) {
    EXPECT_TRUE(pace.IsBeside(1 + look / (kQuiet - 1)));
  }
}

// ---- how long it rests ----

TEST(FlushPace, RestsInProportionUpToALimit) {
  EXPECT_EQ(FlushPace::RestNs(0, 2), 0u);
  EXPECT_EQ(FlushPace::RestNs(1, 1), FlushPace::kPartsPerWork - 1);
  EXPECT_EQ(FlushPace::RestNs(100'000, 2), 100'000 * (FlushPace::kPartsPerWork / 2 - 1));
  EXPECT_EQ(FlushPace::RestNs(100'000, 64), 100'000u);
  for (const uint64_t worked : {FlushPace::kRestMaxNs, kHourNs, UINT64_MAX}) {
    EXPECT_EQ(FlushPace::RestNs(worked, 1), FlushPace::kRestMaxNs);
    EXPECT_EQ(FlushPace::RestNs(worked, 2), FlushPace::kRestMaxNs);
    for (const uint32_t threads : {FlushPace::kPartsPerWork, 1000u, UINT32_MAX}) {
      EXPECT_EQ(FlushPace::RestNs(worked, threads), 0u);
    }
  }
}

TEST(FlushPace, ARestEndsByItself) {
  FlushPace pace;
  EXPECT_EQ(pace.Rest(0), 0u);
  EXPECT_EQ(pace.Rest(1), 1u);
}

// ---- threads that hurry ----

TEST(FlushPace, NobodyRestsWhileSomebodyHurries) {
  FlushPace pace;
  pace.Begin(0);
  EXPECT_TRUE(pace.IsBeside(1));
  {
    const FlushPace::Hurry one(&pace);
    std::optional<FlushPace::Hurry> other(&pace);
    EXPECT_FALSE(pace.IsBeside(2));
    EXPECT_EQ(pace.Rest(kHourNs), 0u);
    other.reset();
    EXPECT_FALSE(pace.IsBeside(3)) << "there is still one";
    pace.Rest(kHourNs);
  }
  EXPECT_TRUE(pace.IsBeside(4));
}

TEST(FlushPace, AHurryEndsTheRestThatIsUnderWay) {
  for (int round = 0; round < 20; ++round) {
    FlushPace pace;
    std::atomic<bool> rests{false};
    std::thread flush_pass([&] {
      rests = true;
      pace.Rest(kHourNs);
    });
    while (!rests) std::this_thread::yield();
    const FlushPace::Hurry hurry(&pace);
    flush_pass.join();
  }
}

TEST(FlushPace, AStoreWithoutCheckpointsHurriesNobody) { const FlushPace::Hurry hurry(nullptr); }

TEST(FlushPace, AThreadThatWaitsForTheLockOfACheckpointHurriesItUntilItHasTheLock) {
  FlushPace pace;
  Mutex checkpoint;
  std::atomic<bool> has_lock{false};
  std::thread waiter;
  {
    MutexLock lock(&checkpoint);
    waiter = std::thread([&] {
      const HurriedLock waits(&checkpoint, &pace);
      has_lock = true;
      pace.Begin(0);
      EXPECT_TRUE(pace.IsBeside(1)) << "it waits no more";
    });
    pace.Rest(kHourNs);
    EXPECT_FALSE(has_lock);
  }
  waiter.join();
  EXPECT_TRUE(has_lock);
}

// ---- flush passes of stores ----

// Rows that are flushed in four times, and what the hook of an executor sees: whether a task is one
// of a list.
constexpr Key kKeys = 4000;
static_assert(kKeys > 3 * FlushPace::kSlotsPerRest && kKeys < 4 * FlushPace::kSlotsPerRest);

class Lists final : public Executor {
 public:
  explicit Lists(std::function<void(uint32_t)>* hook) : inner_(1), hook_(hook) {}
  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    // The hook's own calls have lists, too.
    if (std::function<void(uint32_t)> hook = std::exchange(*hook_, nullptr)) {
      hook(tasks);
      *hook_ = std::move(hook);
    }
    inner_.ParallelFor(tasks, body);
  }
  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) override {
    return inner_.MakeBackgroundTask(std::move(step));
  }
  std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) override {
    return inner_.MakeThread(std::move(body));
  }
  uint32_t concurrency() const override { return 1; }

 private:
  SimulatedExecutor inner_;
  std::function<void(uint32_t)>* const hook_;
};

// The lists of one flush pass, each with how many tasks it had, beside what `beside` does before
// each.
struct FlushRun {
  explicit FlushRun(std::function<void(Table*, size_t)> beside, uint64_t ssd_bytes = 0)
      : world(1, std::make_unique<Lists>(&hook), ssd_bytes), table(OpenWithMemory()) {
    for (Key first = 1; first <= kKeys; first += 250) Put(table, KeysFrom(first, 250), 1.0f);
    before = *ReadAll(world.get());
    hook = [&, beside = std::move(beside)](uint32_t tasks) {
      lists.push_back(tasks);
      beside(table, lists.size());
    };
    EXPECT_TRUE(world->checkpoints()->Make({}).ok());
    hook = nullptr;
    rest_ns = world->checkpoints()->Report().last_rest_ns;
    EXPECT_TRUE(world.Open().ok());
    EXPECT_TRUE(*ReadAll(world.get()) == before)
        << "the checkpoint has what was there at its barrier";
  }
  // All rows fit.
  Table* OpenWithMemory() {
    world.options().dram_bytes *= 3;
    EXPECT_TRUE(world.Open(false, std::make_unique<Lists>(&hook)).ok());
    return world.Create("t", Optimizer::kNone);
  }
  size_t Shared() const { return lists.size() - Single(); }
  size_t Single() const { return static_cast<size_t>(std::count(lists.begin(), lists.end(), 1u)); }

  std::function<void(uint32_t)> hook;
  SpillWorld world;
  Table* table;
  Tables before;
  std::vector<uint32_t> lists;
  uint64_t rest_ns = 0;
};

TEST(FlushPace, AloneAFlushPassSharesItsPartsAndNeverRests) {
  const FlushRun run([](Table*, size_t) {});
  EXPECT_EQ(run.Shared(), 4u);
  EXPECT_EQ(run.Single(), 0u);
  EXPECT_EQ(run.rest_ns, 0u);
}

// The first parts are under way when the first batch comes. It rests where more is to be done.
TEST(FlushPace, BesideBatchesOneThreadFlushesPartByPartAndRests) {
  const FlushRun run([](Table* table, size_t list) { Put(table, KeysFrom(list, 1), 2.0f); });
  EXPECT_EQ(run.Shared(), 1u);
  EXPECT_EQ(run.Single(), 12u);
  EXPECT_GE(run.rest_ns, 2 * FlushPace::RestNs(1000, 1)) << "the clock ticks 1 us a look";
  EXPECT_LE(run.rest_ns, 2 * FlushPace::kRestMaxNs);
}

// Batches that write pre-images of all rows leave it nothing to write, and are slower for it. It
// rests as long all the same, so that they go on without pre-images for a while.
TEST(FlushPace, WhereBatchesHaveWrittenItsRowsItRestsAsLong) {
  const FlushRun run([](Table* table, size_t list) {
    for (Key first = 1; first <= (list == 1 ? kKeys : 1); first += 250)
      Put(table, KeysFrom(first, 250), 2.0f);
  });
  EXPECT_EQ(run.Single(), 12u);
  EXPECT_GE(run.rest_ns, 2 * FlushPace::RestNs(1000, 1));
}

// Each erases keys without rows, more than one piece has. It has no write guard.
TEST(FlushPace, BatchesInPiecesAreBesideItLikeOthers) {
  const std::vector<Key> keys = KeysFrom(1'000'000, 3000);
  const FlushRun run([&](Table* table, size_t) { EXPECT_TRUE(Erase(table, keys, {}).ok()); });
  EXPECT_EQ(run.Shared(), 1u);
  EXPECT_EQ(run.Single(), 12u);
  EXPECT_GT(run.rest_ns, 0u);
}

// The other rows in memory are clean, and are not visited. Of 1,400 rows some are left when the
// first batch is seen, but fewer than for a rest.
TEST(FlushPace, WhereFewRowsHaveChangedItDoesNotRest) {
  std::function<void(uint32_t)> hook;
  SpillWorld world(1, std::make_unique<Lists>(&hook));
  Table* const table = world.Create("t", Optimizer::kNone);
  for (Key first = 1; first < 1500; first += 250) Put(table, KeysFrom(first, 250), 1.0f);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  for (const uint64_t changed : {1, 1400}) {
    Put(table, KeysFrom(100, changed), 3.0f);
    uint64_t lists = 0;
    hook = [&](uint32_t) { Put(table, KeysFrom(++lists, 1), 2.0f); };
    const CheckpointReport before = world->checkpoints()->Report();
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    hook = nullptr;
    const CheckpointReport after = world->checkpoints()->Report();
    EXPECT_EQ(after.last_rest_ns, 0u);
    EXPECT_GE(after.visited_slots - before.visited_slots, changed);
    EXPECT_LE(after.visited_slots - before.visited_slots, changed + 2 * lists);
  }
}

// The records of the rows take 16 MiB and more.
TEST(FlushPace, NearTheEndOfItsSpaceItDoesNotRest) {
  const auto trainer = [](Table* table, size_t list) { Put(table, KeysFrom(list, 1), 2.0f); };
  const FlushRun ample(trainer, uint64_t{128} << 20);
  EXPECT_EQ(ample.Single(), 12u);
  EXPECT_GT(ample.rest_ns, 0u);
  const FlushRun tight(trainer, uint64_t{18} << 20);
  EXPECT_EQ(tight.Single(), 0u);
  EXPECT_EQ(tight.rest_ns, 0u);
}

// It ends, whether batches do or not; the rest of it was above.
TEST(FlushPace, ATrainerThatStopsInTheMiddleDoesNotStopTheFlushPass) {
  const FlushRun run([](Table* table, size_t list) {
    if (list < 4) Put(table, KeysFrom(list, 1), 2.0f);
  });
  EXPECT_EQ(run.Shared(), 1u);
  EXPECT_EQ(run.Single(), 12u) << "fewer looks than there have to be";
}

// A call that waits for the end of the checkpoint makes it share its parts again.
TEST(FlushPace, AHurryBringsFullSpeedBack) {
  std::optional<FlushPace::Hurry> hurry;
  const FlushRun run([&](Table* table, size_t list) {
    Put(table, KeysFrom(list, 1), 2.0f);
    if (list == 2) hurry.emplace(table->store().gate->pace());
    if (list == 6) hurry.reset();
  });
  // The second thousand rows were begun part by part, and have no look before their end.
  EXPECT_EQ(run.Shared(), 2u);
  EXPECT_EQ(run.Single(), 8u);
}

// A flush pass that would rest for an hour goes on as soon as one of them comes.
TEST(FlushPace, CallsThatWaitForACheckpointHurryIt) {
  std::function<void(uint32_t)> hook;
  SpillWorld world(1, std::make_unique<Lists>(&hook));
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(1, 100), 1.0f);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  FlushPace* const pace = table->store().gate->pace();
  const std::function<Status()> calls[] = {
      [&] { return world->checkpoints()->Blob().status(); },
      [&] { return world->checkpoints()->Make({}).status(); },
      [&] { return world->checkpoints()->Export("copy", [](uint64_t, uint64_t) { return true; }); },
      [&] { return world->DropTable("t"); },
  };
  for (const std::function<Status()>& call : calls) {
    Status status;
    std::thread caller;
    hook = [&](uint32_t) {
      if (caller.joinable()) return;
      caller = std::thread([&] { status = call(); });
      pace->Rest(kHourNs);
    };
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    caller.join();
    hook = nullptr;
    EXPECT_TRUE(status.ok()) << status;
  }
}

}  // namespace
}  // namespace embank::test::flush_pace_test
