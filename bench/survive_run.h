// The proof of a store on disk: a trainer's store that is larger than its memory is killed again
// and again, and every time what is found is compared, row by row, with what its last checkpoint
// had.
#ifndef EMBANK_BENCH_SURVIVE_RUN_H_
#define EMBANK_BENCH_SURVIVE_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/checked_store.h"
#include "bench/options.h"
#include "bench/progress.h"
#include "bench/run_slices.h"

namespace embank {

// Where the process was killed.
enum class KilledIn { kBatches, kCheckpoint, kRecovery };

struct Kill {
  KilledIn where = KilledIn::kBatches;
  uint64_t batches_told = 0;   // that the process had done, as far as it could tell
  uint64_t batches_found = 0;  // of the checkpoint that was found
  double recover_seconds = 0.0;
};

// The figures of the store after it was killed for the last time.
struct SurviveFigures {
  VerbTiming lookup;
  VerbTiming gradients;
  VerbTiming scan;
  double hit_ratio = 0.0;            // rows that lookups and gradients found in memory
  double iops = 0.0;                 // reads of the log per second of both
  double write_amplification = 0.0;  // bytes written / vectors and states that left memory
  std::vector<double> checkpoint_seconds;
  double recover_seconds = 0.0;  // after it was closed
  // Over time. Hits: rows that lookups and gradients found in memory.
  uint64_t positions_before = 0;  // keys that were there before
  std::vector<RunSlice> slices;
  std::vector<uint64_t> checkpoint_positions;  // keys before each checkpoint
};

struct SurviveReport : OracleFigures {
  std::string source;  // where the keys came from
  uint64_t positions = 0;
  uint64_t rows = 0;
  uint64_t data_bytes = 0;  // of all rows' vectors and states
  uint64_t dram_bytes = 0;
  std::vector<Kill> kills;
  SurviveFigures figures;
  double seconds = 0.0;
};

// Forks: nobody else runs in the process. `options` are valid. INVALID_ARGUMENT names the option;
// DATA_LOSS, INTERNAL: what was found is no checkpoint that was made; else a failed call of the
// store. Mismatches are no error: see the report.
StatusOr<SurviveReport> RunSurvive(const SurviveOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_SURVIVE_RUN_H_
