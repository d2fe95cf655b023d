// The ssd benchmark: rows that memory does not hold, through Embank, a peer and fio, in turns.
#ifndef EMBANK_BENCH_SSD_RUN_H_
#define EMBANK_BENCH_SSD_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/options.h"
#include "bench/progress.h"
#include "bench/ssd_samples.h"

namespace embank {

// The sizes of a run.
struct SsdSizes {
  uint64_t rows = 0;
  uint64_t payload_bytes = 0;  // of a row: vector and state
  uint64_t record_bytes = 0;   // of a row in the log
  uint64_t data_bytes = 0;     // payloads of all rows
  uint64_t dram_bytes = 0;     // that an engine may use
  uint64_t ssd_bytes = 0;      // of Embank's log; 0: no budget
  uint64_t pmem_bytes = 0;     // of a PMem tier; 0: there is none
};

// Returns the sizes of a run with so many rows and these options. No engine gets less memory than
// Embank's least.
SsdSizes SizesOf(const SsdOptions& options, uint64_t rows);

struct SsdReport {
  SsdSizes sizes;
  std::vector<SsdResult> results;  // by phase, engine and threads
  std::vector<std::string> notes;  // what was left out, or ended early, and why
};

// `options` are valid. INVALID_ARGUMENT: --path or --pmem is no directory or has too little space,
// or none of the engines is there, or a status of MakeWorkload. INTERNAL, NOT_FOUND, DATA_LOSS: an
// engine answered wrongly. Other statuses are the engines'. Blocks for the whole benchmark, and
// leaves nothing in the directories. Where no PMem tier can be made, a note says why.
StatusOr<SsdReport> RunSsd(const SsdOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_SSD_RUN_H_
