// The replay: a key trace through the store as a trainer would send it, every result compared with
// the oracle bit for bit.
#ifndef EMBANK_BENCH_REPLAY_H_
#define EMBANK_BENCH_REPLAY_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/checked_store.h"
#include "bench/key_source.h"
#include "bench/options.h"
#include "bench/progress.h"
#include "bench/run_slices.h"

namespace embank {

struct ReplayReport : OracleFigures {
  std::string source;  // where the keys came from
  VerbTiming lookup;
  VerbTiming gradients;
  VerbTiming scan;
  uint64_t positions = 0;
  uint64_t distinct_keys = 0;
  double share_top_1 = 0.0;  // of the accesses, to the most frequent 1 % of the keys
  double share_top_10 = 0.0;
  double share_top_20 = 0.0;
  uint64_t row_bytes = 0;      // header, vector, state, padding
  double bytes_per_row = 0.0;  // everything that the store holds, index and slack included
  uint32_t digest = 0;         // CRC-32C of all answered rows in order: the same on every machine
  double seconds = 0.0;        // of the whole replay, oracle included
  // Figures over time. Hits are keys that had a row; the other keys got one.
  std::vector<RunSlice> slices;
};

// Looks every batch up (creating rows), applies its gradients (if there is an optimizer), and scans
// all rows at the end. `options` are valid. INVALID_ARGUMENT: --trace cannot be opened. DATA_LOSS:
// the trace is damaged. Else the status of a failed call of the store. Mismatches are no error: see
// the report.
StatusOr<ReplayReport> RunReplay(const ReplayOptions& options, Progress* progress);

// The keys of a replay. INVALID_ARGUMENT: --trace cannot be opened.
StatusOr<std::unique_ptr<KeySource>> OpenSource(const ReplayOptions& options);

}  // namespace embank

#endif  // EMBANK_BENCH_REPLAY_H_
