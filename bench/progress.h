// One line that shows the progress of a long run: rewritten in place on a terminal, a new one every
// ten seconds elsewhere.
#ifndef EMBANK_BENCH_PROGRESS_H_
#define EMBANK_BENCH_PROGRESS_H_

#include <cstdint>
#include <cstdio>
#include <string>

#include "base/threads/clock.h"

namespace embank {

// "[#####.....]  50 %  note  ETA 0:12", at most 79 columns. The remaining time is extrapolated;
// before 1 % it is not shown.
std::string ProgressLine(double fraction, double elapsed_seconds, const std::string& note);

// One thread. Nothing is printed in the first second, so short runs stay quiet.
class Progress {
 public:
  // Writes to `out` (stderr); both must outlive it.
  Progress(std::FILE* out, const Clock* clock);
  ~Progress() { Clear(); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Cheap to call often. fraction: 0..1 of the whole run.
  void Update(double fraction, const std::string& note);

  // Wipes the line, so that something else can be printed.
  void Clear();

 private:
  std::FILE* const out_;
  const Clock* const clock_;
  const bool is_terminal_;
  const uint64_t start_ns_;
  uint64_t next_ns_;
  bool line_is_shown_ = false;
};

}  // namespace embank

#endif  // EMBANK_BENCH_PROGRESS_H_
