// Work that nobody waits for: done in steps, aside, whenever somebody says that there is some.
#ifndef EMBANK_BASE_THREADS_BACKGROUND_TASK_H_
#define EMBANK_BASE_THREADS_BACKGROUND_TASK_H_

#include <functional>

namespace embank {

// One step of such work: whether the next one shall follow at once. Must not throw.
using BackgroundStep = std::function<bool()>;

class BackgroundTask {
 public:
  // Waits until no step is running; none begins after it.
  virtual ~BackgroundTask() = default;

  // Steps run from now on, one after the other, until one returns false: at least one, which begins
  // after this call has. A simulated task may run them inside the call. Does not wait for them.
  // Thread-safe; not from a step.
  virtual void Wake() = 0;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_BACKGROUND_TASK_H_
