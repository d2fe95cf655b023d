// The kv benchmark: the same batches through every engine, in turns, in one process.
#ifndef EMBANK_BENCH_KV_RUN_H_
#define EMBANK_BENCH_KV_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

// One phase of one engine: medians over the rounds, but for the two extremes.
struct KvResult {
  std::string engine;
  Phase phase = Phase::kFill;
  double rows_per_second = 0.0;  // positions
  double rows_per_second_min = 0.0;
  double rows_per_second_max = 0.0;
  std::optional<double> index_bytes_per_row;  // largest in the fill; none up to a million rows
  double bytes_per_row = 0.0;                 // all memory after the fill
  double batch_p50_us = 0.0;
  double batch_p99_us = 0.0;
  double batch_p999_us = 0.0;
};

struct KvReport {
  std::vector<KvResult> results;  // by phase, then engine, in the order of the options
  uint64_t rows = 0;
  uint64_t positions = 0;  // of the stream that phases go through again and again
  bool trace_is_whole = true;
};

// The median of a list that is not empty: the lower one of an even number.
double Median(std::vector<double> values);

// Index bytes are divided by rows only past this many: below, fixed parts would hide the index.
inline constexpr uint64_t kIndexRowsMin = 1'000'000;

// `options` are valid. INVALID_ARGUMENT: the rows do not fit into the machine, or a status of
// MakeWorkload. INTERNAL: an engine answered wrongly. Blocks for the whole benchmark.
absl::StatusOr<KvReport> RunKv(const KvOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_KV_RUN_H_
