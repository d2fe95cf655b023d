// Runs parallel and background work. It is injected, so that a test can run the work in any order
// on one thread.
#ifndef EMBANK_BASE_THREADS_EXECUTOR_H_
#define EMBANK_BASE_THREADS_EXECUTOR_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "base/function_ref.h"
#include "base/threads/background_task.h"
#include "base/threads/joined_thread.h"

namespace embank {

class Executor {
 public:
  virtual ~Executor() = default;

  // Runs body(0) .. body(tasks - 1), each once, in any order and possibly at once, and returns when
  // all are done. The caller's thread takes part. Bodies must not throw and not call ParallelFor.
  // Thread-safe.
  virtual void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) = 0;

  // Makes a task whose steps this executor runs; the executor outlives it. If the system refuses a
  // thread, steps may never run: only speed may depend on one. Thread-safe.
  virtual std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) = 0;

  // Runs `body` once on a thread of its own, beside the caller. A simulated executor may run it
  // inside the call. nullptr: the system refuses a thread, and `body` never runs. `body` must not
  // throw, and may call ParallelFor. The executor outlives the thread. Thread-safe.
  virtual std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) = 0;

  // The number of bodies that can run at once, the caller's included.
  virtual uint32_t concurrency() const = 0;
};

// Makes a pool of `threads` - 1 workers beside the caller, or fewer if the system refuses threads;
// background tasks have threads of their own.
std::unique_ptr<Executor> MakeThreadPool(uint32_t threads);

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_EXECUTOR_H_
