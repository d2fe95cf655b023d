// embank-train: trains a click model on a log of clicks, with the rows of its id features in a
// store.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/crc32c.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "store/store.h"
#include "store/table/table.h"
#include "train/batch_ahead.h"
#include "train/data/click_reader.h"
#include "train/data/click_text.h"
#include "train/generator/click_generator.h"
#include "train/generator/criteo_writer.h"
#include "train/pipeline/trace_picture.h"
#include "train/scores.h"
#include "train/trainer.h"

namespace embank {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr double kSecondsPerLine = 2.0;
// A trace has so many steps, of two graphs each, behind this one; or those at the begin of a
// shorter run.
constexpr uint64_t kTracedStep = 120;
constexpr uint32_t kTracedGraphs = 2 * 2;
constexpr uint64_t kAblationHbmBytes = uint64_t{16} << 20;

struct Command {
  TrainerOptions trainer;
  std::string data;
  std::string generate;  // a schema, in place of a file
  std::string columns;   // of a CSV file
  std::string eval;
  std::string json;
  std::string weights;    // file for the dense parameters
  std::string write_log;  // file for the generated log
  uint32_t divisor = 1;
  uint64_t samples = 1'000'000;
  uint64_t eval_samples = 0;
  std::optional<uint64_t> steps;  // the last one; without: all data
  uint64_t untimed_steps = 0;
  uint64_t checkpoint_every = 0;
  uint64_t dram_mib = 0;
  uint64_t hbm_mib = 0;
  uint64_t pmem_mib = 0;
  uint64_t micro_batch_kib = 0;
  uint32_t copies = 1;
  std::string trace;
  bool resume = false;
  bool no_packing = false;
  bool ablation = false;
};

StatusOr<std::unique_ptr<ClickGenerator>> OpenGenerator(const Command& command, uint64_t samples) {
  EMBANK_ASSIGN_OR_RETURN(const ClickSchema schema,
                          MakeClickSchema(command.generate, command.divisor, command.copies));
  ClickGeneratorOptions options;
  options.ids.seed = command.trainer.seed;
  options.samples = samples;
  return ClickGenerator::Create(schema, options, nullptr);
}

StatusOr<std::string> ReadText(const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "r");
  if (file == nullptr) return InvalidArgumentError(StrCat("--columns: cannot read ", path));
  std::string text;
  std::array<char, 4096> part;
  for (size_t n; (n = std::fread(part.data(), 1, part.size(), file)) > 0;) {
    text.append(part.data(), n);
  }
  std::fclose(file);
  return text;
}

StatusOr<std::unique_ptr<ClickReader>> OpenLog(const Command& command, const std::string& path) {
  if (command.columns.empty()) return ClickReader::OpenCriteo(path);
  EMBANK_ASSIGN_OR_RETURN(const std::string text, ReadText(command.columns));
  EMBANK_ASSIGN_OR_RETURN(const ColumnFile columns, ParseColumnFile(text));
  return ClickReader::OpenCsv(path, columns);
}

struct TierRows {
  uint64_t hbm = 0, dram = 0, pmem = 0, ssd = 0;
  uint64_t lookups = 0;      // positions
  uint64_t hot_lookups = 0;  // of them in device memory
};

TierRows CountRows(const Trainer& trainer) {
  TierRows rows;
  for (Table* const table : trainer.tables()) {
    const uint64_t below = table->rows_in(Tier::kPmem) + table->rows_in(Tier::kSsd);
    rows.hbm += table->rows_in(Tier::kHbm);
    rows.pmem += table->rows_in(Tier::kPmem);
    rows.ssd += table->rows_in(Tier::kSsd);
    rows.dram += table->rows() - below - table->rows_in(Tier::kHbm);
    const auto& verb = table->counters().verbs[static_cast<size_t>(TableVerb::kLookup)];
    for (const auto& count : verb.keys_by_outcome) rows.lookups += count.load();
    rows.hot_lookups += table->counters().hot_lookups.load();
  }
  return rows;
}

