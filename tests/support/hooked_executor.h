// A simulated executor that calls a test in the middle of a store's work.
#ifndef EMBANK_TESTS_SUPPORT_HOOKED_EXECUTOR_H_
#define EMBANK_TESTS_SUPPORT_HOOKED_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "tests/support/simulated_executor.h"

namespace embank::test {

// Calls *hook, if there is one, before each task of a list: during a checkpoint, before each part
// of its flush pass.
class HookedExecutor final : public Executor {
 public:
  HookedExecutor(uint64_t seed, std::function<void()>* hook) : inner_(seed), hook_(hook) {}

  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    inner_.ParallelFor(tasks, [&](uint32_t task) {
      // The hook's own calls have lists, too.
      if (std::function<void()> hook = std::exchange(*hook_, nullptr)) {
        hook();
        *hook_ = std::move(hook);
      }
      body(task);
    });
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
  std::function<void()>* const hook_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_HOOKED_EXECUTOR_H_
