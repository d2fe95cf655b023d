// A batch through a model: the operations of the slices of a rank, forward and backward.
//
//   batch ─▶ rows of packs ─▶ slices: forward, loss, backward ─▶ gradients of packs ─▶ rows
//                                       └─ sums of slices ─▶ dense optimizer ─▶ weights
#ifndef EMBANK_TRAIN_BATCH_PASS_H_
#define EMBANK_TRAIN_BATCH_PASS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/executor.h"
#include "train/dense_pass.h"
#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/operation_graph.h"
#include "train/pipeline/operation_trace.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/exchange.h"
#include "train/ranks/rank_team.h"
#include "train/samples/click_batch.h"
#include "train/step_plan.h"
#include "train/trainer_options.h"

namespace embank {

// The time of the parts of all steps so far, each from the beginning of an operation to its end.
// Parts of different micro-batches overlap. That of the link includes waits for other ranks.
struct StepSeconds {
  double lookup = 0.0;
  double dense = 0.0;
  double gradients = 0.0;
  double link = 0.0;
};

// The slices of a rank, of all those of a batch. nullptr: there is one rank.
SliceRange OwnSlices(uint32_t slices, const Exchange* exchange);

// One thread, but Prefetch may run beside the others.
class BatchPass {
 public:
  // The tables of the features are open. The exchange outlives it; nullptr: there is one rank.
  BatchPass(const TrainerOptions& options, std::span<const FeatureTable> tables,
            const std::vector<EmbeddingFeature>& features, DensePass dense_pass, Exchange* exchange,
            std::unique_ptr<Executor> executor);

  // Runs a batch forward and, if it trains, backward, up to the sums of gradients, and changes no
  // row but its heat, and creates those that it trains. `logits` gets one for each sample. Returns
  // the sum of the losses. With several ranks they vote behind it: logits, losses and statuses are
  // those of all. The statuses of LookupPacked and Exchange::Run.
  StatusOr<double> Run(const ClickBatch& batch, uint64_t step, bool trains,
                       std::vector<float>* logits);
  // Sums the dense gradients of the batch. Returns whether the sums are finite.
  bool SumDenseGradients();
  // Makes the steps of its rows. The statuses of ApplyGradientsPacked. With several ranks a failure
  // is kept until their next vote, and the status is OK.
  Status UpdateRows();
  // Makes the step of the dense parameters.
  void StepDense();
  // Reads the rows of a batch that comes soon into memory. The statuses of PrefetchPacked.
  Status Prefetch(const ClickBatch& batch) const;

  // Adds the operations of a batch, forward and, if it trains, backward. Only Run can run them;
  // anybody can schedule them.
  void AddBatch(bool trains, OperationGraph* graph);

  // The number of ids that steps left out: rows that would not have been finite.
  uint64_t left_out() const;
  StepSeconds seconds() const;
  RankTeam* team() const { return team_.get(); }  // nullptr: there is one rank
  DensePass& dense() { return dense_pass_; }
  const DensePass& dense() const { return dense_pass_; }
  StepPlan& plan() { return plan_; }
  const StepPlan& plan() const { return plan_; }
  OperationTrace* trace() { return &trace_; }

 private:
  Status Vote(uint64_t step);
  OperationBody Kept(OperationBody body);
  OperationGraph::Id AddForward(uint32_t number, bool trains, OperationGraph* graph);
  void AddBuckets(OperationGraph* graph);
  void AddBackward(uint32_t number, OperationGraph::Id dense, OperationGraph* graph);
  double RunSlice(uint32_t slice, uint32_t thread, bool trains, const DensePass::BucketDone& done);

  const uint32_t slices_;
  const std::unique_ptr<Executor> executor_;
  const std::unique_ptr<RankTeam> team_;
  const std::unique_ptr<SparseRows> rows_;
  EmbeddingPass embedding_pass_;
  DensePass dense_pass_;
  StepPlan plan_;
  OperationTrace trace_;
  // The batch under way.
  struct Running {
    const ClickBatch* batch = nullptr;
    std::span<float> logits;
    std::vector<double> losses;  // of each slice
    std::atomic<uint32_t> slices_left{0};
    std::vector<OperationGraph::Id> buckets;  // their sums over ranks
  };
  Running running_;
  double optimizer_seconds_ = 0.0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_BATCH_PASS_H_
