#include "tools/evaluations.h"

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tools/progress_text.h"
#include "tools/rank_output.h"
#include "tools/train_data.h"
#include "train/dense/loss.h"
#include "train/evaluation.h"
#include "train/ranks/gathered_texts.h"

namespace embank {
namespace {

constexpr const char* kPredicted = "samples of --eval predicted";

// Whether all ranks have the best model of one step, or none has any. A job that was killed between
// the replacements of two ranks has no whole one.
StatusOr<bool> HaveOneStep(const StatusOr<TrainedModel>& kept, Exchange* exchange) {
  const std::string own = kept.ok() ? StrCat(kept->text.steps, " ", kept->text.rank.start) : "none";
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> texts, GatherTexts(exchange, own));
  return std::ranges::all_of(texts, [&](const std::string& text) { return text == texts[0]; });
}

}  // namespace

Evaluations::Evaluations(const TrainCommand& command, Exchange* exchange)
    : command_(command), exchange_(exchange), kept_(command.trainer.store.path) {}

std::string Evaluations::best_directory() const {
  const bool keeps = command_.eval_every > 0 && !command_.trainer.store.path.empty();
  return keeps ? kept_.directory() : "";
}

Status Evaluations::Open(const ClickColumns& of_training) {
  has_data_ = !command_.eval.empty() || command_.eval_samples > 0;
  if (!has_data_) return OkStatus();
  if (command_.eval_every > 0 && AreReadOnce(command_.eval)) {
    return InvalidArgumentError(
        "--eval: a pipe or standard input gives its lines once, and --eval-every reads them often; "
        "give a file");
  }
  EMBANK_ASSIGN_OR_RETURN(source_, OpenData());
  const std::string difference = DifferenceOf(source_->columns(), of_training);
  if (!difference.empty()) {
    return InvalidArgumentError(StrCat("--eval: the lines of ", command_.eval[0], " ", difference,
                                       "; give a log with the columns of the training"));
  }
  EMBANK_RETURN_IF_ERROR(CheckFirstSamples());
  if (const std::string both = FileOfBoth(command_); !both.empty()) {
    std::fprintf(
        Err(),
        "--eval: %s is a file of --data, too, so that the evaluation has samples that were "
        "trained; leave it out of --data to see how the model does on new ones\n",
        both.c_str());
  }
  return OkStatus();
}

// A log of another format must not be found behind a training of hours. A pipe is read once alone.
Status Evaluations::CheckFirstSamples() {
  if (log_ == nullptr || AreReadOnce(command_.eval)) return OkStatus();
  ClickBatch first;
  const Status status = source_->Next(command_.trainer.batch, &first).status();
  // Wrong data are no wrong option.
  if (IsInvalidArgument(status)) return DataLossError(StrCat("--eval: ", status.message()));
  EMBANK_RETURN_IF_ERROR(status);
  EMBANK_ASSIGN_OR_RETURN(source_, OpenData());
  return OkStatus();
}

// Samples behind those of the training, or files of their own.
StatusOr<std::unique_ptr<ClickSource>> Evaluations::OpenData() {
  if (command_.eval_samples == 0) {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ClickReader> log,
                            OpenLog(command_, "--eval", command_.eval));
    log_ = log.get();
    return std::unique_ptr<ClickSource>(std::move(log));
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ClickGenerator> generator,
                          OpenGenerator(command_, command_.samples + command_.eval_samples));
  EMBANK_RETURN_IF_ERROR(generator->SkipTo(command_.samples));
  if (best_auc_ == 0.0) {
    best_auc_ = generator->BestAuc(command_.samples, static_cast<uint32_t>(command_.eval_samples));
  }
  return std::unique_ptr<ClickSource>(std::move(generator));
}

// The store of the training was removed, or made anew, where it is not that of the model.
Status Evaluations::CheckKept(const TrainedModel& kept) const {
  const StatusOr<TrainedModel> training = ReadTrainedModel(command_.trainer.store.path);
  if (!training.ok() && !IsNotFound(training.status())) return training.status();
  if (training.ok() && training->store_id == kept.store_id) return OkStatus();
  return FailedPreconditionError(StrCat(kept_.directory(), " has the best model of another ",
                                        "training, at step ", kept.text.steps,
                                        ": give another --path, or remove it"));
}