Status WriteText(std::string_view text, const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const bool is_written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && std::fclose(file) == 0;
  if (is_written && is_closed) return OkStatus();
  return UnavailableError(StrCat("cannot write ", path));
}

// Writes the dense parameters as little-endian float32 numbers.
Status WriteWeights(std::span<const float> weights, const std::string& path) {
  static_assert(std::endian::native == std::endian::little);
  return WriteText({reinterpret_cast<const char*>(weights.data()), weights.size_bytes()}, path);
}

// A schema whose features have different dims says the dim of each.
Status TakeDims(Command* command) {
  if (command->generate.empty()) return OkStatus();
  EMBANK_ASSIGN_OR_RETURN(const ClickSchema schema,
                          MakeClickSchema(command->generate, command->divisor, command->copies));
  std::vector<uint32_t> dims;
  for (const IdFieldSchema& field : schema.fields) dims.push_back(field.dim);
  const bool differ = std::ranges::any_of(dims, [&](uint32_t dim) { return dim != dims[0]; });
  if (differ) command->trainer.dims = std::move(dims);
  return OkStatus();
}

// Names the first broken lines of a log.
void PrintBroken(const BrokenLines& broken) {
  if (broken.count == 0) return;
  std::fprintf(stderr, "%llu broken lines were left out; the first:\n",
               static_cast<unsigned long long>(broken.count));
  for (const BrokenLine& line : broken.first) {
    std::fprintf(stderr, "  line %llu: %s\n", static_cast<unsigned long long>(line.number),
                 DefectText(line.defect));
  }
}

// Writes the generated samples of training and evaluation to a file, and trains nothing.
Status WriteLog(const Command& command) {
  const uint64_t samples = command.samples + command.eval_samples;
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickGenerator> generator,
                          OpenGenerator(command, samples));
  return WriteCriteoLog(*generator, samples, command.write_log);
}

class Run {
 public:
  explicit Run(const Command& command) : command_(command) {}

