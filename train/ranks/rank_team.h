// The ranks of a trainer: what they do together in a step, beside the rows.
#ifndef EMBANK_TRAIN_RANKS_RANK_TEAM_H_
#define EMBANK_TRAIN_RANKS_RANK_TEAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "train/pipeline/operation_graph.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/dense_sums.h"
#include "train/ranks/exchange.h"
#include "train/ranks/step_vote.h"

namespace embank {

// One thread, but for Keep, Kept and Abort, and SumDense, which an operation of the link calls.
class RankTeam {
 public:
  // The exchange outlives it. Where lookups of rows run beside steps, all ranks make their teams at
  // one point, as they make calls of the exchange.
  RankTeam(Exchange* exchange, bool has_lookups_beside)
      : exchange_(exchange),
        lookups_(has_lookups_beside ? exchange->Duplicate() : nullptr),
        vote_(exchange),
        sums_(exchange) {}

  Exchange* exchange() const { return exchange_; }
  // The exchange of lookups: one of their own where they run beside steps.
  Exchange* lookups() const { return lookups_ == nullptr ? exchange_ : lookups_.get(); }

  // Keeps a failure of this rank until the next vote: it goes on with its exchanges until then, for
  // which the others wait. The first one is kept. Thread-safe.
  void Keep(const Status& status);
  // Returns a body that keeps failures and has none. Thread-safe.
  OperationBody Kept(OperationBody body);

  // Votes on a batch; fills the results of all ranks. The ballot needs no status and no wish: those
  // that were kept are in it. Returns the statuses of StepVote::Run. After a failure the job has
  // ended: all later calls of all ranks fail.
  StatusOr<Verdict> Vote(Ballot ballot, const BatchResults& results, SliceRange own);
  // Returns OK where nothing was kept on any rank, and what Vote returns else; waits for all ranks.
  Status AgreeOnSuccess();

  // Replaces sums of dense gradients by those of all ranks (DenseSums::Run). `slices_left`: those
  // that still compute others.
  Status SumDense(std::span<float> sums, const std::atomic<uint32_t>& slices_left);
  // The bytes of dense sums that were sent to others, and those whose exchange began before the
  // backward pass of their step had ended.
  struct DenseBytes {
    uint64_t all = 0;
    uint64_t early = 0;
  };
  DenseBytes dense_bytes() const { return dense_bytes_; }

  // Asks for the end of the training: all ranks get it in the verdict of the next vote.
  void set_wants_end() { wants_end_ = true; }
  // The last one.
  const Verdict& verdict() const { return verdict_; }

  // Ends the job of all ranks, where this one cannot go on to the next vote.
  void Abort(const Status& status) { exchange_->Abort(status.message()); }

 private:
  Exchange* const exchange_;
  const std::unique_ptr<Exchange> lookups_;
  StepVote vote_;
  DenseSums sums_;
  Mutex mutex_;
  Status kept_ EMBANK_GUARDED_BY(mutex_);
  DenseBytes dense_bytes_;
  bool wants_end_ = false;
  Verdict verdict_;
};

// Returns the body, or, where there is a team, one that keeps failures (RankTeam::Kept).
// Thread-safe.
OperationBody KeptBy(RankTeam* team, OperationBody body);

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_RANK_TEAM_H_