StatusOr<TrainedModel> Evaluations::ReadKept() const {
  EMBANK_RETURN_IF_ERROR(kept_.Recover());
  if (!kept_.exists()) return NotFoundError("");
  if (!command_.resume) {
    return FailedPreconditionError(StrCat(kept_.directory(),
                                          " has the best model of another training: give --resume, "
                                          "another --path, or remove it"));
  }
  EMBANK_ASSIGN_OR_RETURN(TrainedModel model, ReadTrainedModel(kept_.directory()));
  EMBANK_RETURN_IF_ERROR(CheckKept(model));
  const std::string difference = DifferenceOf(source_->columns(), model.text.columns);
  if (difference.empty()) return model;
  return FailedPreconditionError(StrCat(kept_.directory(), ": the data of this run ", difference,
                                        "; give another --path, or remove the directory"));
}

// Its score is computed anew: the data of this run may be others than those by which it was kept.
// All ranks have one, or none has.
Status Evaluations::EvaluateKept() {
  if (!has_data_ || best_directory().empty()) return OkStatus();
  StatusOr<TrainedModel> kept = ReadKept();
  if (exchange_ != nullptr) {
    EMBANK_RETURN_IF_ERROR(
        Agree(exchange_, IsNotFound(kept.status()) ? OkStatus() : kept.status()));
    EMBANK_ASSIGN_OR_RETURN(const bool is_whole, HaveOneStep(kept, exchange_));
    if (!is_whole) {
      std::fprintf(Err(),
                   "the ranks do not have one best model, since a job was killed while they kept "
                   "it: the next evaluation is the best so far\n");
      return OkStatus();
    }
  }
  if (IsNotFound(kept.status()) && !kept_.exists()) return OkStatus();
  EMBANK_ASSIGN_OR_RETURN(TrainedModel model, std::move(kept));
  const uint64_t step = model.text.steps;
  const uint32_t batch = model.text.options.batch;
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Trainer> trainer,
                          OpenToPredict(command_, std::move(model), exchange_));
  ProgressLines progress(kPredicted);
  const auto show = [&](double fraction, uint64_t samples) {
    progress.Show(fraction, samples);
    return true;
  };
  EMBANK_ASSIGN_OR_RETURN(const Scores scores,
                          EvaluateAll(source_.get(), trainer.get(), batch, show));
  best_ = {.loss = scores.loss(), .step = step};
  std::fprintf(Err(), "the best model, in %s, is that of step %llu: logloss %.5f, auc %.4f\n",
               kept_.directory().c_str(), static_cast<unsigned long long>(step), scores.loss(),
               scores.auc());
  EMBANK_ASSIGN_OR_RETURN(source_, OpenData());
  return OkStatus();
}

bool Evaluations::IsDue(uint64_t step) const {
  return command_.eval_every > 0 && step % command_.eval_every == 0;
}

bool Evaluations::IsDueAgain(uint64_t step) const {
  return step > 0 && IsDue(step) && !best_directory().empty() && (!best_ || best_->step < step);
}

Status Evaluations::Evaluate(Trainer* trainer, FunctionRef<Status()> save,
                             FunctionRef<bool()> goes_on) {
  if (source_ == nullptr) {
    EMBANK_ASSIGN_OR_RETURN(source_, OpenData());
  }
  const std::unique_ptr<ClickSource> source = std::move(source_);
  ProgressLines progress(kPredicted);
  const auto show = [&](double fraction, uint64_t samples) {
    progress.Show(fraction, samples);
    return goes_on();
  };
  EMBANK_ASSIGN_OR_RETURN(Scores scores,
                          EvaluateAll(source.get(), trainer, command_.trainer.batch, show));
  if (last_.samples() == 0 && log_ != nullptr) PrintBroken(log_->broken_lines());
  if (scores.samples() == 0) return NoSample("--eval", command_.eval, "evaluation");
  last_ = std::move(scores);
  last_step_ = trainer->steps();
  const bool is_best = !best_ || IsLessLoss(last_.loss(), best_->loss);
  if (is_best) {
    best_ = {.loss = last_.loss(), .step = last_step_};
    not_better_ = 0;
  } else if (IsDue(last_step_) && last_step_ > trainer->other_steps()) {
    ++not_better_;
  }
  if (command_.eval_every > 0) Tell();
  if (!is_best || best_directory().empty()) return OkStatus();
  EMBANK_RETURN_IF_ERROR(save());
  return kept_.Replace(trainer->store());
}

void Evaluations::Tell() const {
  const std::string best = best_->step == last_step_ ? "the best so far"
                                                     : StrCat("the best is that of step ",
                                                              best_->step, ", ", best_->loss);
  std::fprintf(Err(), "step %llu  evaluation: logloss %.5f, auc %.4f; %s\n",
               static_cast<unsigned long long>(last_step_), last_.loss(), last_.auc(),
               best.c_str());
}

bool Evaluations::IsOver() const {
  return command_.patience > 0 && not_better_ >= command_.patience;
}

}  // namespace embank