  Status Execute() {
    if (command_.generate.empty()) {
      EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<ClickReader> log, OpenLog(command_, command_.data));
      log_ = log.get();
      source_ = std::move(log);
    } else {
      EMBANK_ASSIGN_OR_RETURN(source_, OpenGenerator(command_, command_.samples));
    }
    EMBANK_ASSIGN_OR_RETURN(trainer_, Trainer::Open(command_.trainer, source_->columns()));
    if (trainer_->steps() > 0 && !command_.resume) {
      return FailedPreconditionError(StrCat("--path has a checkpoint of step ", trainer_->steps(),
                                            ": give --resume, or another directory"));
    }
    if (trainer_->steps() > 0) {
      std::fprintf(stderr, "goes on behind step %llu\n",
                   static_cast<unsigned long long>(trainer_->steps()));
      EMBANK_RETURN_IF_ERROR(source_->SkipTo(trainer_->position()));
    }
    if (!command_.trace.empty()) trainer_->trace()->KeepIntervals(kTracedGraphs);
    EMBANK_RETURN_IF_ERROR(Train(source_.get()));
    if (!command_.trace.empty()) {
      EMBANK_RETURN_IF_ERROR(
          WriteText(TracePicture(trainer_->trace()->intervals()), command_.trace));
    }
    if (log_ != nullptr) PrintBroken(log_->broken_lines());
    if (command_.ablation) return OkStatus();
    EMBANK_RETURN_IF_ERROR(Evaluate());
    Print();
    if (!command_.weights.empty()) {
      EMBANK_RETURN_IF_ERROR(WriteWeights(trainer_->weights(), command_.weights));
    }
    return WriteJson();
  }

  double SamplesPerSecond() const {
    const auto samples = static_cast<double>(scores_.samples() - samples_before_);
    return seconds_ > 0.0 ? samples / seconds_ : 0.0;
  }
  double OperationsPerStep() const {
    return steps_ == 0
               ? 0.0
               : static_cast<double>(trainer_->trace()->operations()) / static_cast<double>(steps_);
  }
  // From PMem and SSD, prefetched ones included.
  double RowsReadPerStep() const {
    const RowLogs* const logs = trainer_->store().logs();
    if (logs == nullptr || steps_ == 0) return 0.0;
    uint64_t rows = logs->lowest().counters().read_rows;
    if (logs->pmem() != nullptr) rows += logs->pmem()->counters().read_rows;
    return static_cast<double>(rows) / static_cast<double>(steps_);
  }
  double loss() const { return scores_.loss(); }
  uint32_t WeightsCrc32c() const { return ExtendCrc32c(0, std::as_bytes(trainer_->weights())); }
  double HotShare() const { return HotShare(CountRows(*trainer_)); }
  size_t packs() const { return trainer_->plan().packs().size(); }

 private:
  bool IsDone() const { return command_.steps && trainer_->steps() >= *command_.steps; }

  // Leaves the time and the samples so far out of the figures of speed.
  void BeginTiming() {
    begin_ns_ = SteadyClock()->NowNs();
    next_line_ = kSecondsPerLine;
    samples_before_ = scores_.samples();
    split_before_ = trainer_->seconds();
  }
  StepSeconds Split() const {
    const StepSeconds split = trainer_->seconds();
    return {.lookup = split.lookup - split_before_.lookup,
            .dense = split.dense - split_before_.dense,
            .gradients = split.gradients - split_before_.gradients};
  }

  Status Train(ClickSource* source) {
    BeginTiming();
    BatchAhead batches(source, trainer_.get(), command_.trainer.batch);
    std::vector<float> logits;
    uint64_t saved = trainer_->steps();
    while (!IsDone()) {
      EMBANK_ASSIGN_OR_RETURN(const ClickBatch* const batch, batches.Next());
      if (batch == nullptr) break;
      const StatusOr<double> loss = trainer_->Step(*batch, &logits);
      if (IsOutOfRange(loss.status())) {
        const std::string path = StrCat("embank-train-step-", trainer_->steps() + 1, ".txt");
        EMBANK_RETURN_IF_ERROR(WriteText(TextOf(*batch), path));
        return OutOfRangeError(StrCat(loss.status().message(), "; its batch is in ", path));
      }
      EMBANK_RETURN_IF_ERROR(loss.status());
      scores_.Add(logits, batch->labels);
      ++steps_;
      // The warm-up is over, and caches are warm.
      if (steps_ == kTracedStep && !command_.trace.empty()) {
        trainer_->trace()->KeepIntervals(kTracedGraphs);
      }
      if (trainer_->steps() == command_.untimed_steps) BeginTiming();
      Show();
      const bool is_due =
          command_.checkpoint_every > 0 && trainer_->steps() % command_.checkpoint_every == 0;
      if (!is_due) continue;
      EMBANK_RETURN_IF_ERROR(trainer_->StartCheckpoint(batches.position()));
      saved = trainer_->steps();
    }
    EMBANK_RETURN_IF_ERROR(trainer_->FinishCheckpoint());
    seconds_ = SecondsSince(begin_ns_);
    if (trainer_->store().checkpoints() == nullptr || saved == trainer_->steps()) return OkStatus();
    return trainer_->Checkpoint(batches.position());
  }

  // The evaluation has the samples behind those of the training, or a file of its own.
  Status Evaluate() {
    if (command_.eval.empty() && command_.eval_samples == 0) return OkStatus();
    if (!command_.eval.empty()) {
      EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickReader> log,
                              OpenLog(command_, command_.eval));
      EMBANK_RETURN_IF_ERROR(EvaluateOn(log.get()));
      PrintBroken(log->broken_lines());
      return OkStatus();
    }
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickGenerator> generator,
                            OpenGenerator(command_, command_.samples + command_.eval_samples));
    EMBANK_RETURN_IF_ERROR(generator->SkipTo(command_.samples));
    best_auc_ = generator->BestAuc(command_.samples, static_cast<uint32_t>(command_.eval_samples));
    return EvaluateOn(generator.get());
  }

  Status EvaluateOn(ClickSource* source) {
    ClickBatch batch;
    std::vector<float> logits;
    for (;;) {
      EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, source->Next(command_.trainer.batch, &batch));
      if (samples == 0) return OkStatus();
      EMBANK_RETURN_IF_ERROR(trainer_->Predict(batch, &logits));
      eval_.Add(logits, batch.labels);
    }
  }

  void Show() {
    const double seconds = SecondsSince(begin_ns_);
    if (seconds < next_line_) return;
    next_line_ = seconds + kSecondsPerLine;
    const TierRows rows = CountRows(*trainer_);
    std::fprintf(stderr,
                 "step %llu  %.0f samples/s  logloss %.5f  auc %.4f  rows %llu hbm, %llu dram, "
                 "%llu pmem, %llu ssd\n",
                 static_cast<unsigned long long>(trainer_->steps()),
                 static_cast<double>(scores_.samples() - samples_before_) / seconds, scores_.loss(),
                 scores_.auc(), static_cast<unsigned long long>(rows.hbm),
                 static_cast<unsigned long long>(rows.dram),
                 static_cast<unsigned long long>(rows.pmem),
                 static_cast<unsigned long long>(rows.ssd));
  }

  double HotShare(const TierRows& rows) const {
    return rows.lookups == 0
               ? 0.0
               : static_cast<double>(rows.hot_lookups) / static_cast<double>(rows.lookups);
  }

  void Print() const {
    const StepSeconds split = Split();
    const TierRows rows = CountRows(*trainer_);
    std::printf("embank-train %s\n", command_.trainer.model.c_str());
    std::printf("  steps          %llu, %llu samples in this run\n",
                static_cast<unsigned long long>(trainer_->steps()),
                static_cast<unsigned long long>(scores_.samples()));
    std::printf("  samples/s      %.0f\n", SamplesPerSecond());
    std::printf("  logloss, auc   %.5f, %.4f of the samples before their steps\n", scores_.loss(),
                scores_.auc());
    if (eval_.samples() > 0) {
      std::printf("  evaluation     %.5f, %.4f of %llu samples", eval_.loss(), eval_.auc(),
                  static_cast<unsigned long long>(eval_.samples()));
      if (best_auc_ > 0.0) std::printf("; the best AUC is %.4f", best_auc_);
      std::printf("\n");
    }
    std::printf("  seconds        lookup %.2f, dense %.2f, gradients %.2f, all %.2f\n",
                split.lookup, split.dense, split.gradients, seconds_);
    std::printf("  operations     %.1f per step, %zu packs, %zu micro-batches\n",
                OperationsPerStep(), trainer_->plan().packs().size(),
                trainer_->plan().micro_batches().size());
    std::printf(
        "  rows           HBM %llu, DRAM %llu, PMem %llu, SSD %llu\n",
        static_cast<unsigned long long>(rows.hbm), static_cast<unsigned long long>(rows.dram),
        static_cast<unsigned long long>(rows.pmem), static_cast<unsigned long long>(rows.ssd));
    if (trainer_->store().logs() != nullptr) {
      std::printf("  rows read      %.1f per step from logs\n", RowsReadPerStep());
    }
    if (rows.hot_lookups > 0) {
      std::printf("  hit ratio      HBM %.3f of %llu lookups\n", HotShare(rows),
                  static_cast<unsigned long long>(rows.lookups));
    }
  }

  Status WriteJson() const {
    if (command_.json.empty()) return OkStatus();
    const StepSeconds split = Split();
    const TierRows rows = CountRows(*trainer_);
    std::string text = StrCat(
        "{\"model\": \"", command_.trainer.model, "\", \"steps\": ", trainer_->steps(),
        ", \"samples\": ", scores_.samples(), ", \"samples_per_second\": ", SamplesPerSecond(),
        ", \"logloss\": ", scores_.loss(), ", \"auc\": ", scores_.auc());
    if (eval_.samples() > 0) {
      StrAppend(&text, ", \"eval_logloss\": ", eval_.loss(), ", \"eval_auc\": ", eval_.auc());
    }
    if (best_auc_ > 0.0) StrAppend(&text, ", \"best_auc\": ", best_auc_);
    if (log_ != nullptr) StrAppend(&text, ", \"broken_lines\": ", log_->broken_lines().count);
    StrAppend(&text, ", \"seconds\": {\"lookup\": ", split.lookup, ", \"dense\": ", split.dense,
              ", \"gradients\": ", split.gradients, ", \"all\": ", seconds_, "}");
    StrAppend(&text, ", \"rows\": {\"hbm\": ", rows.hbm, ", \"dram\": ", rows.dram,
              ", \"pmem\": ", rows.pmem, ", \"ssd\": ", rows.ssd, "}");
    StrAppend(&text, ", \"operations_per_step\": ", OperationsPerStep(),
              ", \"rows_read_per_step\": ", RowsReadPerStep(), ", \"packs\": ", packs(),
              ", \"micro_batches\": ", trainer_->plan().micro_batches().size());
    StrAppend(&text, ", \"weights_crc32c\": ", WeightsCrc32c());
    StrAppend(&text, ", \"hbm_hit_ratio_lookups\": ", HotShare(rows), "}\n");
    return WriteText(text, command_.json);
  }

  static double SecondsSince(uint64_t begin_ns) {
    return static_cast<double>(SteadyClock()->NowNs() - begin_ns) * 1e-9;
  }

  const Command& command_;
  std::unique_ptr<Trainer> trainer_;
  std::unique_ptr<ClickSource> source_;
  const ClickReader* log_ =
      nullptr;  // the source, if it is a file; nullptr: the data are generated
  uint64_t begin_ns_ = 0;
  uint64_t steps_ = 0;  // of this run
  double seconds_ = 0.0;
  double next_line_ = kSecondsPerLine;
  double best_auc_ = 0.0;
  Scores scores_, eval_;
  uint64_t samples_before_ = 0;  // of the steps that the figures of speed leave out
  StepSeconds split_before_;
};

