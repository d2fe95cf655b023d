// The vote of all ranks at the end of a batch, before rows are updated: all of them go on, or all
// stop with one message.
#ifndef EMBANK_TRAIN_RANKS_STEP_VOTE_H_
#define EMBANK_TRAIN_RANKS_STEP_VOTE_H_

#include <cstdint>
#include <span>

#include "base/status.h"
#include "base/status_or.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/exchange.h"
#include "train/ranks/part_buffer.h"

namespace embank {

// A rank says this of a batch.
struct Ballot {
  Status status;
  uint64_t step = 0;
  uint32_t samples = 0;          // of the batch
  uint32_t batch_crc32c = 0;     // of its labels, dense features and ids
  uint32_t hot_rows_crc32c = 0;  // of all swaps and steps of hot rows (train/hot/hot_bag.h)
  bool are_sums_finite = true;   // those of its gradients of rows
  bool wants_end = false;        // the training shall end after this step
  uint64_t left_out = 0;         // ids so far (RowCounts)
  uint64_t lost_updates = 0;     // of rows, so far
};

// All ranks know this then.
struct Verdict {
  bool are_sums_finite = true;  // of all ranks
  bool wants_end = false;       // a rank does
  uint64_t left_out = 0;        // of all ranks
  uint64_t lost_updates = 0;    // of all ranks
};

// The loss of each slice of a batch, and the logit of each of its samples.
struct BatchResults {
  std::span<double> losses;
  std::span<float> logits;
};

// One thread. It keeps its memory.
class StepVote {
 public:
  // The exchange outlives it.
  explicit StepVote(Exchange* exchange) : exchange_(exchange) {}

  // Gives all ranks the verdict, and the results of all slices: those of `own`, a run of the
  // batch's slices, are there before. The first status that is not OK is that of all ranks, with
  // the number of its rank. INTERNAL: the ranks are not at one step, or their hot rows differ.
  // FAILED_PRECONDITION: they have other batches. The statuses of Exchange::Run.
  StatusOr<Verdict> Run(const Ballot& ballot, SliceRange own, const BatchResults& results);

 private:
  Exchange* const exchange_;
  PartBuffer sent_;
  PartBuffer received_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_STEP_VOTE_H_
