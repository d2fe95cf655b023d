// The kv benchmark with a budget: rows that memory does not hold are forgotten. The same batches
// through Embank by each eviction policy, and through a peer that is an exact LRU.
#ifndef EMBANK_BENCH_CACHE_RUN_H_
#define EMBANK_BENCH_CACHE_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

// An engine with a number of threads: medians over the rounds, but for the two extremes.
struct CacheResult {
  std::string engine;  // "embank-lru", "embank-clock", "embank-lfu", kLruPeerName
  uint32_t threads = 1;
  double rows_per_second = 0.0;  // positions
  double rows_per_second_min = 0.0;
  double rows_per_second_max = 0.0;
  double hit_ratio = 0.0;         // positions that found their row / positions
  std::optional<double> speedup;  // over the first number of threads, in the same round
  double used_bytes = 0.0;        // at the end, as the rows that are there, and the index
  double rows = 0.0;
  double index_bytes = 0.0;  // 0: the engine does not tell
};

struct CacheReport {
  std::vector<CacheResult> results;  // by engine and threads, in the order of the options
  uint64_t rows = 0;
  uint64_t positions = 0;   // that are measured: the second half of the stream
  uint64_t dram_bytes = 0;  // of each engine
  bool trace_is_whole = true;
};

// `options` are valid and have a dram_fraction. The statuses of MakeWorkload and of the engines.
// Blocks for the whole benchmark.
StatusOr<CacheReport> RunCache(const KvOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_CACHE_RUN_H_
