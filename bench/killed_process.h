// A process that will be killed: it reports its progress until its parent kills it.
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
  // A message of the process: its position and a number.
  struct Step {
    uint64_t place = 0;
    uint64_t number = 0;
  };
  // Called in the process, by its body. Blocks until the parent reads; ends the process if the
  // parent is gone.
  using Tell = FunctionRef<void(Step)>;

  // Runs the body in a copy of this process, which ends with the body, without the copies'
  // destructors. A status of the body goes to stderr, because no caller waits for it.
  static StatusOr<KilledProcess> Start(FunctionRef<Status(Tell)> body);
  // Kills the process.
  ~KilledProcess();
  KilledProcess(KilledProcess&& other) noexcept;
  KilledProcess& operator=(KilledProcess&&) = delete;

  // Returns its next step, also of a process that was killed; none: there are no more. Blocks.
  std::optional<Step> Next();
  // Sends SIGKILL. Blocks until the process is gone.
  void Kill();

 private:
  KilledProcess(pid_t pid, int steps) : pid_(pid), steps_(steps) {}

  pid_t pid_;  // 0: gone
  int steps_;  // a pipe's end
};

}  // namespace embank

#endif  // EMBANK_BENCH_KILLED_PROCESS_H_
