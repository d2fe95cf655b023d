// One training by embank-train: data, progress, evaluation and the report.
#ifndef EMBANK_TOOLS_TRAIN_RUN_H_
#define EMBANK_TOOLS_TRAIN_RUN_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "base/status_or.h"
#include "tools/evaluations.h"
#include "tools/role_run.h"
#include "tools/stop_signals.h"
#include "tools/train_command.h"
#include "tools/train_figures.h"
#include "train/batch_ahead.h"
#include "train/data/click_reader.h"
#include "train/fae/hot_cold_samples.h"
#include "train/ranks/exchange.h"
#include "train/samples/epochs.h"
#include "train/scores.h"
#include "train/trainer.h"

namespace embank {

// One thread.
class TrainRun {
 public:
  // With several ranks this is the run of one, all of which make the same calls. The exchange
  // outlives it; nullptr: there is one rank.
  explicit TrainRun(const TrainCommand& command, Exchange* exchange = nullptr)
      : command_(command),
        exchange_(command.role_plan ? nullptr : exchange),
        role_exchange_(command.role_plan ? exchange : nullptr),
        evaluations_(command, exchange_) {}

  // Trains, evaluates and reports. A signal (StopSignals) ends a training with --path in a
  // checkpoint and its report, without an evaluation. INVALID_ARGUMENT: the options are wrong, and
  // nothing was trained. Where the data, a loss or the evaluation fail, the steps so far have a
  // checkpoint and a report.
  Status Execute();

  const TrainFigures& figures() const { return figures_; }
  double loss() const { return scores_.loss(); }
  uint32_t WeightsCrc32c() const;
  // The checksum of all rows and states (tools/row_checksum.h).
  StatusOr<uint64_t> ChecksumOfRows() const;
  // The numbers of the steps' lookup batches.
  uint64_t lookup_batches() const;
  size_t id_features() const { return source_->columns().ids.size(); }
  size_t packs() const { return trainer_->pass()->plan().packs().size(); }

 private:
  Status Open();
  Status ServeRole();
  Status OpenData(ClickColumns* columns);
  StatusOr<std::unique_ptr<ClickSource>> OpenEpoch(uint32_t epoch);
  Status CheckNew() const;
  Status GoOn();
  Status TrainAndReport();
  bool CountsLines() const;
  void TellSkip() const;
  Status Train();
  // A batch whose step is begun, and the data behind it.
  struct Begun {
    const ClickBatch* batch;
    DataPosition position;
    double fraction;
  };
  Status BeginSteps(BatchAhead* batches);
  bool MayBegin() const;
  bool IsCheckpointDue(uint64_t step) const {
    return command_.checkpoint_every > 0 && step % command_.checkpoint_every == 0;
  }
  Status EndStep();
  void ApplyLoss();
  Status TrainByRoles();
  bool TakesSignalsOfRoles() const;
  void CountStep();
  Trainer::LeftOut LeftOut() const;
  void TellZeroRates() const;
  Status SaveBatch(const ClickBatch& batch, const Status& why) const;
  Status Save();
  Status Agreed(const Status& status) const;
  void Evaluate();
  void NoteSignal(const char* what);
  void TakeSignal();
  bool IsStopped() const;
  bool HasSignal() const { return signals_ && signals_->received() != nullptr; }
  void TellIfAllAreTrained(bool have_ended) const;
  TrainWork StepWork() const;
  void BeginTiming();
  void TakeFigures();
  void Show();
  double Fraction() const;
  void Print() const;
  void PrintRanks() const;
  void PrintHot() const;
  std::string HotJson() const;
  void PrintEvaluations() const;
  Status WriteJson() const;
  bool IsDone() const;
  const BrokenLines& Broken() const;

  const TrainCommand& command_;
  Exchange* const exchange_;
  Exchange* const role_exchange_;  // nullptr: there are no roles, or all are in this process
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<Epochs> source_;
  ClickReader* log_ = nullptr;          // that of the present epoch, if it is a file
  HotColdSamples* hot_cold_ = nullptr;  // that of the present epoch, if they are such batches
  bool awaits_loss_ = false;            // a phase has ended with the last step
  BrokenLines broken_;                  // of the epoch before it
  Evaluations evaluations_;
  Status failure_;  // what ended the training, but not its results
  std::optional<StopSignals> signals_;
  std::deque<Begun> begun_;
  bool has_ended_ = false;              // the data
  std::optional<uint64_t> saved_step_;  // of the last checkpoint
  RoleStart role_start_;                // of roles that are ranks
  std::optional<RoleReport> role_report_;
  DataPosition position_;  // of the data, behind the last step
  uint64_t begin_ns_ = 0;
  uint64_t steps_ = 0;      // of this run
  uint64_t hot_steps_ = 0;  // of them
  uint64_t hot_samples_ = 0;
  uint64_t samples_before_ = 0;  // of the steps that the figures of speed leave out
  StepSeconds split_before_;
  TrainWork evaluation_work_;
  double next_line_ = 0.0;
  double fraction_before_ = 0.0;  // of the data, before the steps that are timed
  double fraction_ = 0.0;         // behind the last step
  std::string stopped_by_;        // the name of a signal
  Scores scores_;
  TrainFigures figures_;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_TRAIN_RUN_H_
