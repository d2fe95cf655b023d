// embank-train calibrate and info: a log becomes a file of hot and cold batches.
#include <sys/stat.h>
#include <sys/types.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/inspect/json_text.h"
#include "store/table/options.h"
#include "tools/byte_size.h"
#include "tools/calibrate_command.h"
#include "tools/calibration_report.h"
#include "tools/hot_cold_data.h"
#include "tools/next_commands.h"
#include "tools/progress_text.h"
#include "tools/stop_signals.h"
#include "tools/text_file.h"
#include "tools/train_data.h"
#include "train/bytes/byte_source.h"
#include "train/data/click_files.h"
#include "train/data/id_reader.h"
#include "train/fae/calibrator.h"
#include "train/fae/fae_file.h"
#include "train/fae/fae_writer.h"
#include "train/models/model_table.h"

namespace embank {
namespace {

// Wrong lines are no wrong option, and Calibrate returns both.
class LogSource final : public ClickSource {
 public:
  explicit LogSource(ClickReader* log) : log_(log) {}

  const ClickColumns& columns() const override { return log_->columns(); }
  StatusOr<uint32_t> Next(uint32_t samples_max, ClickBatch* batch) override {
    const StatusOr<uint32_t> samples = log_->Next(samples_max, batch);
    if (!samples.ok()) return OfData(samples.status());
    return samples;
  }
  DataPosition position() const override { return log_->position(); }
  Status SkipTo(DataPosition position) override { return OfData(log_->SkipTo(position)); }
  double FractionRead() const override { return log_->FractionRead(); }

 private:
  ClickReader* const log_;
};

// A file that the command reads or writes, in words of the command line.
struct NamedFile {
  std::string name;  // "--out"
  std::string path;
};

// Returns whether two paths have one file, which need not be there yet. Devices and pipes keep
// nothing that could be lost.
bool AreOneFile(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code error;
  const fs::file_status status = fs::status(a, error);
  if (fs::exists(status) && fs::exists(b, error)) {
    return fs::is_regular_file(status) && fs::equivalent(a, b, error);
  }
  return fs::weakly_canonical(fs::absolute(a, error), error) ==
         fs::weakly_canonical(fs::absolute(b, error), error);
}

// INVALID_ARGUMENT: a file that is written is another one of them.
Status CheckApart(std::span<const NamedFile> written, std::span<const NamedFile> read) {
  for (size_t i = 0; i < written.size(); ++i) {
    const auto check = [&](const NamedFile& other) {
      if (!AreOneFile(written[i].path, other.path)) return OkStatus();
      return InvalidArgumentError(
          StrCat(written[i].name, ": ", written[i].path, " is ", other.name, "; give another one"));
    };
    for (const NamedFile& other : read) EMBANK_RETURN_IF_ERROR(check(other));
    for (size_t k = 0; k < i; ++k) EMBANK_RETURN_IF_ERROR(check(written[k]));
  }
  return OkStatus();
}

// Tells a file from itself after a change.
struct FileState {
  dev_t device = 0;
  ino_t inode = 0;
  off_t bytes = 0;
  int64_t seconds = 0;  // of the last change
  int64_t nanoseconds = 0;

  bool operator==(const FileState&) const = default;
};

// A file that is gone has no state.
FileState StateOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return {};
  return {.device = status.st_dev,
          .inode = status.st_ino,
          .bytes = status.st_size,
          .seconds = status.st_mtim.tv_sec,
          .nanoseconds = status.st_mtim.tv_nsec};
}

// A calibration from the command line to its file.
class CalibrateRun {
 public:
  explicit CalibrateRun(const CalibrateCommand& command) : command_(command), log_(command.log) {}

  Status Execute() {
    EMBANK_RETURN_IF_ERROR(TakeOptions());
    EMBANK_RETURN_IF_ERROR(TakeLogFiles());
    EMBANK_RETURN_IF_ERROR(CheckFiles());
    EMBANK_RETURN_IF_ERROR(TakeLog());
    EMBANK_RETURN_IF_ERROR(SumFiles());
    if (command_.reuse) {
      EMBANK_ASSIGN_OR_RETURN(const bool is_reused, Reuse());
      if (is_reused) return OkStatus();
    }
    EMBANK_RETURN_IF_ERROR(Estimate());
    EMBANK_RETURN_IF_ERROR(Write());
    return Report();
  }

 private:
  Status TakeOptions();
  Status TakeLogFiles();
  Status CheckFiles() const;
  Status CheckOut() const;
  Status TakeLog();
  Status SumFiles();
  StatusOr<bool> Reuse() const;
  Status Estimate();
  Status Write();
  Status CheckFilesStayed() const;
  Status Report() const;

