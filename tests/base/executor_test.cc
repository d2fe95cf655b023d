#include "base/threads/executor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "base/threads/mutex.h"
#include "tests/support/simulated_executor.h"

namespace embank::test::executor_test {
namespace {

// How often each task of a ParallelFor ran.
class Runs {
 public:
  explicit Runs(uint32_t tasks) : counts_(tasks) {}
  void Count(uint32_t task) { counts_[task].fetch_add(1, std::memory_order_relaxed); }
  bool AllOnce() const {
    return std::all_of(counts_.begin(), counts_.end(),
                       [](const std::atomic<int>& count) { return count.load() == 1; });
  }

 private:
  std::vector<std::atomic<int>> counts_;
};

void ExpectEveryTaskOnce(Executor* executor) {
  for (const uint32_t tasks : {0u, 1u, 2u, 3u, 64u, 1000u}) {
    Runs runs(tasks);
    executor->ParallelFor(tasks, [&](uint32_t task) { runs.Count(task); });
    EXPECT_TRUE(runs.AllOnce()) << tasks << " tasks";
  }
}

TEST(ThreadPool, RunsEveryTaskOnce) {
  for (const uint32_t threads : {0u, 1u, 2u, 3u, 8u}) {
    const std::unique_ptr<Executor> pool = MakeThreadPool(threads);
    EXPECT_EQ(pool->concurrency(), std::max(threads, 1u));
    ExpectEveryTaskOnce(pool.get());
  }
}

TEST(ThreadPool, APoolOfOneThreadRunsInOrderOnTheCaller) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(1);
  const std::thread::id caller = std::this_thread::get_id();
  std::vector<uint32_t> order;
  pool->ParallelFor(5, [&](uint32_t task) {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    order.push_back(task);
  });
  EXPECT_EQ(order, (std::vector<uint32_t>{0, 1, 2, 3, 4}));
}

TEST(ThreadPool, ReallyRunsBodiesAtOnceHoweverOftenItsWorkersFellAsleep) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(3);
  struct Meeting {
    Mutex mutex;
    ConditionVariable someone_came;
    uint32_t arrived EMBANK_GUARDED_BY(mutex) = 0;
  } meeting;
  for (uint32_t round = 1; round <= 100; ++round) {
    // Each body waits for the other two: only three threads at once can finish.
    pool->ParallelFor(3, [&](uint32_t) {
      MutexLock lock(&meeting.mutex);
      ++meeting.arrived;
      meeting.someone_came.NotifyAll();
      while (meeting.arrived < 3 * round) meeting.someone_came.Wait(&meeting.mutex);
    });
  }
  MutexLock lock(&meeting.mutex);
  EXPECT_EQ(meeting.arrived, 300u);
}

TEST(ThreadPool, ReturnsOnlyWhenAllBodiesAreDone) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(4);
  for (int round = 0; round < 2000; ++round) {
    // Plain ints: an early return shows as a wrong sum, and as a race under ThreadSanitizer.
    std::vector<int> done(7, 0);
    pool->ParallelFor(7, [&](uint32_t task) { done[task] = 1; });
    ASSERT_EQ(std::count(done.begin(), done.end(), 1), 7) << "round " << round;
  }
}

TEST(ThreadPool, ServesSeveralCallersAtOnce) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(3);
  std::vector<std::thread> callers;
  std::atomic<int> wrong{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (uint32_t round = 0; round < 300; ++round) {
        const uint32_t tasks = 2 + round % 50;
        Runs runs(tasks);
        pool->ParallelFor(tasks, [&](uint32_t task) { runs.Count(task); });
        if (!runs.AllOnce()) wrong.fetch_add(1);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong.load(), 0);
}

// A first job, whose bodies wait for an order, and two later ones, whose bodies wait until four of
// them are inside.
struct Crowd {
  using Counts = std::array<uint32_t, 3>;  // by job
  Mutex mutex;
  ConditionVariable changed;
  Counts inside EMBANK_GUARDED_BY(mutex) = {};
  Counts inside_at_four EMBANK_GUARDED_BY(mutex) = {};
  bool first_ends EMBANK_GUARDED_BY(mutex) = false;

  void Enter(size_t job) {
    MutexLock lock(&mutex);
    ++inside[job];
    if (job > 0 && inside[1] + inside[2] == 4) inside_at_four = inside;
    changed.NotifyAll();
    while (job == 0 ? !first_ends : inside[1] + inside[2] < 4) changed.Wait(&mutex);
  }
  void Await(size_t job, uint32_t bodies) {
    MutexLock lock(&mutex);
    while (inside[job] < bodies) changed.Wait(&mutex);
  }
  void EndFirst() {
    MutexLock lock(&mutex);
    first_ends = true;
    changed.NotifyAll();
  }
};

TEST(ThreadPool, LeavesNoCallerAloneWhileANewerJobHasWorkers) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(3);
  Crowd crowd;
  std::vector<std::thread> callers;
  for (size_t job = 0; job < 3; ++job) {
    callers.emplace_back([&, job] { pool->ParallelFor(3, [&](uint32_t) { crowd.Enter(job); }); });
    // Both workers are in the first job, so that the others have their callers alone.
    crowd.Await(job, job == 0 ? 3 : 1);
  }
  crowd.EndFirst();
  for (std::thread& caller : callers) caller.join();
  MutexLock lock(&crowd.mutex);
  EXPECT_EQ(crowd.inside_at_four, (Crowd::Counts{3, 2, 2}));
}

TEST(ThreadPool, EndsWhileIdleBeforeAndAfterWork) {
  for (int round = 0; round < 20; ++round) {
    { const std::unique_ptr<Executor> unused = MakeThreadPool(4); }
    const std::unique_ptr<Executor> used = MakeThreadPool(4);
    std::atomic<int> ran{0};
    used->ParallelFor(8, [&](uint32_t) { ran.fetch_add(1); });
    EXPECT_EQ(ran.load(), 8);
  }
}

TEST(SimulatedExecutor, RunsEveryTaskOnceInAnOrderOfItsSeed) {
  SimulatedExecutor executor(1);
  ExpectEveryTaskOnce(&executor);
  std::set<std::vector<uint32_t>> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<uint32_t> order;
    std::vector<uint32_t> again;
    SimulatedExecutor(seed).ParallelFor(64, [&](uint32_t task) { order.push_back(task); });
    SimulatedExecutor(seed).ParallelFor(64, [&](uint32_t task) { again.push_back(task); });
    EXPECT_EQ(order, again) << "seed " << seed;
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 20u);
}

}  // namespace
}  // namespace embank::test::executor_test
