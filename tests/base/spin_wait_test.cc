#include "base/spin_wait.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace embank::test {
namespace {

// More waiting threads than cores: they would use up their time slices (milliseconds each) before
// the one they wait for came to work.
TEST(SpinWait, LetsTheOneItWaitsForWorkThoughAllCoresWait) {
  std::atomic<uint64_t> turn{0};
  const uint64_t thread_count = 2 * std::thread::hardware_concurrency() + 2;
  constexpr uint64_t kRounds = 50;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (uint64_t round = 0; round < kRounds; ++round) {
        SpinWait wait;
        while (turn.load(std::memory_order_acquire) != round * thread_count + t) wait.Pause();
        turn.fetch_add(1, std::memory_order_release);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(turn.load(), kRounds * thread_count);
}

}  // namespace
}  // namespace embank::test
