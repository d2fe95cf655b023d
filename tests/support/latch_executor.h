// Threads whose checkpoints stop at a latch, so that a test acts between barrier and flush pass.
#ifndef EMBANK_TESTS_SUPPORT_LATCH_EXECUTOR_H_
#define EMBANK_TESTS_SUPPORT_LATCH_EXECUTOR_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <utility>

#include "base/threads/executor.h"
#include "store/gate/flush_pace.h"

namespace embank::test {

// Stops the flush pass of a started checkpoint until a test opens it, and refuses threads on
// demand.
struct Latch {
  std::atomic<bool> is_open{true};
  std::atomic<int> knocks{0};  // looks at the closed latch
  std::atomic<bool> refuses_threads{false};
  std::atomic<bool> has_given_up{false};  // nobody has hurried for seconds
  FlushPace* pace = nullptr;  // given: the latch opens when a thread hurries the flush pass

  static constexpr int kKnocksMax = 10'000;

  void Await() {
    while (!is_open) {
      ++knocks;
      if (pace != nullptr && pace->Rest(1'000'000) == 0) is_open = true;
      if (pace != nullptr && knocks > kKnocksMax) is_open = has_given_up = true;
      std::this_thread::yield();
    }
  }
};

// Threads whose started checkpoints wait at a latch before each list of tasks.
class LatchExecutor final : public Executor {
 public:
  explicit LatchExecutor(Latch* latch, uint32_t threads = 2)
      : inner_(MakeThreadPool(threads)), latch_(latch) {}

  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    if (is_checkpoint_) latch_->Await();
    inner_->ParallelFor(tasks, body);
  }
  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) override {
    return inner_->MakeBackgroundTask(std::move(step));
  }
  std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) override {
    if (latch_->refuses_threads) return nullptr;
    return inner_->MakeThread([body = std::move(body)] {
      is_checkpoint_ = true;
      body();
    });
  }
  uint32_t concurrency() const override { return inner_->concurrency(); }

 private:
  static inline thread_local bool is_checkpoint_ = false;
  const std::unique_ptr<Executor> inner_;
  Latch* const latch_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_LATCH_EXECUTOR_H_