// Trains with each of the eight settings of three switches. All end with the same weights.
class Ablation {
 public:
  explicit Ablation(const Command& command) : command_(command) {}

  Status Execute() {
    std::printf("embank-train %s, switches\n", command_.trainer.model.c_str());
    std::printf("  %-8s %-12s %-8s %10s %6s %6s %8s  %s\n", "packing", "interleaving", "caching",
                "samples/s", "packs", "ops", "HBM hits", "logloss");
    std::string rows;
    for (uint32_t switches = 8; switches-- > 0;) {
      EMBANK_RETURN_IF_ERROR(RunWith(switches, &rows));
    }
    std::printf("\n  ops: operations per step; HBM hits: share of the lookups\n");
    if (command_.json.empty()) return OkStatus();
    return WriteText(
        StrCat("{\"model\": \"", command_.trainer.model, "\", \"runs\": [", rows, "]}\n"),
        command_.json);
  }

 private:
  static const char* OnOff(bool is_on) { return is_on ? "on" : "off"; }

  Status RunWith(uint32_t switches, std::string* rows) {
    const bool packs = (switches & 4) != 0;
    const bool interleaves = (switches & 2) != 0;
    const bool caches = (switches & 1) != 0;
    Command command = command_;
    TrainerOptions& trainer = command.trainer;
    trainer.packing = packs;
    trainer.micro_batches = interleaves ? std::max(2u, trainer.micro_batches) : 1;
    trainer.groups = interleaves ? std::max(2u, trainer.groups) : 1;
    if (!interleaves) trainer.micro_batch_bytes = 0;
    if (!caches) trainer.store.hbm_bytes = 0;
    if (caches && trainer.store.hbm_bytes == 0) trainer.store.hbm_bytes = kAblationHbmBytes;
    Run run(command);
    EMBANK_RETURN_IF_ERROR(run.Execute());
    std::printf("  %-8s %-12s %-8s %10.0f %6zu %6.1f %8.3f  %.9f\n", OnOff(packs),
                OnOff(interleaves), OnOff(caches), run.SamplesPerSecond(), run.packs(),
                run.OperationsPerStep(), run.HotShare(), run.loss());
    StrAppend(rows, rows->empty() ? "" : ", ", "{\"packing\": ", packs ? "true" : "false",
              ", \"interleaving\": ", interleaves ? "true" : "false",
              ", \"caching\": ", caches ? "true" : "false",
              ", \"samples_per_second\": ", run.SamplesPerSecond(), ", \"packs\": ", run.packs(),
              ", \"operations_per_step\": ", run.OperationsPerStep(),
              ", \"hbm_hit_ratio_lookups\": ", run.HotShare(), ", \"logloss\": ", run.loss(),
              ", \"weights_crc32c\": ", run.WeightsCrc32c(), "}");
    if (!weights_) weights_ = run.WeightsCrc32c();
    if (*weights_ == run.WeightsCrc32c()) return OkStatus();
    return DataLossError("the weights depend on the switches: this is a defect of Embank");
  }