  const CalibrateCommand& command_;
  TrainCommand log_;               // with its files
  FaeHeader header_;               // of the file that is wanted
  std::vector<FileState> states_;  // of the log's files, as they were summed
  std::optional<Calibration> calibration_;
  double estimate_seconds_ = 0.0;
};

Status CalibrateRun::TakeOptions() {
  EMBANK_ASSIGN_OR_RETURN(header_.budget_bytes, ParseByteSize("--budget", command_.budget));
  header_.sampled_share = command_.sampled_share;
  if (!(header_.sampled_share > 0.0 && header_.sampled_share <= 1.0)) {
    return InvalidArgumentError(
        StrCat("--sample is ", header_.sampled_share, "; it must be above 0 and at most 1"));
  }
  TrainerOptions& options = log_.trainer;
  EMBANK_ASSIGN_OR_RETURN(options.model, FindModel(log_.model));
  EMBANK_ASSIGN_OR_RETURN(options.row.optimizer, RowOptimizerOf(log_.row_optimizer));
  options.store.worker_threads = options.threads;
  EMBANK_RETURN_IF_ERROR(Validate(options));
  header_.seed = options.seed;
  header_.model = log_.model;
  header_.row_optimizer = log_.row_optimizer;
  return OkStatus();
}

Status CalibrateRun::TakeLogFiles() {
  EMBANK_RETURN_IF_ERROR(TakeColumns(&log_));
  EMBANK_RETURN_IF_ERROR(TakeFiles(&log_));
  StatusOr<std::vector<std::string>> files = FilesOf(command_.files);
  if (!files.ok()) return Status(files.status().code(), StrCat("LOG: ", files.status().message()));
  log_.data = *std::move(files);
  const auto pipe = std::ranges::find_if(log_.data, IsReadOnce);
  if (pipe != log_.data.end()) {
    return InvalidArgumentError(
        StrCat("LOG: ", *pipe,
               " can be read once, and a calibration reads the log twice; give a "
               "file"));
  }
  return OkStatus();
}

// No file of the log, of the columns or of the results is lost to another result.
Status CalibrateRun::CheckFiles() const {
  std::vector<NamedFile> read;
  for (const std::string& file : log_.data) read.push_back({"a file of the log", file});
  if (!log_.columns.empty()) read.push_back({"the file of --columns", log_.columns});
  std::vector<NamedFile> written = {
      {"--out", command_.out},
      {"--out, before it is whole", FaeWriter::UnfinishedPath(command_.out)}};
  if (!command_.json.empty()) written.push_back({"--json", command_.json});
  if (!command_.picture.empty()) written.push_back({"--picture", command_.picture});
  EMBANK_RETURN_IF_ERROR(CheckApart(written, read));
  EMBANK_RETURN_IF_ERROR(CheckOut());
  EMBANK_RETURN_IF_ERROR(CheckWritable("--json", command_.json));
  return CheckWritable("--picture", command_.picture);
}

Status CalibrateRun::TakeLog() {
  EMBANK_RETURN_IF_ERROR(CheckIsLog("LOG", log_.data));
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickReader> log, OpenLog(log_, "LOG", log_.data));
  header_.columns = log->columns();
  EMBANK_ASSIGN_OR_RETURN(header_.columns.format, FormatOfData(log_));
  EMBANK_ASSIGN_OR_RETURN(header_.columns.data, NameOfData(log_, log.get()));
  const ClickColumns& columns = header_.columns;
  EMBANK_RETURN_IF_ERROR(MakeModel(log_.trainer, columns).status());
  header_.row_bytes = HotRowBytesOf(log_.trainer, columns);
  for (const FeatureTable& table : TablesOf(log_.trainer, columns)) {
    if (header_.dims.size() < columns.ids.size()) header_.dims.push_back(table.dim);
  }
  return OkStatus();
}

Status CalibrateRun::CheckOut() const {
  const std::string& out = command_.out;
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(out, error);
  if (std::filesystem::is_directory(status)) {
    return InvalidArgumentError(StrCat("--out: ", out, " is a directory; give a file in it"));
  }
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return InvalidArgumentError(StrCat("--out: ", out, " is no file; give another one"));
  }
  // The file that it begins is removed at once.
  const Status created = FaeWriter::Create(out, ClickColumns()).status();
  return created.ok() ? created : Status(created.code(), StrCat("--out: ", created.message()));
}

