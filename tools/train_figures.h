// The figures of a training: what its steps did, how fast, and where its rows are.
#ifndef EMBANK_TOOLS_TRAIN_FIGURES_H_
#define EMBANK_TOOLS_TRAIN_FIGURES_H_

#include <cstdint>
#include <string>

#include "store/store.h"
#include "train/trainer.h"

namespace embank {

// Where the rows of a trainer are.
struct TierRows {
  uint64_t hbm = 0, dram = 0, pmem = 0, ssd = 0;
};

// The tiers in which lookups found their rows, as the store counts them. A row counts once for each
// slice in which it is. A row that a prefetch has read is found in DRAM.
struct TierAnswers {
  uint64_t lookups = 0;  // that found or created their row
  uint64_t hbm = 0, dram = 0, pmem = 0, ssd = 0;
  uint64_t created = 0;                              // these rows were in no tier
  uint64_t prefetched_pmem = 0, prefetched_ssd = 0;  // rows that prefetches brought to DRAM
  double RatioOf(uint64_t answers) const {
    return lookups == 0 ? 0.0 : static_cast<double>(answers) / static_cast<double>(lookups);
  }
};

// The work of a trainer.
struct TrainWork {
  TierAnswers answers;
  uint64_t operations = 0;
  uint64_t lookup_batches = 0;
  uint64_t gradient_batches = 0;
  uint64_t index_walks = 0;
  uint64_t rows_read = 0;  // from PMem and SSD
  StepSeconds split;

  TrainWork& operator+=(const TrainWork& other);
  TrainWork& operator-=(const TrainWork& other);
};

// The figures of the steps of a run, without its evaluations. Untimed steps are in no figure of
// speed.
struct TrainFigures {
  double seconds = 0.0;
  double samples_per_second = 0.0;
  double operations_per_step = 0.0;
  double table_batches_per_step = 0.0;  // lookups and gradients of one table
  double index_walks_per_step = 0.0;    // runs of keys that go through the index together
  double rows_read_per_step = 0.0;      // from PMem and SSD, prefetched ones included
  StepSeconds split;
  TierRows rows;
  TierAnswers answers;
};

TierRows CountRows(const Trainer& trainer);
// All work since the trainer was opened, that of predictions too.
TrainWork CountWork(Trainer* trainer);

// Return the rows and the hit ratios of each tier that a store has: "HBM 20, DRAM 400, SSD 7"; and
// "427" of a store in memory.
std::string TextOf(const TierRows& rows, const StoreOptions& store);
std::string TextOf(const TierAnswers& answers, const StoreOptions& store);

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_FIGURES_H_
