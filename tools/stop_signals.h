// SIGINT and SIGTERM as a wish that a loop sees between two steps.
#ifndef EMBANK_TOOLS_STOP_SIGNALS_H_
#define EMBANK_TOOLS_STOP_SIGNALS_H_

#include <signal.h>

#include <array>

namespace embank {

// While it lives, the first signal is noted, and a second one of any kind ends the process at once.
// A signal that the process ignores stays ignored. At most one of them lives.
class StopSignals {
 public:
  StopSignals();
  ~StopSignals();
  StopSignals(const StopSignals&) = delete;
  StopSignals& operator=(const StopSignals&) = delete;

  // The name of the signal that came last: "SIGTERM". nullptr: none came.
  const char* received() const;

 private:
  static constexpr std::array<int, 2> kSignals = {SIGINT, SIGTERM};

  std::array<struct sigaction, kSignals.size()> before_ = {};
};

}  // namespace embank

#endif  // EMBANK_TOOLS_STOP_SIGNALS_H_
