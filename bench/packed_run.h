// Times packed calls: lookups and gradients of many small features at once, and of pooled bags.
#ifndef EMBANK_BENCH_PACKED_RUN_H_
#define EMBANK_BENCH_PACKED_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

// Keys of one call, and the table shapes behind them.
struct PackedCase {
  std::string name;  // "tables": a key for each sample; "bags": one table, pooled with SUM
  uint32_t tables = 1;
  uint64_t rows = 0;  // of each table
  uint32_t dim = 16;
  uint32_t batch = 0;  // samples of a call
  uint32_t bag = 1;    // keys of a sample in each table

  uint64_t KeysOfTable() const { return uint64_t{batch} * bag; }
};

// The time of a call in microseconds.
struct CallTime {
  double median_us = 0.0;  // of the rounds' means
  double min_us = 0.0;
  double max_us = 0.0;
};

struct PackedFigure {
  PackedCase of;
  uint64_t calls = 0;  // of each kind, in all rounds
  CallTime lookup;
  CallTime gradients;
};

struct PackedReport {
  std::vector<PackedFigure> figures;
};

// The cases of a run: each dim with each batch, then the bags.
std::vector<PackedCase> PackedCases(const PackedOptions& options);

// The ids of one table, the same on every machine: bounded Zipf ranks over its rows, scattered.
StatusOr<std::vector<uint64_t>> PackedIds(const PackedOptions& options, const PackedCase& of,
                                          uint32_t table);

// `options` are valid. Makes all rows of a case, then times its calls.
// INVALID_ARGUMENT: the directory of the ids cannot be written. The statuses of the store.
StatusOr<PackedReport> RunPacked(const PackedOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_PACKED_RUN_H_