Status CalibrateRun::SumFiles() {
  uint64_t bytes = 0;
  uint64_t summed = 0;
  std::error_code error;
  for (const std::string& file : log_.data) bytes += std::filesystem::file_size(file, error);
  ProgressLines progress("bytes summed");
  for (const std::string& file : log_.data) {
    states_.push_back(StateOf(file));
    EMBANK_ASSIGN_OR_RETURN(
        const LogFile sum, SumOfFile(file, [&](uint64_t of_file) {
          const uint64_t read = summed + of_file;
          progress.Show(std::min(1.0, static_cast<double>(read) / static_cast<double>(bytes)),
                        read);
        }));
    header_.files.push_back(sum);
    summed += sum.bytes;
  }
  return OkStatus();
}

// Returns whether the file is there, and was made of the same.
StatusOr<bool> CalibrateRun::Reuse() const {
  const std::string& out = command_.out;
  std::error_code error;
  if (!std::filesystem::exists(out, error)) return false;
  constexpr const char* kAdvice = "; leave --reuse out to replace it, or give another --out";
  const auto file = FaeFile::Open(out);
  if (!file.ok()) {
    return Status(file.status().code(), StrCat("--reuse: ", file.status().message(), kAdvice));
  }
  const FaeHeader& header = (*file)->header();
  const std::string difference = DifferenceOf(header, header_);
  if (!difference.empty()) {
    return FailedPreconditionError(StrCat("--reuse: of ", out, " ", difference, kAdvice));
  }
  std::printf("%s is reused: it was made of the same\n%s", out.c_str(),
              FaeFileText(**file).c_str());
  if (!command_.picture.empty()) {
    std::printf(
        "--picture: %s is not made, because a picture needs a calibration; leave --reuse "
        "out\n",
        command_.picture.c_str());
  }
  if (command_.json.empty()) return true;
  EMBANK_RETURN_IF_ERROR(WriteText(
      StrCat("{\"file\": ", JsonString(out), ", \"is_reused\": true, ", FaeFileJson(**file), "}\n"),
      command_.json));
  return true;
}

Status CalibrateRun::Estimate() {
  const uint64_t begin_ns = SteadyClock()->NowNs();
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickReader> log, OpenLog(log_, "LOG", log_.data));
  LogSource source(log.get());
  const TrainerOptions& trainer = log_.trainer;
  const CalibrationOptions options = {.budget_bytes = header_.budget_bytes,
                                      .sampled_share = header_.sampled_share,
                                      .seed = trainer.seed,
                                      .row_bytes = header_.row_bytes,
                                      .threads = WorkerThreads(trainer.store)};
  ProgressLines progress("inputs read for the estimate");
  uint64_t inputs = 0;
  StatusOr<Calibration> calibration =
      Calibrate(&source, options, [&](double fraction, uint64_t samples) {
        inputs = samples;
        progress.Show(fraction, samples);
        return OkStatus();
      });
  if (!calibration.ok() && IsInvalidArgument(calibration.status()) && inputs == 0) {
    PrintBroken(log->broken_lines());
    return NoSample("LOG", log_.data, "calibration");
  }
  EMBANK_RETURN_IF_ERROR(calibration.status());
  PrintBroken(log->broken_lines());
  estimate_seconds_ = static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  calibration_ = *std::move(calibration);
  header_.counted_share = calibration_->counted_share;
  header_.threshold = calibration_->choice.threshold;
  header_.bound_bytes = static_cast<uint64_t>(std::ceil(calibration_->choice.bound_bytes));
  std::fputs(EstimateText(*calibration_, estimate_seconds_).c_str(), stdout);
  std::fflush(stdout);
  if (command_.picture.empty()) return OkStatus();
  return WriteText(CalibrationSvg(calibration_->curve, header_.threshold), command_.picture);
}

Status CalibrateRun::Write() {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickReader> log, OpenLog(log_, "LOG", log_.data));
  LogSource source(log.get());
  // Before the file is there, which a signal would leave.
  const StopSignals signals(EndWaits);
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<FaeWriter> writer,
                          FaeWriter::Create(command_.out, header_.columns));
  ProgressLines progress("inputs written");
  EMBANK_ASSIGN_OR_RETURN(
      const ClassifiedLog classified,
      WriteBatches(&source, *calibration_, writer.get(), [&](double fraction, uint64_t samples) {
        progress.Show(fraction, samples);
        if (signals.received() == nullptr) return OkStatus();
        return CancelledError(StrCat(signals.received(), ": ", command_.out,
                                     " was not written, and its unfinished part is removed"));
      }));
  EMBANK_RETURN_IF_ERROR(CheckFilesStayed());
  header_.hot_bytes = classified.hot_bytes;
  return writer->Finish(header_, classified.hot_ids);
}