  const Command& command_;
  std::optional<uint32_t> weights_;  // of the first run
};

// A run of an hour must not fail at its last line.
Status CheckWritable(const char* option, const std::string& path) {
  if (path.empty()) return OkStatus();
  std::FILE* const file = std::fopen(path.c_str(), "a");
  if (file != nullptr && std::fclose(file) == 0) return OkStatus();
  return InvalidArgumentError(StrCat(option, ": cannot write ", path));
}

Status Complete(Command* command) {
  if (command->data.empty() == command->generate.empty()) {
    return InvalidArgumentError("give either --data FILE or --generate SCHEMA");
  }
  if (command->eval_samples > 0 && command->generate.empty()) {
    return InvalidArgumentError("--eval-samples needs --generate; a file has --eval FILE");
  }
  if (!command->write_log.empty() && command->generate.empty()) {
    return InvalidArgumentError("--write-log needs --generate");
  }
  if (command->checkpoint_every > 0 && command->trainer.store.path.empty()) {
    return InvalidArgumentError("--checkpoint-every needs --path");
  }
  if (command->resume && command->trainer.store.path.empty()) {
    return InvalidArgumentError("--resume needs --path");
  }
  if (command->ablation && !command->trainer.store.path.empty()) {
    return InvalidArgumentError("--ablation makes eight stores, and takes no --path");
  }
  const bool is_for_one_run = !command->trace.empty() || !command->weights.empty() ||
                              !command->eval.empty() || command->eval_samples > 0;
  if (command->ablation && is_for_one_run) {
    return InvalidArgumentError(
        "--ablation makes eight runs, and takes no --trace, --weights, --eval or --eval-samples");
  }
  EMBANK_RETURN_IF_ERROR(TakeDims(command));
  command->trainer.packing = !command->no_packing;
  command->trainer.micro_batch_bytes = command->micro_batch_kib << 10;
  EMBANK_RETURN_IF_ERROR(CheckWritable("--json", command->json));
  EMBANK_RETURN_IF_ERROR(CheckWritable("--weights", command->weights));
  EMBANK_RETURN_IF_ERROR(CheckWritable("--trace", command->trace));
  StoreOptions& store = command->trainer.store;
  store.seed = command->trainer.seed;
  store.dram_bytes = command->dram_mib << 20;
  store.hbm_bytes = command->hbm_mib << 20;
  store.pmem_bytes = command->pmem_mib << 20;
  store.worker_threads = command->trainer.threads;
  return OkStatus();
}

