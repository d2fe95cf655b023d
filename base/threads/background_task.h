// Work that no caller waits for. It is done in steps, on another thread, whenever it is woken.
#ifndef EMBANK_BASE_THREADS_BACKGROUND_TASK_H_
#define EMBANK_BASE_THREADS_BACKGROUND_TASK_H_

#include <functional>

namespace embank {

// Does one step of such work, and returns whether the next one shall follow at once. Must not
// throw.
using BackgroundStep = std::function<bool()>;

class BackgroundTask {
 public:
  // The destructor waits until no step is running; none begins after it.
  virtual ~BackgroundTask() = default;

  // Makes steps run from now on, one after the other, until one returns false. At least one step
  // begins after this call has. A simulated task may run them inside the call. Does not wait for
  // them. Thread-safe; must not be called by a step.
  virtual void Wake() = 0;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_BACKGROUND_TASK_H_
