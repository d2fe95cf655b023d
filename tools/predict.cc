// embank-train predict and evaluate: a trained model and a log.
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/exact_text.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tools/model_command.h"
#include "tools/numbered_samples.h"
#include "tools/output_file.h"
#include "tools/progress_text.h"
#include "tools/stop_signals.h"
#include "tools/train_data.h"
#include "tools/trained_model.h"
#include "train/batch_ahead.h"
#include "train/bytes/byte_source.h"
#include "train/data/click_files.h"
#include "train/dense/activation.h"
#include "train/evaluation.h"

namespace embank {
namespace {

// A trainer that predicts alone, and a log with the columns of its model.
struct OpenedModel {
  std::unique_ptr<ClickReader> log;
  std::unique_ptr<Trainer> trainer;
  uint32_t batch = 0;
};

Status CheckColumns(const TrainCommand& command, bool has_labels, ClickColumns of_log,
                    const ClickColumns& of_model) {
  EMBANK_ASSIGN_OR_RETURN(of_log.format, FormatOfData(command, has_labels));
  const std::string difference = DifferenceOf(of_log, of_model);
  if (difference.empty()) return OkStatus();
  return InvalidArgumentError(StrCat(
      command.columns.empty() ? StrCat("--data: the lines of ", command.data[0])
                              : StrCat("--columns: the columns of ", command.columns),
      " ", difference, "; give --columns FILE with the features of the model, in their order"));
}

StatusOr<OpenedModel> OpenModel(const ModelCommand& command, bool has_labels) {
  TrainCommand log = command.log;
  EMBANK_ASSIGN_OR_RETURN(TrainedModel model, ReadTrainedModel(log.trainer.store.path));
  log.format = model.text.columns.format;
  log.rules = RulesOf(log.format);
  OpenedModel opened;
  EMBANK_RETURN_IF_ERROR(TakeColumns(&log));
  EMBANK_RETURN_IF_ERROR(TakeFiles(&log));
  EMBANK_ASSIGN_OR_RETURN(opened.log, OpenLog(log, "--data", log.data, has_labels));
  EMBANK_RETURN_IF_ERROR(CheckColumns(log, has_labels, opened.log->columns(), model.text.columns));
  opened.batch = model.text.options.batch;
  const uint64_t steps = model.text.steps;
  EMBANK_ASSIGN_OR_RETURN(opened.trainer, OpenToPredict(log, std::move(model)));
  std::fprintf(stderr, "the model is in %s, at step %llu\n", log.trainer.store.path.c_str(),
               static_cast<unsigned long long>(steps));
  return opened;
}

// INVALID_ARGUMENT: the scores would replace the log.
Status CheckOut(const ModelCommand& command) {
  const StatusOr<std::vector<std::string>> files = FilesOf(command.log.data);
  if (!files.ok()) return OkStatus();  // OpenLog says why
  for (const std::string& file : *files) {
    std::error_code error;
    if (!std::filesystem::equivalent(command.out, file, error)) continue;
    return InvalidArgumentError(
        StrCat("--out: ", command.out, " is a file of --data; give another one"));
  }
  return OkStatus();
}

// Readers of CSV skip an empty line, and the scores after it would move up.
void AppendBroken(uint64_t lines, std::string* text) {
  for (uint64_t i = 0; i < lines; ++i) text->append("NaN\n");
}

// Appends the scores of a batch with its broken lines.
void AppendScores(std::span<const float> logits, const BrokenBeside& broken, std::string* text) {
  for (size_t i = 0; i < logits.size(); ++i) {
    AppendBroken(broken.before[i], text);
    StrAppend(text, ExactText(static_cast<float>(Sigmoid(static_cast<double>(logits[i])))), "\n");
  }
  AppendBroken(broken.behind, text);
}

// Writes the scores of all lines. Returns the number of samples. CANCELLED: a signal came.
StatusOr<uint64_t> WriteScores(const OpenedModel& model, const std::optional<StopSignals>& signals,
                               ProgressLines* progress, OutputFile* file) {
  EMBANK_RETURN_IF_ERROR(file->Write("score\n"));
  NumberedSamples source(model.log.get());
  BatchAhead batches(&source, model.trainer.get(), model.batch);
  std::vector<float> logits;
  std::string text;
  uint64_t samples = 0;
  for (bool is_done = false; !is_done;) {
    EMBANK_ASSIGN_OR_RETURN(const ClickBatch* const batch, batches.Next());
    if (signals && signals->received() != nullptr) {
      return CancelledError(StrCat(signals->received(), ": --out was not written"));
    }
    is_done = batch == nullptr;
    logits.clear();
    if (!is_done) EMBANK_RETURN_IF_ERROR(model.trainer->Predict(*batch, &logits));
    text.clear();
    AppendScores(logits, source.TakeBroken(), &text);
    EMBANK_RETURN_IF_ERROR(file->Write(text));
    samples += logits.size();
    progress->Show(batches.FractionRead(), samples);
  }
  return samples;
}

CLI::App* AddUseOfModel(CLI::App* app, const char* name, const char* what, ModelCommand* command) {
  CLI::App* const use = app->add_subcommand(name, what);
  TrainCommand& log = command->log;
  use->add_option("--path", log.trainer.store.path, "directory of the model, or of an export of it")
      ->required();
  use->add_option("--data", log.data,
                  "click log with the columns of the model: files, directories, patterns or -")
      ->required();
  AddBrokenShare(use, &log);
  use->add_option("--columns", log.columns, "column file; without: that of the training");
  use->add_option("--threads", log.trainer.threads, "0: one per core")->capture_default_str();
  use->add_option("--dram-mib", log.dram_mib, "memory of the store; 0: no limit");
  use->add_option("--pmem", log.trainer.store.pmem_path,
                  "directory of its PMem, if that has been moved");
  return use;
}

}  // namespace

CLI::App* AddPredict(CLI::App* app, ModelCommand* command) {
  CLI::App* const use = AddUseOfModel(
      app, "predict", "Write the probability of a click for each line of a log", command);
  use->add_option("--out", command->out,
                  "file for the scores: a header, then a line for each line of the log; -: the "
                  "standard output")
      ->required();
  return use;
}

CLI::App* AddEvaluate(CLI::App* app, ModelCommand* command) {
  return AddUseOfModel(app, "evaluate", "Print logloss and AUC of a log", command);
}

Status RunPredict(const ModelCommand& command) {
  EMBANK_RETURN_IF_ERROR(CheckOut(command));
  // Before the file is there, which --data may be the directory of.
  EMBANK_ASSIGN_OR_RETURN(const OpenedModel model, OpenModel(command, /*has_labels=*/false));
  OutputFile file(command.out);
  EMBANK_RETURN_IF_ERROR(file.Open());
  std::optional<StopSignals> signals;
  // Elsewhere a signal leaves nothing to remove, and ends the process as usual.
  if (file.has_part()) signals.emplace(EndWaits);
  ProgressLines progress("samples predicted");
  const StatusOr<uint64_t> samples = WriteScores(model, signals, &progress, &file);
  EMBANK_RETURN_IF_ERROR(OfData(samples.status()));
  EMBANK_RETURN_IF_ERROR(file.Finish());
  PrintBroken(model.log->broken_lines());
  std::fprintf(stderr, "%llu samples predicted, %.0f per second; scores in %s\n",
               static_cast<unsigned long long>(*samples), progress.PerSecond(*samples),
               command.out == "-" ? "the standard output" : command.out.c_str());
  return OkStatus();
}

Status RunEvaluate(const ModelCommand& command) {
  EMBANK_ASSIGN_OR_RETURN(const OpenedModel model, OpenModel(command, /*has_labels=*/true));
  ProgressLines progress("samples predicted");
  const auto show = [&](double fraction, uint64_t samples) {
    progress.Show(fraction, samples);
    return true;
  };
  const StatusOr<Scores> scores =
      EvaluateAll(model.log.get(), model.trainer.get(), model.batch, show);
  EMBANK_RETURN_IF_ERROR(OfData(scores.status()));
  PrintBroken(model.log->broken_lines());
  if (scores->samples() == 0) {
    return NoSample("--data", command.log.data, "evaluation");
  }
  std::printf("logloss  %s\nauc      %s\nsamples  %s\n", StrCat(scores->loss()).c_str(),
              StrCat(scores->auc()).c_str(), StrCat(scores->samples()).c_str());
  return OkStatus();
}

}  // namespace embank
