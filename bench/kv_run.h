// The kv benchmark: the same batches through every engine, in turns, in one process, and through
// the bare machine, whose limits are compared with every figure.
#ifndef EMBANK_BENCH_KV_RUN_H_
#define EMBANK_BENCH_KV_RUN_H_

#include <cstdint>
#include <vector>

#include "base/status_or.h"
#include "bench/kv_samples.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

struct KvReport {
  std::vector<KvResult> results;  // by phase, engine and threads, in the order of the options
  std::vector<KvResult> limits;   // of the machine: by phase and threads
  uint64_t rows = 0;
  uint64_t positions = 0;  // of the stream that phases go through again and again
  bool trace_is_whole = true;
};

// Index bytes are divided by rows only past this many: below, fixed parts would hide the index.
inline constexpr uint64_t kIndexRowsMin = 1'000'000;

// Calls of the phase `small` ask for this many keys, of rows that stay in the cache.
inline constexpr uint64_t kSmallBatches[] = {1, 64};
inline constexpr uint64_t kSmallRowsMax = 1000;

// `options` are valid. INVALID_ARGUMENT: the rows do not fit into the machine, or a status of
// MakeWorkload. INTERNAL: an engine answered wrongly. Blocks for the whole benchmark.
StatusOr<KvReport> RunKv(const KvOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_KV_RUN_H_
