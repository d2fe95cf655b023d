// Measures the limits that the machine's memory sets for a store that does nothing else.
#ifndef EMBANK_BENCH_LIMITS_RUN_H_
#define EMBANK_BENCH_LIMITS_RUN_H_

#include <cstdint>
#include <vector>

#include "base/status_or.h"
#include "bench/options.h"
#include "bench/probe_memory.h"
#include "bench/progress.h"

namespace embank {

enum class LimitProbe {
  kRandomLines,      // independent lines of 64 bytes
  kGather,           // index line, then the row it names, copied out
  kReadModifyWrite,  // index line, then the row it names, added to
  kStreamRead,       // lines from end to end
  kStreamWrite,
};
const char* ProbeName(LimitProbe probe);

struct LimitFigure {
  LimitProbe probe = LimitProbe::kRandomLines;
  PageKind pages = PageKind::kHuge;
  uint32_t threads = 1;
  uint32_t bytes = 0;       // that an operation uses: line or vector
  uint32_t row_bytes = 0;   // distance of rows; 0 for lines
  double per_second = 0.0;  // operations of all threads: the median of kLimitRounds
  double per_second_min = 0.0;
  double per_second_max = 0.0;

  double BytesPerSecond() const { return per_second * bytes; }
  // The time of one thread for an operation.
  double Nanoseconds() const { return threads * 1e9 / per_second; }
};

struct LimitsReport {
  std::vector<LimitFigure> figures;  // by pages, probe, size and threads
  uint64_t rows_bytes = 0;           // of memory that the rows of each size filled
};

inline constexpr uint32_t kLimitRounds = 3;

// The default numbers of threads: powers of two, and all cores.
std::vector<uint32_t> ThreadCounts(uint32_t cores);

// `options` are valid. RESOURCE_EXHAUSTED. Blocks for a little longer than options.seconds.
StatusOr<LimitsReport> RunLimits(const LimitsOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_LIMITS_RUN_H_
