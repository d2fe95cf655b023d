#include "base/threads/background_task.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "tests/support/simulated_executor.h"

namespace embank::test::background_task_test {
namespace {

// Work that comes in pieces, which a task takes one by one; and a look at how it does so.
class Pieces {
 public:
  void Add(int count) {
    MutexLock lock(&mutex_);
    left_ += count;
  }
  // A step.
  bool TakeOne() {
    if (inside_.fetch_add(1) != 0) twice_at_once_ = true;
    bool more = false;
    {
      MutexLock lock(&mutex_);
      if (left_ > 0) {
        --left_;
        ++done_;
        taken_.NotifyAll();
      }
      more = left_ > 0;
    }
    inside_.fetch_sub(1);
    return more;
  }
  void AwaitDone(int count) {
    MutexLock lock(&mutex_);
    while (done_ < count) taken_.Wait(&mutex_);
  }
  int done() const {
    MutexLock lock(&mutex_);
    return done_;
  }
  bool twice_at_once() const { return twice_at_once_; }

 private:
  mutable Mutex mutex_;
  ConditionVariable taken_;
  int left_ EMBANK_GUARDED_BY(mutex_) = 0;
  int done_ EMBANK_GUARDED_BY(mutex_) = 0;
  std::atomic<int> inside_{0};
  std::atomic<bool> twice_at_once_{false};
};

class BackgroundThread : public testing::Test {
 protected:
  const std::unique_ptr<Executor> pool_ = MakeThreadPool(1);
};

TEST_F(BackgroundThread, DoesNothingUntilItIsWokenAndThenAllThereIs) {
  Pieces pieces;
  pieces.Add(5);
  const auto task = pool_->MakeBackgroundTask([&] { return pieces.TakeOne(); });
  for (int i = 0; i < 100; ++i) std::this_thread::yield();
  EXPECT_EQ(pieces.done(), 0);
  task->Wake();
  pieces.AwaitDone(5);
}

TEST_F(BackgroundThread, MissesNoWakeHoweverManyThreadsGiveIt) {
  Pieces pieces;
  const auto task = pool_->MakeBackgroundTask([&] {
    pieces.TakeOne();
    return false;  // of each Wake only the one step that it asks for
  });
  constexpr int kThreads = 4;
  constexpr int kPiecesEach = 500;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kPiecesEach; ++i) {
        pieces.Add(1);
        task->Wake();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  // Several wakes may have met in one step. A step that begins after the last wake is certain.
  for (int done = pieces.done(); done < kThreads * kPiecesEach; done = pieces.done()) {
    task->Wake();
    pieces.AwaitDone(done + 1);
  }
  EXPECT_FALSE(pieces.twice_at_once());
}

TEST_F(BackgroundThread, EndsOnlyWhenItsStepHasEnded) {
  for (int round = 0; round < 50; ++round) {
    // A plain int: a step that goes on behind the end is a race under ThreadSanitizer.
    int steps = 0;
    {
      const auto task = pool_->MakeBackgroundTask([&] {
        ++steps;
        return true;
      });
      task->Wake();
      for (int i = 0; i < round % 5; ++i) std::this_thread::yield();
    }
    const int at_the_end = steps;
    std::this_thread::yield();
    EXPECT_EQ(steps, at_the_end);
  }
}

TEST_F(BackgroundThread, MayEndUnused) {
  for (int round = 0; round < 20; ++round) {
    const auto task = pool_->MakeBackgroundTask([] { return false; });
  }
}

TEST(SimulatedExecutor, RunsStepsInsideWakesAsItsSeedSays) {
  const auto steps_of_wakes = [](uint64_t seed) {
    SimulatedExecutor executor(seed);
    int steps = 0;
    const auto task = executor.MakeBackgroundTask([&] {
      ++steps;
      return steps % 10 != 0;
    });
    std::vector<int> after;
    for (int wake = 0; wake < 30; ++wake) {
      task->Wake();
      after.push_back(steps);
    }
    return after;
  };
  EXPECT_EQ(steps_of_wakes(1), steps_of_wakes(1));
  EXPECT_NE(steps_of_wakes(1), steps_of_wakes(2));
  EXPECT_GT(steps_of_wakes(1).back(), 20);
}

}  // namespace
}  // namespace embank::test::background_task_test
