// Who runs parallel and background work. Injected, so that a test can run it in any order on one
// thread.
#ifndef EMBANK_BASE_THREADS_EXECUTOR_H_
#define EMBANK_BASE_THREADS_EXECUTOR_H_

#include <cstdint>
#include <memory>

#include "base/function_ref.h"
#include "base/threads/background_task.h"

namespace embank {

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs body(0) .. body(tasks - 1), each once, in any order and possibly at once, and returns when
  // all are done. The caller's thread takes part. Bodies must not throw and not call ParallelFor.
  // Thread-safe.
  virtual void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) = 0;

  // A task whose steps this executor runs, and which it outlives. Where the system refuses a thread
  // they may never run: nothing but speed may depend on one. Thread-safe.
  virtual std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) = 0;

  // How many bodies can run at once, the caller's included.
  virtual uint32_t concurrency() const = 0;
};

// A pool of `threads` - 1 workers beside the caller, with fewer when the system refuses threads;
// background tasks have threads of their own.
std::unique_ptr<Executor> MakeThreadPool(uint32_t threads);

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_EXECUTOR_H_
