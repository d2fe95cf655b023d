// Hit ratios of the eviction policies on the key traces of a directory.
#ifndef EMBANK_BENCH_TRACES_RUN_H_
#define EMBANK_BENCH_TRACES_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

inline constexpr uint32_t kTraceRounds = 3;

// A policy on one trace, with one size of the cache.
struct PolicyFigure {
  std::string policy;  // "lru", "clock", "lfu", "lfu-cold"
  double hit_ratio = 0.0;
  double accesses_per_second = 0.0;  // median of kTraceRounds
  double accesses_per_second_min = 0.0;
  double accesses_per_second_max = 0.0;
};

struct TraceResult {
  std::string file;  // from the directory
  uint64_t accesses = 0;
  uint64_t distinct_keys = 0;
  bool is_whole = true;  // or its first kPositionsMax accesses
  double fraction = 0.0;
  uint64_t capacity = 0;  // rows: the fraction of the distinct keys, rounded, at least one
  std::vector<PolicyFigure> figures;
  double optimum = 0.0;  // hit ratio
};

// A file with the name of a trace that does not begin like one.
struct LeftOutFile {
  std::string file;
  std::string reason;
};

struct TracesReport {
  std::vector<TraceResult> results;  // by file and fraction
  std::vector<LeftOutFile> left_out;
};

// Replays every trace below the directory through simulated caches, on one thread. `options` are
// valid. INVALID_ARGUMENT names --traces: it cannot be read or has no trace; DATA_LOSS: a trace
// breaks off.
StatusOr<TracesReport> RunTraces(const TracesOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_TRACES_RUN_H_
