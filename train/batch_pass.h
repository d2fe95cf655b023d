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
#include "gpu/device_link.h"
#include "train/dense_pass.h"
#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/operation_graph.h"
#include "train/pipeline/operation_trace.h"
#include "train/pipeline/sparse_rows.h"
#include "train/ranks/rank_team.h"
#include "train/row_pass.h"
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
  // Swaps of hot rows, and the time that vectors and gradients take over the link of the device.
  double device_link = 0.0;
};

// The slices of a rank, of all those of a batch. nullptr: there is one rank.
SliceRange OwnSlices(uint32_t slices, const RankTeam* team);

// One thread.
class BatchPass {
 public:
  // The tables of the features are open. A team of nullptr: there is one rank.
  BatchPass(const TrainerOptions& options, std::span<const FeatureTable> tables,
            const std::vector<EmbeddingFeature>& features, DensePass dense_pass,
            std::unique_ptr<RankTeam> team, std::unique_ptr<Executor> executor);

  // Begins a batch that will be trained after those under way (RowPass::Begin).
  void Begin(const ClickBatch& batch) { rows_.Begin(batch, plan_.layout()); }
  // Runs the oldest batch under way forward and backward, up to the sums of gradients. `logits`
  // gets one for each sample. Returns the sum of the losses. No row of it has changed but its heat;
  // those that did not exist have been created. With several ranks they vote behind it: logits,
  // losses and statuses are those of all. The statuses of RowPass::WaitForLookup.
  StatusOr<double> Run(uint64_t step, std::vector<float>* logits);
  // Sums the dense gradients of the batch. Returns whether the sums are finite.
  bool SumDenseGradients();
  // Makes the steps of its rows (RowPass::Update).
  Status UpdateRows(float learning_rate);
  // Brings the rows of the store up to date (RowPass::WriteBack).
  Status WriteBack();
  // Makes the step of the dense parameters.
  void StepDense();
  // Runs a batch forward alone, where none is under way and all updates have ended: it changes no
  // row but its heat, and creates none. Votes and statuses are those of Run.
  Status Predict(const ClickBatch& batch, uint64_t step, std::vector<float>* logits);

  // Adds the operations of a step that begins now. They cannot run, but be scheduled.
  void AddBatch(OperationGraph* graph);

  // The time of the parts of all steps so far.
  StepSeconds seconds() const;
  RowPass& rows() { return rows_; }
  const RowPass& rows() const { return rows_; }
  // The rows that steps left out: with several ranks those of all, up to the last vote.
  uint64_t left_out() const;
  // The link between host and device.
  const DeviceLink& device_link() const { return device_link_; }
  // The updates of rows that were lost on purpose, each once a step; of all ranks as above.
  uint64_t lost_updates() const;
  RankTeam* team() const { return team_.get(); }  // nullptr: there is one rank
  DensePass& dense() { return dense_pass_; }
  const DensePass& dense() const { return dense_pass_; }
  StepPlan& plan() { return plan_; }
  const StepPlan& plan() const { return plan_; }
  OperationTrace* trace() { return &trace_; }

 private:
  StatusOr<double> RunSlices(const RowBatch& batch, bool trains, bool has_rows, uint64_t step,
                             std::vector<float>* logits);
  Status Vote(uint64_t step);
  Status Swap();
  void SendVectors(uint64_t bytes, void (DeviceLink::*send)(uint64_t));
  void AddStep(const RowBatch& batch, bool trains, bool has_rows, OperationGraph* graph);
  OperationGraph::Id AddForward(const RowBatch& batch, uint32_t micro_batch, bool trains,
                                bool has_rows, OperationGraph* graph);
  void AddBuckets(const RowBatch& batch, std::span<const OperationGraph::Id> dense,
                  OperationGraph* graph);
  void AddBackward(const RowBatch& batch, uint32_t micro_batch, OperationGraph::Id dense,
                   OperationGraph* graph);
  double RunSlice(uint32_t slice, uint32_t thread, bool trains, const DensePass::BucketDone& done);

  const uint32_t slices_;
  const bool sums_after_backward_;
  const OperationHook hook_;
  const std::unique_ptr<Executor> executor_;
  const std::unique_ptr<RankTeam> team_;
  DensePass dense_pass_;
  StepPlan plan_;
  OperationTrace trace_;
  // The batch whose slices run.
  struct Running {
    const ClickBatch* batch = nullptr;
    EmbeddingPass* pass = nullptr;
    std::span<float> logits;
    std::vector<double> losses;  // of each slice
    std::atomic<uint32_t> slices_left{0};
    std::vector<OperationGraph::Id> buckets;  // their sums over ranks
  };
  Running running_;
  double optimizer_seconds_ = 0.0;
  double device_link_seconds_ = 0.0;
  DeviceLink device_link_;
  RowPass rows_;  // last: its lookups use the above
};

}  // namespace embank

#endif  // EMBANK_TRAIN_BATCH_PASS_H_
