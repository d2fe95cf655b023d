// The evaluations of a training: their data, their scores, and the best one.
#ifndef EMBANK_TOOLS_EVALUATIONS_H_
#define EMBANK_TOOLS_EVALUATIONS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tools/best_model.h"
#include "tools/train_command.h"
#include "tools/trained_model.h"
#include "train/data/click_reader.h"
#include "train/ranks/exchange.h"
#include "train/samples/click_source.h"
#include "train/scores.h"
#include "train/trainer.h"

namespace embank {

// The best evaluation has the least logloss. Without --eval-every there is one, at the end, and
// nothing is kept. One thread.
class Evaluations {
 public:
  struct Best {
    double loss = 0.0;
    uint64_t step = 0;
  };

  // The exchange is that of the training; nullptr: there is one rank.
  Evaluations(const TrainCommand& command, Exchange* exchange);

  // Opens the data, which have the columns of the training, and reads their first samples.
  // INVALID_ARGUMENT names the option. DATA_LOSS: the samples cannot be read. The statuses of
  // OpenLog.
  Status Open(const ClickColumns& of_training);
  // Evaluates the best model of an earlier run on the data, if there is one. It comes before the
  // trainer is opened. All ranks call it. FAILED_PRECONDITION: it is of another training. The
  // statuses of ReadTrainedModel, OpenToPredict and EvaluateAll.
  Status EvaluateKept();

  // Whether there are data, and whether they are due behind this step.
  bool has_data() const { return has_data_; }
  bool IsDue(uint64_t step) const;
  // Whether a run that goes on behind this step may lack its evaluation: it ended before the best
  // model was kept.
  bool IsDueAgain(uint64_t step) const;

  // Predicts all samples, and tells their scores. With --path, a model that is better than all
  // before it is kept: `save` makes sure that the last checkpoint is that of the present step.
  // CANCELLED: `goes_on` was false. DATA_LOSS: there is no sample. The statuses of EvaluateAll,
  // `save` and BestModel::Replace.
  Status Evaluate(Trainer* trainer, FunctionRef<Status()> save, FunctionRef<bool()> goes_on);

  // Whether the last --patience evaluations of this run were no better than the best one.
  bool IsOver() const;

  // The scores behind the last step that was evaluated, and that step; none: no samples.
  const Scores& last() const { return last_; }
  uint64_t last_step() const { return last_step_; }
  const std::optional<Best>& best() const { return best_; }
  // The directory of the best model; empty: none is kept.
  std::string best_directory() const;
  // The AUC that nothing exceeds on generated data; 0: unknown.
  double best_auc() const { return best_auc_; }

 private:
  StatusOr<std::unique_ptr<ClickSource>> OpenData();
  Status CheckFirstSamples();
  StatusOr<TrainedModel> ReadKept() const;
  Status CheckKept(const TrainedModel& kept) const;
  void Tell() const;

  const TrainCommand& command_;
  Exchange* const exchange_;
  const BestModel kept_;
  bool has_data_ = false;
  const ClickReader* log_ = nullptr;  // the data, if they are a log
  std::unique_ptr<ClickSource> source_;
  Scores last_;
  uint64_t last_step_ = 0;
  std::optional<Best> best_;
  uint64_t not_better_ = 0;  // evaluations of the present data since the best one, in this run
  double best_auc_ = 0.0;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_EVALUATIONS_H_