// Lines that are appended or changed while the log is read belong to no sum.
Status CalibrateRun::CheckFilesStayed() const {
  for (size_t i = 0; i < log_.data.size(); ++i) {
    if (StateOf(log_.data[i]) == states_[i]) continue;
    return FailedPreconditionError(
        StrCat("LOG: ", log_.data[i], " has changed while it was read; start again when it stays"));
  }
  return OkStatus();
}

// It is read again, so that a file that cannot be used is known at once.
Status CalibrateRun::Report() const {
  const std::string& out = command_.out;
  EMBANK_ASSIGN_OR_RETURN(const auto file, FaeFile::Open(out));
  std::error_code error;
  const uint64_t bytes = std::filesystem::file_size(out, error);
  std::string next = StrCat("embank-train --data ", ShellWord(out));
  if (log_.model != TrainCommand().model) StrAppend(&next, " --model ", log_.model);
  if (log_.trainer.dim > 0) StrAppend(&next, " --dim ", log_.trainer.dim);
  if (log_.row_optimizer != TrainCommand().row_optimizer) {
    StrAppend(&next, " --row-optimizer ", log_.row_optimizer);
  }
  std::printf("file %s, %llu bytes\n%s\nTrain with it:\n  %s --path DIR\n", out.c_str(),
              static_cast<unsigned long long>(bytes), FaeFileText(*file).c_str(), next.c_str());
  if (command_.json.empty()) return OkStatus();
  return WriteText(
      StrCat("{\"file\": ", JsonString(out), ", \"is_reused\": false, \"file_bytes\": ", bytes,
             ", ", FaeFileJson(*file), ", ", EstimateJson(*calibration_, estimate_seconds_), "}\n"),
      command_.json);
}

void AddRowOptions(CLI::App* use, TrainCommand* command) {
  TrainerOptions& trainer = command->trainer;
  use->add_option("--model", command->model, ModelNames())->capture_default_str();
  use->add_option(
         "--dim", trainer.dim,
         StrCat("of the rows of id features; without: that of the model, or ", kDimDefault))
      ->check([](const std::string& dim) {
        return dim.find_first_not_of('0') == std::string::npos
                   ? StrCat("dim is 0; it must be 1 to ", kDimMax)
                   : std::string();
      });
  use->add_option("--row-optimizer", command->row_optimizer,
                  "of rows: sgd, adagrad, rowwise-adagrad, adam or ftrl")
      ->capture_default_str();
}

}  // namespace

CLI::App* AddCalibrate(CLI::App* app, CalibrateCommand* command) {
  CLI::App* const use = app->add_subcommand(
      "calibrate", "Part a log into hot and cold batches, by a budget for the hot rows");
  TrainCommand& log = command->log;
  use->add_option("LOG", command->files, "click log: files, directories or patterns")->required();
  use->add_option("--budget", command->budget,
                  "memory of the hot rows with their states: 512MiB; or B, KiB or GiB")
      ->required();
  use->add_option("--out", command->out, "file for the hot and cold batches")->required();
  use->add_option("--sample", command->sampled_share, "share of the inputs whose ids are counted")
      ->capture_default_str();
  use->add_option("--columns", log.columns, "column file: LOG is CSV, libsvm or libffm");
  AddBrokenShare(use, &log);
  AddRowOptions(use, &log);
  use->add_option("--seed", log.trainer.seed, "of the sample")->capture_default_str();
  use->add_option("--threads", log.trainer.threads, "0: one per core")->capture_default_str();
  use->add_option("--picture", command->picture,
                  "file for a picture (SVG) of hot rows and hot inputs by threshold");
  use->add_option("--json", command->json, "file for the figures");
  use->add_flag("--reuse", command->reuse, "leave --out as it is, if it was made of the same");
  return use;
}

CLI::App* AddFaeInfo(CLI::App* app, FaeInfoCommand* command) {
  CLI::App* const use = app->add_subcommand("info", "Describe a file of hot and cold batches");
  use->add_option("FILE", command->file, "file that calibrate has written")->required();
  use->add_flag("--json", command->as_json, "print JSON");
  return use;
}

Status RunCalibrate(const CalibrateCommand& command) { return CalibrateRun(command).Execute(); }

Status RunFaeInfo(const FaeInfoCommand& command) {
  EMBANK_ASSIGN_OR_RETURN(const auto file, FaeFile::Open(command.file));
  const std::string text =
      command.as_json
          ? StrCat("{\"file\": ", JsonString(command.file), ", ", FaeFileJson(*file), "}\n")
          : StrCat("file ", command.file, "\n", FaeFileText(*file));
  std::fputs(text.c_str(), stdout);
  return OkStatus();
}

}  // namespace embank
