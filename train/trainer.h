// A trainer of a click model: the rows of id features are in stores, dense parameters in arrays.
//
// A batch is cut into slices. With a staleness of 0, or a deterministic one, losses, weights and
// rows are the same bits for any number of threads and ranks, any tiers of the store, and any
// packs, groups and micro-batches (train/pipeline/README.md). With several ranks each has a
// trainer, with a run of the slices and a store of the rows that it owns; all have the same batches
// and dense parameters, and make the same calls (train/ranks/README.md).
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
#include "store/store.h"
#include "train/batch_pass.h"
#include "train/dense_rows.h"
#include "train/model_text.h"
#include "train/models/layer_graph.h"
#include "train/pipeline/operation_trace.h"
#include "train/ranks/exchange.h"
#include "train/ranks/rank_team.h"
#include "train/samples/click_batch.h"
#include "train/samples/data_position.h"
#include "train/step_plan.h"
#include "train/trainer_options.h"

namespace embank {

// One thread, but Prefetch may run beside the others.
class Trainer {
 public:
  // Opens the store, and its tables or makes them; goes on at the last checkpoint, if there is one.
  // Settings may have changed since (train/model_text.h). A store that is read-only has a
  // checkpoint, and then the trainer predicts alone: it takes no memory for gradients.
  // INVALID_ARGUMENT names the option. FAILED_PRECONDITION: the checkpoint is of another model, and
  // the message names the first difference; or there must be one, and there is none. DATA_LOSS: it
  // lacks rows or lines. The statuses of Store::Open.
  // Each of several ranks gives its exchange, which outlives the trainer, and a store path of its
  // own. They go on at the newest step of which all have a checkpoint. INVALID_ARGUMENT also: their
  // number does not suit the slices. FAILED_PRECONDITION also: options, data or builds differ, or
  // checkpoints are not those of one training. A failure of one rank is that of all.
  static StatusOr<std::unique_ptr<Trainer>> Open(const TrainerOptions& options,
                                                 const ClickColumns& columns,
                                                 Exchange* exchange = nullptr);

  // Begins the step of a batch of at most options.batch samples, at least one: its rows are looked
  // up from now on, beside the steps that were begun before it. The batch outlives its step.
  // INVALID_ARGUMENT: the batch has too many samples or none, no labels, or its parts do not go
  // together (CheckBatch). FAILED_PRECONDITION: options.staleness + 1 steps are begun, or the store
  // is read-only. Nothing was done then.
  Status BeginStep(const ClickBatch& batch);
  // Ends the step that was begun first. Returns the mean of the losses before it. `logits` gets one
  // for each sample. The update of its rows ends later, where the staleness is above 0.
  // Where gradients are not finite, the dense parameters or the rows of these gradients stay as
  // they are, and are counted (left_out).
  // OUT_OF_RANGE: the loss is not finite; nothing was changed but created rows.
  // FAILED_PRECONDITION: no step is begun.
  // The statuses of LookupPacked and ApplyGradientsPacked, also of an earlier step: it may be done
  // in part. Open the trainer again: it goes on at its last checkpoint.
  // A failure of one rank is that of all, with its number, after the same step or in the next call.
  // After a failure no step is begun any more.
  StatusOr<double> EndStep(std::vector<float>* logits);
  // Does both. Its statuses are theirs.
  StatusOr<double> Step(const ClickBatch& batch, std::vector<float>* logits);
  // Forgets the steps that are begun, and waits for the updates of those that ended. The statuses
  // of ApplyGradientsPacked.
  Status DropSteps();
  // Brings the rows of the store up to date, which hot batches have left behind: Predict and
  // checkpoints do that themselves. The statuses of Upsert; with several ranks all get it from
  // their next vote.
  Status WriteBack();
  // Computes logits, and changes no row but its heat. Ids that were never trained have their first
  // values. The samples need no labels. INVALID_ARGUMENT as for BeginStep, FAILED_PRECONDITION: a
  // step is begun. The statuses of LookupPacked, and of ApplyGradientsPacked of earlier steps.
  Status Predict(const ClickBatch& batch, std::vector<float>* logits);
  // Reads the rows of a batch that comes soon into memory. INVALID_ARGUMENT as for BeginStep, and
  // the statuses of PrefetchPacked.
  Status Prefetch(const ClickBatch& batch) const;

  // Begins to make rows, dense parameters, the number of steps and the position of the data durable
  // together, as they are now; steps go on meanwhile. Finishes an earlier checkpoint first.
  // FAILED_PRECONDITION: the store has no path, or a step is begun. The statuses of
  // StartedCheckpoint::Start and Finish, and of updates of earlier steps. With several ranks it
  // waits for all of them, and first returns a failure of any, which was kept; then nothing is
  // started. A rank on which nothing could be started keeps why, and all get it from their next
  // call that votes: Step, StartCheckpoint or FinishCheckpoint.
  Status StartCheckpoint(DataPosition position);
  // Waits until the started checkpoint is durable, if there is one, on all ranks. The statuses of
  // StartedCheckpoint::Finish; a failure of any rank is that of all.
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
  // With several ranks those of all count, up to the last vote.
  LeftOut left_out() const { return {pass_->left_out(), left_out_dense_steps_}; }
  // nullptr: there is one rank.
  RankTeam* team() const { return pass_->team(); }
  // Counts steps that roles have made with the rows and dense parameters of this trainer
  // (train/hybrid/).
  void AddSteps(uint64_t steps) { steps_ += steps; }
  // Where the data go on, as the last checkpoint has it; the beginning if that was of other data.
  DataPosition position() const { return position_; }
  // A phrase for each setting that has changed since the checkpoint at which the trainer went on.
  std::span<const std::string> changes() const { return changes_; }
  std::span<const float> weights() const { return pass_->dense().weights(); }
  // Its plan, times and trace, and the rows of the steps that are begun and have not ended.
  BatchPass* pass() const { return pass_.get(); }
  const Store& store() const { return *store_; }
  // Each once, also where several features share it.
  std::span<Table* const> tables() const { return tables_; }

 private:
  Trainer(ModelText text, const TrainerOptions& options, std::unique_ptr<const LayerGraph> graph,
          std::unique_ptr<Store> store, std::vector<Table*> tables, std::unique_ptr<BatchPass> pass,
          DenseRows dense_rows);
  static StatusOr<std::unique_ptr<Trainer>> OpenOwn(const TrainerOptions& options,
                                                    const ClickColumns& columns,
                                                    std::unique_ptr<RankTeam> team,
                                                    const RankOfJob& rank);
  StatusOr<double> MakeStep(std::vector<float>* logits);
  Status GoOnAt(const ModelText& checkpoint);
  float SetRates();
  Status StartOwnCheckpoint(DataPosition position);
  Status FinishOwnCheckpoint();
  Status Agreed(const Status& status);

  const TrainerOptions options_;
  ModelText text_;
  const std::unique_ptr<const LayerGraph> graph_;
  const std::unique_ptr<Store> store_;
  const std::vector<Table*> tables_;  // each once
  const std::unique_ptr<BatchPass> pass_;
  DenseRows dense_rows_;
  uint64_t steps_ = 0;
  uint64_t left_out_dense_steps_ = 0;
  DataPosition position_;
  std::vector<std::string> changes_;
  std::optional<DataPosition> started_position_;  // of the started checkpoint
};

}  // namespace embank

#endif  // EMBANK_TRAIN_TRAINER_H_
