// Parallel work on one thread, in an order drawn from a seed: a run is replayed by its seed.
#ifndef EMBANK_TESTS_SUPPORT_SIMULATED_EXECUTOR_H_
#define EMBANK_TESTS_SUPPORT_SIMULATED_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <numeric>
#include <utility>
#include <vector>

#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "tests/support/random.h"
#include "tests/support/unfaulted.h"

namespace embank::test {

class SimulatedExecutor final : public Executor {
 public:
  explicit SimulatedExecutor(uint64_t seed) : seed_(seed) {}

  // Like on threads, nothing may leave a body.
  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) noexcept override {
    for (const uint32_t task : DrawOrder(tasks)) body(task);
  }
  // Steps run inside calls of Wake: each call runs some of those that are due, or none.
  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) override {
    return std::make_unique<Task>(seed_ + tasks_.fetch_add(1), std::move(step));
  }
  // The body runs inside the call.
  std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) override {
    std::unique_ptr<JoinedThread> thread;
    try {
      thread = std::make_unique<JoinedThread>();
    } catch (const std::bad_alloc&) {
      return nullptr;
    }
    body();
    return thread;
  }
  uint32_t concurrency() const override { return 1; }

  uint64_t calls() const { return calls_.load(); }

 private:
  class Task final : public BackgroundTask {
   public:
    Task(uint64_t seed, BackgroundStep step) : random_(seed), step_(std::move(step)) {}
    void Wake() override {
      MutexLock lock(&mutex_);
      due_ = true;
      for (uint64_t steps = random_.Below(4); steps > 0 && due_; --steps) due_ = step_();
    }

   private:
    Mutex mutex_;
    Random random_;
    BackgroundStep step_;
    bool due_ = false;
  };

  std::vector<uint32_t> DrawOrder(uint32_t tasks) {
    const Unfaulted own;
    Random random(Random(seed_).Bits() + calls_.fetch_add(1));
    std::vector<uint32_t> order(tasks);
    std::iota(order.begin(), order.end(), 0u);
    for (uint32_t i = tasks; i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    return order;
  }

  const uint64_t seed_;
  std::atomic<uint64_t> calls_{0};
  std::atomic<uint64_t> tasks_{0};
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SIMULATED_EXECUTOR_H_
