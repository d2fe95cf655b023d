#include "base/threads/joined_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "tests/support/child_process.h"
#include "tests/support/refused_mappings.h"
#include "tests/support/simulated_executor.h"

namespace embank::test::joined_thread_test {
namespace {

TEST(JoinedThread, RunsItsWorkOnceBesideItsMaker) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(2);
  std::atomic<bool> may_go{false};
  std::thread::id runner;
  int runs = 0;  // plain: the end of the thread orders it
  {
    const auto thread = pool->MakeThread([&] {
      while (!may_go) std::this_thread::yield();
      runner = std::this_thread::get_id();
      ++runs;
    });
    ASSERT_NE(thread, nullptr);
    may_go = true;
  }
  EXPECT_EQ(runs, 1);
  EXPECT_NE(runner, std::this_thread::get_id());
}

TEST(JoinedThread, SharesListsOfTasksWithTheWorkers) {
  const std::unique_ptr<Executor> pool = MakeThreadPool(3);
  std::atomic<int> done{0};
  {
    const auto thread =
        pool->MakeThread([&] { pool->ParallelFor(100, [&](uint32_t) { ++done; }); });
    pool->ParallelFor(100, [&](uint32_t) { ++done; });
  }
  EXPECT_EQ(done, 200);
}

// Threads are made until there is no memory for one more.
TEST(JoinedThread, IsNullAndDoesNothingWhereTheSystemRefusesIt) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "a sanitizer stops the process where a thread has no memory";
#endif
  EXPECT_EQ(InChild([] {
              constexpr size_t kThreadsMax = 200;
              const std::unique_ptr<Executor> pool = MakeThreadPool(1);
              std::atomic<size_t> runs{0};
              std::atomic<bool> may_end{false};
              std::vector<std::unique_ptr<JoinedThread>> threads;
              threads.reserve(kThreadsMax);
              if (!RefuseMappings(Threads::kThisOne)) return 0;
              while (threads.size() < kThreadsMax) {
                auto thread = pool->MakeThread([&] {
                  ++runs;
                  while (!may_end) std::this_thread::yield();
                });
                if (thread == nullptr) break;
                threads.push_back(std::move(thread));
              }
              may_end = true;
              const size_t made = threads.size();
              threads.clear();
              if (made == kThreadsMax) return 1;
              return runs == made ? 0 : 2;
            }),
            "exit 0");
}

TEST(JoinedThread, AThreadOfASimulatedExecutorHasRunWhenItIsMade) {
  SimulatedExecutor executor(1);
  int runs = 0;
  const auto thread = executor.MakeThread([&] { ++runs; });
  EXPECT_NE(thread, nullptr);
  EXPECT_EQ(runs, 1);
}

}  // namespace
}  // namespace embank::test::joined_thread_test
