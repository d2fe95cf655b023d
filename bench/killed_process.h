// A process that is there to be killed: it tells how far it is, until somebody kills it.
#ifndef EMBANK_BENCH_KILLED_PROCESS_H_
#define EMBANK_BENCH_KILLED_PROCESS_H_

#include <sys/types.h>

#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"

namespace embank {

// One thread; it is the only one of its process when Start is called.
class KilledProcess {
 public:
  // What the process tells: where it is, and a number.
  struct Step {
    uint64_t place = 0;
    uint64_t number = 0;
  };
  // Called in the process, by its body. Blocks while nobody listens; the end of the process where
  // nobody is left to.
  using Tell = FunctionRef<void(Step)>;

  // A copy of this process runs the body and ends with it, without the copies' destructors. A
  // status of the body goes to stderr, as nobody waits for it.
  static StatusOr<KilledProcess> Start(FunctionRef<Status(Tell)> body);
  // Kills it.
  ~KilledProcess();
  KilledProcess(KilledProcess&& other) noexcept;
  KilledProcess& operator=(KilledProcess&&) = delete;

  // Its next step, also of one that was killed; none: there are no more. Blocks.
  std::optional<Step> Next();
  // SIGKILL, at once. Blocks until it is gone.
  void Kill();

 private:
  KilledProcess(pid_t pid, int steps) : pid_(pid), steps_(steps) {}

  pid_t pid_;  // 0: gone
  int steps_;  // a pipe's end
};

}  // namespace embank

#endif  // EMBANK_BENCH_KILLED_PROCESS_H_
