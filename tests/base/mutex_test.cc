#include "base/mutex.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace embank::test {
namespace {

struct Counted {
  Mutex mutex;
  // Two numbers that a writer moves together: a reader beside a writer would see them part.
  int64_t first ABSL_GUARDED_BY(mutex) = 0;
  int64_t second ABSL_GUARDED_BY(mutex) = 0;
};

TEST(Mutex, ReaderTryLockDoesNotWait) {
  Mutex mutex;
  int locked = 0;
  const auto try_lock = [&] {
    if (!mutex.ReaderTryLock()) return;
    ++locked;
    mutex.ReaderUnlock();
  };
  {
    MutexLock lock(&mutex);
    std::thread(try_lock).join();
    EXPECT_EQ(locked, 0);
  }
  ReaderMutexLock lock(&mutex);
  std::thread(try_lock).join();
  EXPECT_EQ(locked, 1) << "readers do not keep one another out";
}

TEST(Mutex, KeepsWritersApartAndReadersFromHalfWrites) {
  Counted counted;
  std::atomic<int> torn{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        MutexLock lock(&counted.mutex);
        ++counted.first;
        ++counted.second;
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < 20'000; ++i) {
        ReaderMutexLock lock(&counted.mutex);
        if (counted.first != counted.second) torn.fetch_add(1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn.load(), 0);
  ReaderMutexLock lock(&counted.mutex);
  EXPECT_EQ(counted.first, 40'000);
  EXPECT_EQ(counted.second, 40'000);
}

TEST(Mutex, LetsReadersInTogether) {
  Mutex shared;
  struct Meeting {
    Mutex mutex;
    ConditionVariable someone_came;
    int inside ABSL_GUARDED_BY(mutex) = 0;
  } meeting;
  const auto read = [&] {
    ReaderMutexLock lock(&shared);
    MutexLock arrive(&meeting.mutex);
    ++meeting.inside;
    meeting.someone_came.NotifyAll();
    while (meeting.inside < 2) meeting.someone_came.Wait(&meeting.mutex);
  };
  // Each reader stays inside until the other is: with an exclusive lock neither would come back.
  std::thread other(read);
  read();
  other.join();
  MutexLock lock(&meeting.mutex);
  EXPECT_EQ(meeting.inside, 2);
}

TEST(ConditionVariable, HandsTheLockOverAndBack) {
  struct Baton {
    Mutex mutex;
    ConditionVariable passed;
    int turn ABSL_GUARDED_BY(mutex) = 0;
    std::vector<int> order ABSL_GUARDED_BY(mutex);
  } baton;
  const auto play = [&](int me) {
    for (int round = 0; round < 100; ++round) {
      MutexLock lock(&baton.mutex);
      while (baton.turn != me) baton.passed.Wait(&baton.mutex);
      baton.mutex.AssertHeld();
      baton.order.push_back(me);
      baton.turn = 1 - me;
      baton.passed.NotifyAll();
    }
  };
  std::thread other(play, 1);
  play(0);
  other.join();
  MutexLock lock(&baton.mutex);
  ASSERT_EQ(baton.order.size(), 200u);
  for (size_t i = 0; i < baton.order.size(); ++i) ASSERT_EQ(baton.order[i], i % 2);
}

TEST(ConditionVariable, WakesEveryThreadThatWaits) {
  struct Gate {
    Mutex mutex;
    ConditionVariable changed;
    int waiting ABSL_GUARDED_BY(mutex) = 0;
    bool open ABSL_GUARDED_BY(mutex) = false;
    int through ABSL_GUARDED_BY(mutex) = 0;
  } gate;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&gate] {
      MutexLock lock(&gate.mutex);
      ++gate.waiting;
      gate.changed.NotifyAll();
      while (!gate.open) gate.changed.Wait(&gate.mutex);
      ++gate.through;
    });
  }
  {
    MutexLock lock(&gate.mutex);
    while (gate.waiting < 4) gate.changed.Wait(&gate.mutex);
    EXPECT_EQ(gate.through, 0);
    gate.open = true;
    gate.changed.NotifyAll();
  }
  for (std::thread& thread : threads) thread.join();
  MutexLock lock(&gate.mutex);
  EXPECT_EQ(gate.through, 4);
}

TEST(MutexDeathTest, AssertHeldStopsAThreadWithoutTheLock) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Mutex mutex;
        mutex.AssertHeld();
      },
      "");
}

TEST(Mutex, AWaitWithALimitEndsByItselfOrWhenNotified) {
  Mutex mutex;
  ConditionVariable changed;
  bool is_changed = false;
  {
    MutexLock lock(&mutex);
    changed.WaitFor(&mutex, 1);
    mutex.AssertHeld();
  }
  std::thread other([&] {
    MutexLock lock(&mutex);
    is_changed = true;
    changed.NotifyAll();
  });
  {
    constexpr uint64_t kHourNs = uint64_t{3600} * 1'000'000'000;
    MutexLock lock(&mutex);
    while (!is_changed) changed.WaitFor(&mutex, kHourNs);
  }
  other.join();
}

}  // namespace
}  // namespace embank::test
