// SIGINT, SIGTERM and SIGHUP as a wish that a loop sees between two steps.
#ifndef EMBANK_TOOLS_STOP_SIGNALS_H_
#define EMBANK_TOOLS_STOP_SIGNALS_H_

#include <signal.h>

#include <array>

namespace embank {

// While it lives, the first signal is noted, and a second one of any kind ends the process at once.
// A signal that the process ignores stays ignored. So is SIGPIPE, because Ctrl-C also ends the
// program to which the output goes, and a hang-up the terminal. At most one of them lives.
class StopSignals {
 public:
  // The first signal calls end_waits(true), so that the program waits for nothing any more; both
  // ends of the life call end_waits(false). Signal handlers may call it. nullptr: nothing waits.
  explicit StopSignals(void (*end_waits)(bool) = nullptr);
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The name of the signal that came last: "SIGTERM". nullptr: none came.
  const char* received() const;

 private:
  static constexpr std::array<int, 3> kSignals = {SIGINT, SIGTERM, SIGHUP};

  std::array<struct sigaction, kSignals.size()> before_ = {};
  struct sigaction pipe_before_ = {};
};

}  // namespace embank

#endif  // EMBANK_TOOLS_STOP_SIGNALS_H_
