// Threads that put batches of keys through an engine, each batch timed.
#ifndef EMBANK_BENCH_PHASE_RUN_H_
#define EMBANK_BENCH_PHASE_RUN_H_

#include <cstdint>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bench/latency_histogram.h"

namespace embank {

struct PhasePlan {
  KeySpan keys;
  uint64_t batch = 1;
  uint32_t threads = 1;
  double seconds = 0.0;  // round and round for so long; 0: once through
};

struct PhaseTiming {
  double seconds = 0.0;  // from the common start to the end of the last batch
  uint64_t positions = 0;
  LatencyHistogram latency;
};

// Runs one batch on a thread 0..threads-1.
using BatchBody = FunctionRef<Status(uint32_t thread, KeySpan keys)>;

// Called by the caller's thread every few milliseconds, with the positions done so far.
using PhaseObserver = FunctionRef<void(uint64_t positions_done)>;

// Threads take the next batch of the one sequence of batches until it, or the time, is over.
// Blocks. The first failure of a batch ends the phase and is returned.
StatusOr<PhaseTiming> RunPhase(const PhasePlan& plan, BatchBody body, PhaseObserver observe);

}  // namespace embank

#endif  // EMBANK_BENCH_PHASE_RUN_H_
