#include "base/threads/mutex.h"

#include <gtest/gtest.h>

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/child_process.h"
#include "tests/support/refused_mappings.h"

namespace embank::test::mutex_test {
namespace {

struct Counted {
  Mutex mutex;
  // Two numbers that a writer moves together: a reader beside a writer would see them part.
  int64_t first EMBANK_GUARDED_BY(mutex) = 0;
  int64_t second EMBANK_GUARDED_BY(mutex) = 0;
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
    int inside EMBANK_GUARDED_BY(mutex) = 0;
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
    int turn EMBANK_GUARDED_BY(mutex) = 0;
    std::vector<int> order EMBANK_GUARDED_BY(mutex);
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
    int waiting EMBANK_GUARDED_BY(mutex) = 0;
    bool open EMBANK_GUARDED_BY(mutex) = false;
    int through EMBANK_GUARDED_BY(mutex) = 0;
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

TEST(Mutex, AssertReaderHeldAllowsReadersAndWriters) {
  Mutex mutex;
  {
    ReaderMutexLock lock(&mutex);
    mutex.AssertReaderHeld();
  }
  MutexLock lock(&mutex);
  mutex.AssertReaderHeld();
}

TEST(MutexDeathTest, AssertReaderHeldStopsAThreadWithoutTheLock) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        Mutex mutex;
        mutex.AssertReaderHeld();
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

// How a thread of the process is, by the system: 'R' runs, 'S' sleeps.
char StateOf(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  const size_t end_of_name = text.rfind(')');
  return end_of_name == std::string::npos ? '?' : text.at(end_of_name + 2);
}

constexpr int kNoFilters = 77;

// More threads than can wait with the memory that earlier ones have left.
constexpr size_t kWaiters = 300;

// One thread has the lock until the others, for which the system has no memory, sleep for it.
template <typename Body>
int WaitWithoutMemory(Mutex* mutex, const Body& take_and_give_back) {
  std::atomic<bool> has_filters{true};
  std::vector<std::atomic<pid_t>> waiters(kWaiters);
  std::vector<std::thread> threads;
  mutex->Lock();
  for (std::atomic<pid_t>& waiter : waiters) {
    threads.emplace_back([&] {
      if (!RefuseMappings(Threads::kThisOne)) has_filters = false;
      waiter = static_cast<pid_t>(syscall(SYS_gettid));
      take_and_give_back();
    });
  }
  for (const std::atomic<pid_t>& waiter : waiters) {
    while (waiter == 0 || StateOf(waiter) != 'S') sched_yield();
  }
  mutex->Unlock();
  for (std::thread& thread : threads) thread.join();
  return has_filters ? 0 : kNoFilters;
}

TEST(Mutex, WaitingTakesNoMemory) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer itself needs memory";
#endif
  Mutex mutex;
  const std::string writers =
      InChild([&] { return WaitWithoutMemory(&mutex, [&] { MutexLock lock(&mutex); }); });
  if (writers == EndOf(kNoFilters << 8)) GTEST_SKIP() << "the system has no seccomp filters";
  EXPECT_EQ(writers, "exit 0");
  EXPECT_EQ(
      InChild([&] { return WaitWithoutMemory(&mutex, [&] { ReaderMutexLock lock(&mutex); }); }),
      "exit 0");
}

TEST(Mutex, TryLockTakesItFromNobodyAndReadersKeepItOut) {
  Mutex mutex;
  const auto try_lock = [&mutex] {
    if (!mutex.TryLock()) return false;
    mutex.AssertHeld();
    mutex.Unlock();
    return true;
  };
  EXPECT_TRUE(try_lock());
  bool taken = true;
  {
    MutexLock lock(&mutex);
    std::thread([&] { taken = try_lock(); }).join();
    EXPECT_FALSE(taken);
  }
  {
    ReaderMutexLock lock(&mutex);
    taken = true;
    std::thread([&] { taken = try_lock(); }).join();
    EXPECT_FALSE(taken);
  }
  EXPECT_TRUE(try_lock());
}

TEST(Mutex, ReadersDoNotPassAWriterThatWaits) {
  Mutex mutex;
  std::atomic<pid_t> waiter{0};
  mutex.ReaderLock();
  std::thread writer([&] {
    waiter = static_cast<pid_t>(syscall(SYS_gettid));
    MutexLock lock(&mutex);
  });
  while (waiter == 0 || StateOf(waiter) != 'S') sched_yield();
  EXPECT_FALSE(mutex.ReaderTryLock());
  mutex.ReaderUnlock();
  writer.join();
  const bool locked = mutex.ReaderTryLock();
  EXPECT_TRUE(locked);
  if (locked) mutex.ReaderUnlock();
}

// Readers, writers, those that only try and those that wait for a change, with more threads than
// cores, so that each way of waiting and of waking comes about.
TEST(Mutex, LosesNoWakeUpWhereManyWait) {
  constexpr int kRounds = 3'000;
  constexpr int kThreads = 4;  // of each kind
  Counted counted;
  ConditionVariable changed;
  std::atomic<int> torn{0};
  std::atomic<int64_t> written{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        MutexLock lock(&counted.mutex);
        ++counted.first;
        if (i % 16 == 0) sched_yield();  // the others come to sleep
        ++counted.second;
        changed.NotifyAll();
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        ReaderMutexLock lock(&counted.mutex);
        if (i % 16 == 0) sched_yield();
        if (counted.first != counted.second) torn.fetch_add(1);
      }
    });
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        if (!counted.mutex.TryLock()) continue;
        ++counted.first;
        ++counted.second;
        written.fetch_add(1);
        counted.mutex.Unlock();
        changed.NotifyAll();
      }
    });
    threads.emplace_back([&, t] {
      MutexLock lock(&counted.mutex);
      for (int64_t seen = 0; seen < kRounds * (t + 1);) {
        while (counted.first <= seen) changed.Wait(&counted.mutex);
        seen = counted.first;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(torn.load(), 0);
  ReaderMutexLock lock(&counted.mutex);
  EXPECT_EQ(counted.first, kRounds * kThreads + written.load());
  EXPECT_EQ(counted.second, counted.first);
}

}  // namespace
}  // namespace embank::test::mutex_test