void AddOptions(CLI::App* app, Command* command) {
  TrainerOptions& trainer = command->trainer;
  app->add_option("--model", trainer.model, "dlrm, wide-deep, deep-fm or ffnn")
      ->capture_default_str();
  app->add_option("--data", command->data, "click log in Criteo's format, or CSV; plain or .zst");
  app->add_option("--columns", command->columns, "column file: --data is CSV");
  app->add_option("--generate", command->generate,
                  "schema of a generated log: criteo-kaggle, avazu, product-1, -2 or -3");
  app->add_option("--divisor", command->divisor, "divides the cardinalities of --generate")
      ->capture_default_str();
  app->add_option("--copies", command->copies, "copies of each id feature of --generate")
      ->capture_default_str();
  app->add_option("--samples", command->samples, "of a generated log")->capture_default_str();
  app->add_option("--eval", command->eval, "click log for the evaluation behind the training");
  app->add_option("--eval-samples", command->eval_samples,
                  "generated samples for the evaluation, behind those of the training");
  app->add_option("--steps", command->steps, "the last step; without: all data");
  app->add_option("--untimed-steps", command->untimed_steps,
                  "first steps that the figures of speed leave out");
  app->add_option("--batch", trainer.batch, "samples of a step")->capture_default_str();
  app->add_option("--dim", trainer.dim, "of the rows of id features")->capture_default_str();
  app->add_option("--slices", trainer.slices, "parts of a batch; they change the last bits")
      ->capture_default_str();
  app->add_option("--row-rate", trainer.row_rule.learning_rate, "learning rate of rows (Adagrad)")
      ->capture_default_str();
  app->add_option("--dense-rate", trainer.dense_rule.learning_rate,
                  "learning rate of dense parameters (Adagrad)")
      ->capture_default_str();
  app->add_option("--threads", trainer.threads, "0: one per core")->capture_default_str();
  app->add_option("--seed", trainer.seed, "of first weights and generated data")
      ->capture_default_str();
  app->add_option("--path", trainer.store.path, "directory of the store; without: memory only");
  app->add_option("--dram-mib", command->dram_mib, "memory of the store; 0: no limit");
  app->add_option("--hbm-mib", command->hbm_mib, "device memory for the hottest rows");
  app->add_option("--cuda-device", trainer.store.cuda_device, "-1: the host twin of a device")
      ->capture_default_str();
  app->add_option("--pmem", trainer.store.pmem_path, "directory of the PMem tier");
  app->add_option("--pmem-mib", command->pmem_mib, "size of the PMem tier");
  app->add_option("--checkpoint-every", command->checkpoint_every, "steps between checkpoints");
  app->add_flag("--resume", command->resume, "go on at the last checkpoint of --path");
  app->add_flag("--no-packing", command->no_packing, "each id feature has operations of its own");
  app->add_option("--micro-batches", trainer.micro_batches, "of a batch, 1 to 4")
      ->capture_default_str();
  app->add_option("--micro-batch-kib", command->micro_batch_kib,
                  "memory of a micro-batch's rows; their number follows from it");
  app->add_option("--groups", trainer.groups, "of packs, which share no resource at one moment")
      ->capture_default_str();
  app->add_option("--exclude", trainer.excluded, "id features whose rows wait for no group");
  app->add_option("--warmup-steps", trainer.warmup_steps, "that count ids before packs are split")
      ->capture_default_str();
  app->add_flag("--ablation", command->ablation,
                "train with packing, interleaving and caching on and off: eight runs");
  app->add_option("--trace", command->trace, "file for a picture (SVG) of the operations of steps");
  app->add_option("--json", command->json, "file for the figures");
  app->add_option("--weights", command->weights,
                  "file for the dense parameters at the end: little-endian float32");
  app->add_option("--write-log", command->write_log,
                  "writes the log of --generate to this file, and trains nothing");
}

Status Execute(const Command& command) {
  if (!command.write_log.empty()) return WriteLog(command);
  return command.ablation ? Ablation(command).Execute() : Run(command).Execute();
}

int Main(int argc, char** argv) {
  CLI::App app("Trains a click model whose embedding rows are in an Embank store");
  Command command;
  AddOptions(&app, &command);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  Status status = Complete(&command);
  if (status.ok()) status = Execute(command);
  if (status.ok()) return 0;
  std::fprintf(stderr, "embank-train: %s\n", std::string(status.message()).c_str());
  return IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

}  // namespace
}  // namespace embank

int main(int argc, char** argv) {
  try {
    return embank::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embank-train: %s\n", error.what());
    return embank::kExitFailed;
  }
}
