// A store whose rows are in four tiers: the batches of a trainer go through it, and every answer
// and every row is compared with the oracle's. The figures say where rows were and how they moved.
#ifndef EMBANK_BENCH_TIERS_RUN_H_
#define EMBANK_BENCH_TIERS_RUN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/checked_store.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

struct TierFigures {
  const char* name = "";
  uint64_t rows = 0;      // at the end
  uint64_t bytes = 0;     // of their vectors and states
  uint64_t answered = 0;  // positions of lookups whose rows were there, counted where they are read
  // Share of the distinct keys of batches: of HBM in a sample; of PMem and SSD the rows that
  // batches read, also batches of gradients, which find most of their rows in DRAM; of DRAM
  // unknown.
  std::optional<double> unique_share = {};
  // Rows, during the run; unknown where the store does not count them.
  std::optional<uint64_t> moved_in = {};
  std::optional<uint64_t> moved_out = {};
};

// Lookups of one thread while no top-k flush runs, and while one follows the other. In
// turns.
struct FlushFigures {
  uint64_t batches = 0;  // of each kind
  uint64_t flushes = 0;  // beside the second kind
  double p50_alone_us = 0.0;
  double p99_alone_us = 0.0;
  double p50_beside_us = 0.0;
  double p99_beside_us = 0.0;
  double longest_wait_us = 0.0;  // of a batch of the whole run for a chunk of a flush
};

struct TiersReport : OracleFigures {
  std::string source;  // where the keys came from
  std::string device;  // "twin" where HBM rows are in host memory
  uint64_t positions = 0;
  uint64_t rows = 0;
  uint64_t data_bytes = 0;  // of all rows' vectors and states
  uint64_t hbm_bytes = 0;
  uint64_t dram_bytes = 0;
  uint64_t pmem_bytes = 0;
  uint64_t found = 0;              // positions of lookups that found their rows
  uint64_t created = 0;            // those that made them
  std::vector<TierFigures> tiers;  // HBM, DRAM, PMem, SSD
  uint64_t distinct = 0;           // distinct keys of each batch, over all batches
  uint64_t hot_flushes = 0;
  uint64_t early_epochs = 0;
  uint64_t checkpoints = 0;
  FlushFigures flush;
  VerbTiming lookup;
  VerbTiming gradients;
  double seconds = 0.0;
};

// `options` are valid. INVALID_ARGUMENT names the option; else the status of a failed call of the
// store. Mismatches are no error: see the report.
StatusOr<TiersReport> RunTiers(const TiersOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_TIERS_RUN_H_
