// How far a run is, in words.
#ifndef EMBANK_TOOLS_PROGRESS_TEXT_H_
#define EMBANK_TOOLS_PROGRESS_TEXT_H_

#include <cstdint>
#include <string>

#include "base/threads/clock.h"

namespace embank {

// Returns the share of a run that is done, and the time that is left at its rate so far:
// "12.5 %, 1:02:03 left  ". `before` was done before these seconds. Empty: nothing is known, as of
// a pipe.
std::string ProgressText(double fraction, double before, double seconds);

// Tells on stderr every few seconds how far a part of a run is. One thread.
class ProgressLines {
 public:
  // `what` has been done outlives it: "samples predicted".
  explicit ProgressLines(const char* what) : what_(what) {}

  // `fraction` is done, of which `count` is the number so far.
  void Show(double fraction, uint64_t count);

  double PerSecond(uint64_t count) const { return static_cast<double>(count) / Seconds(); }

 private:
  double Seconds() const { return static_cast<double>(SteadyClock()->NowNs() - begin_ns_) * 1e-9; }

  static constexpr double kSecondsPerLine = 2.0;

  const char* const what_;
  const uint64_t begin_ns_ = SteadyClock()->NowNs();
  double next_line_ = kSecondsPerLine;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_PROGRESS_TEXT_H_
