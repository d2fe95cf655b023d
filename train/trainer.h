// A trainer of a click model, in one process: the rows of id features are in a store, dense
// parameters in arrays.
//
//   batch ─▶ rows of packs ─▶ slices: forward, loss, backward ─▶ gradients of packs ─▶ rows
//                                       └─ sums of slices ─▶ dense optimizer ─▶ weights
//
// A batch is cut into slices. Losses, weights and rows are the same bits for any number of threads,
// any tiers of the store, and any packs, groups and micro-batches (train/pipeline/README.md).
#ifndef EMBANK_TRAIN_TRAINER_H_
#define EMBANK_TRAIN_TRAINER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/executor.h"
#include "store/store.h"
#include "train/dense_pass.h"
#include "train/dense_rows.h"
#include "train/model_text.h"
#include "train/models/layer_graph.h"
#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/local_rows.h"
#include "train/pipeline/operation_graph.h"
#include "train/pipeline/operation_trace.h"
#include "train/samples/click_batch.h"
#include "train/samples/data_position.h"
#include "train/step_plan.h"
#include "train/trainer_options.h"

namespace embank {

// The time of the parts of all steps so far, each from the beginning of an operation to its end.
// Parts of different micro-batches overlap.
struct StepSeconds {
  double lookup = 0.0;
  double dense = 0.0;
  double gradients = 0.0;
};

// One thread, but Prefetch may run beside the others.
class Trainer {
 public:
  // Opens the store, and its tables or makes them; goes on at the last checkpoint, if there is one.
  // Settings may have changed since (train/model_text.h). A store that is read-only has a
  // checkpoint, and then the trainer predicts alone: it takes no memory for gradients.
  // INVALID_ARGUMENT names the option. FAILED_PRECONDITION: the checkpoint is of another model, and
  // the message names the first difference; or there must be one, and there is none. DATA_LOSS: it
  // lacks rows or lines. The statuses of Store::Open.
  static StatusOr<std::unique_ptr<Trainer>> Open(const TrainerOptions& options,
                                                 const ClickColumns& columns);

  // Makes a step with a batch of at most options.batch samples, at least one. Returns the mean of
  // the losses before the step. `logits` gets one for each sample.
  // Where gradients are not finite, the dense parameters or the rows of these gradients stay as
  // they are, and are counted (left_out).
  // OUT_OF_RANGE: the loss is not finite; nothing was changed but created rows.
  // INVALID_ARGUMENT: the batch has too many samples or none, no labels, or its parts do not
  // go together (CheckBatch); nothing was changed.
  // The statuses of LookupPacked and ApplyGradientsPacked: the step may be done in part. Open the
  // trainer again: it goes on at its last checkpoint.
  // FAILED_PRECONDITION: the store is read-only; nothing was done.
  StatusOr<double> Step(const ClickBatch& batch, std::vector<float>* logits);
  // Computes logits, and changes no row but its heat. Ids that were never trained have their first
  // values. The samples need no labels. INVALID_ARGUMENT as for Step, and the statuses of
  // LookupPacked.
  Status Predict(const ClickBatch& batch, std::vector<float>* logits);
  // Reads the rows of a batch that comes soon into memory. INVALID_ARGUMENT as for Step, and the
  // statuses of PrefetchPacked.
  Status Prefetch(const ClickBatch& batch) const;

  // Begins to make rows, dense parameters, the number of steps and the position of the data durable
  // together, as they are now; steps go on meanwhile. Finishes an earlier checkpoint first.
  // FAILED_PRECONDITION: the store has no path. The statuses of StartedCheckpoint::Start and
  // Finish.
  Status StartCheckpoint(DataPosition position);
  // Waits until the started checkpoint is durable, if there is one. The statuses of
  // StartedCheckpoint::Finish.
  Status FinishCheckpoint();
  // Does both.
  Status Checkpoint(DataPosition position);

  uint64_t steps() const { return steps_; }
  // The steps that were made with other data, before those of the present ones.
  uint64_t other_steps() const { return text_.other_steps; }
  // Counts what steps left out since the trainer was opened, because it would not have been finite:
  // rows, each once for each slice in which it is, and steps of the dense parameters.
  struct LeftOut {
    uint64_t rows = 0;
    uint64_t dense_steps = 0;
  };
  LeftOut left_out() const { return {embedding_pass_.left_out(), left_out_dense_steps_}; }
  // Where the data go on, as the last checkpoint has it; the beginning if that was of other data.
  DataPosition position() const { return position_; }
  // A phrase for each setting that has changed since the checkpoint at which the trainer went on.
  std::span<const std::string> changes() const { return changes_; }
  std::span<const float> weights() const { return dense_pass_.weights(); }
  // Adds the operations of a batch, forward and, if it trains, backward. Only Step and Predict can
  // run them; anybody can schedule them.
  void AddBatch(bool trains, OperationGraph* graph);
  StepSeconds seconds() const;
  const StepPlan& plan() const { return plan_; }
  OperationTrace* trace() { return &trace_; }
  const Store& store() const { return *store_; }
  // Each once, also where several features share it.
  std::span<Table* const> tables() const { return tables_; }

 private:
  Trainer(ModelText text, const TrainerOptions& options, std::unique_ptr<const LayerGraph> graph,
          std::unique_ptr<Store> store, std::unique_ptr<Executor> executor, DensePass dense_pass,
          DenseRows dense_rows, std::vector<Table*> tables);
  Status CheckSamples(const ClickBatch& batch) const;
  Status GoOnAt(const ModelText& checkpoint);
  // Runs a batch forward and, if it trains, backward; returns the sum of the losses.
  StatusOr<double> RunBatch(const ClickBatch& batch, bool trains, std::vector<float>* logits);
  void AddMicroBatch(uint32_t number, bool trains, OperationGraph* graph);
  double RunSlice(uint32_t slice, uint32_t thread, bool trains);
  Status UpdateRows();
  Status SetRates();

  const TrainerOptions options_;
  ModelText text_;
  const std::unique_ptr<const LayerGraph> graph_;
  const std::unique_ptr<Store> store_;
  const std::unique_ptr<Executor> executor_;
  const std::vector<Table*> tables_;  // each once
  DensePass dense_pass_;
  DenseRows dense_rows_;
  LocalRows rows_;
  EmbeddingPass embedding_pass_;
  StepPlan plan_;
  OperationTrace trace_;
  // The batch under way.
  struct Running {
    const ClickBatch* batch = nullptr;
    std::span<float> logits;
    std::vector<double> losses;  // of each slice
  };
  Running running_;
  double optimizer_seconds_ = 0.0;
  uint64_t steps_ = 0;
  uint64_t left_out_dense_steps_ = 0;
  DataPosition position_;
  std::vector<std::string> changes_;
  std::optional<DataPosition> started_position_;  // of the started checkpoint
};

}  // namespace embank

#endif  // EMBANK_TRAIN_TRAINER_H_
