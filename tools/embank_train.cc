// embank-train: trains a click model on a log of clicks, with the rows of its id features in a
// store; and predicts with it.
#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"
#include "store/payload/topk_flush.h"
#include "tools/calibrate_command.h"
#include "tools/model_command.h"
#include "tools/rank_job.h"
#include "tools/rank_output.h"
#include "tools/text_file.h"
#include "tools/train_command.h"
#include "tools/train_data.h"
#include "tools/train_run.h"
#include "tools/wrong_words.h"
#include "train/data/criteo_parser.h"
#include "train/generator/criteo_writer.h"

namespace embank {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr uint64_t kAblationHbmBytes = uint64_t{16} << 20;

// Writes the generated samples of training and evaluation to a file, and trains nothing.
Status WriteLog(const TrainCommand& command) {
  const uint64_t samples = command.samples + command.eval_samples;
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<ClickGenerator> generator,
                          OpenGenerator(command, samples));
  const ClickColumns& columns = generator->columns();
  const CriteoParser reader;
  const ClickColumns& readable = reader.columns();
  if (columns.dense.size() != readable.dense.size() || columns.ids.size() != readable.ids.size()) {
    return InvalidArgumentError(StrCat("--write-log: the data have ", columns.dense.size(),
                                       " dense features and ", columns.ids.size(),
                                       " id features; --data reads logs of ", readable.dense.size(),
                                       " and ", readable.ids.size()));
  }
  return WriteCriteoLog(*generator, samples, command.write_log);
}

// Trains with each of the eight settings of three switches. All end with the same weights, rows and
// states.
class Ablation {
 public:
  explicit Ablation(const TrainCommand& command) : command_(command) {}

  Status Execute() {
    std::printf("embank-train %s, switches\n", command_.model.c_str());
    std::printf("  %-8s %-12s %-8s %10s %6s %6s %8s %8s %8s  %s\n", "packing", "interleaving",
                "caching", "samples/s", "packs", "ops", "batches", "walks", "HBM hits", "logloss");
    std::string rows;
    for (uint32_t switches = 8; switches-- > 0;) {
      EMBANK_RETURN_IF_ERROR(RunWith(switches, &rows));
    }
    std::printf(
        "\n  ops: operations per step; batches: lookups and gradients of one table per step; "
        "walks: "
        "runs\n  of keys through the index per step; HBM hits: share of the lookups. All runs "
        "have the same\n  weights, rows and states.\n");
    if (command_.json.empty()) return OkStatus();
    return WriteText(StrCat("{\"model\": \"", command_.model, "\", \"runs\": [", rows, "]}\n"),
                     command_.json);
  }

 private:
  struct Switches {
    bool packs;
    bool interleaves;
    bool caches;
  };

  static const char* OnOff(bool is_on) { return is_on ? "on" : "off"; }

  Status RunWith(uint32_t switches, std::string* rows) {
    const bool packs = (switches & 4) != 0;
    const bool interleaves = (switches & 2) != 0;
    const bool caches = (switches & 1) != 0;
    TrainCommand command = command_;
    TrainerOptions& trainer = command.trainer;
    if (!packs) trainer.packs.rule = PackRule::kNone;
    trainer.micro_batches = interleaves ? std::max(2u, trainer.micro_batches) : 1;
    trainer.packs.groups = interleaves ? std::max(2u, trainer.packs.groups) : 1;
    if (!interleaves) trainer.micro_batch_bytes = trainer.packs.group_bytes = 0;
    if (!caches) {
      trainer.store.hbm_bytes = 0;
      trainer.store.warmup_iters = trainer.store.flush_iters = 0;
    }
    if (caches && trainer.store.hbm_bytes == 0) trainer.store.hbm_bytes = kAblationHbmBytes;
    TrainRun run(command);
    EMBANK_RETURN_IF_ERROR(run.Execute());
    return Report({packs, interleaves, caches}, run, rows);
  }

  Status Report(const Switches& switches, const TrainRun& run, std::string* rows) {
    const TrainFigures& figures = run.figures();
    const double hot_share = figures.answers.RatioOf(figures.answers.hbm);
    EMBANK_ASSIGN_OR_RETURN(const uint64_t checksum, run.ChecksumOfRows());
    std::printf("  %-8s %-12s %-8s %10.0f %6zu %6.1f %8.1f %8.1f %8.3f  %.9f\n",
                OnOff(switches.packs), OnOff(switches.interleaves), OnOff(switches.caches),
                figures.samples_per_second, run.packs(), figures.operations_per_step,
                figures.table_batches_per_step, figures.index_walks_per_step, hot_share,
                run.loss());
    StrAppend(
        rows, rows->empty() ? "" : ", ", "{\"packing\": ", switches.packs ? "true" : "false",
        ", \"interleaving\": ", switches.interleaves ? "true" : "false",
        ", \"caching\": ", switches.caches ? "true" : "false",
        ", \"samples_per_second\": ", figures.samples_per_second, ", \"packs\": ", run.packs(),
        ", \"operations_per_step\": ", figures.operations_per_step,
        ", \"table_batches_per_step\": ", figures.table_batches_per_step,
        ", \"index_walks_per_step\": ", figures.index_walks_per_step,
        ", \"hbm_hit_ratio_lookups\": ", hot_share, ", \"logloss\": ", run.loss(),
        ", \"weights_crc32c\": ", run.WeightsCrc32c(), ", \"rows_checksum\": ", checksum, "}");
    if (switches.caches && figures.answers.hbm == 0) return NoHotHit(run.lookup_batches());
    if (!first_) first_ = {run.WeightsCrc32c(), checksum};
    if (*first_ == Results{run.WeightsCrc32c(), checksum}) return OkStatus();
    return DataLossError(
        "weights, rows or states depend on the switches: this is a defect of "
        "Embank");
  }

  // A run with caching that hits nothing is the same run as the one without.
  Status NoHotHit(uint64_t lookup_batches) const {
    const uint32_t warmup = command_.trainer.store.warmup_iters;
    return FailedPreconditionError(StrCat(
        "--ablation: with caching on, no lookup found its row in device memory, so that "
        "nothing was compared. The busiest table must have more than --hot-warmup (",
        warmup == 0 ? TopkFlushOptions().warmup_iters : warmup, ") lookup batches; all tables had ",
        lookup_batches, ". Give a lower --hot-warmup, or more --samples"));
  }

  // No switch changes these.
  struct Results {
    uint32_t weights_crc32c;
    uint64_t rows_checksum;
    bool operator==(const Results&) const = default;
  };

  const TrainCommand& command_;
  std::optional<Results> first_;  // of the first run
};

// Trains with 1, 2, ... copies of each id feature. A rate that falls no faster than features grow
// has a last column of 1 or more.
Status TrainCopies(const TrainCommand& base) {
  std::printf("embank-train %s, copies of id features\n", base.model.c_str());
  std::printf("  %6s %8s %6s %10s  %s\n", "copies", "features", "packs", "samples/s",
              "x n / first");
  std::string rows;
  double first = 0.0;
  for (uint32_t copies = 1; copies <= *base.copies_up_to; ++copies) {
    TrainCommand command = base;
    command.scale.copies = copies;
    EMBANK_RETURN_IF_ERROR(TakeDims(&command));
    TrainRun run(command);
    EMBANK_RETURN_IF_ERROR(run.Execute());
    const double rate = run.figures().samples_per_second;
    if (copies == 1) first = rate;
    const double share = first > 0.0 ? rate * copies / first : 0.0;
    std::printf("  %6u %8zu %6zu %10.0f  %.3f\n", copies, run.id_features(), run.packs(), rate,
                share);
    std::fflush(stdout);
    StrAppend(&rows, rows.empty() ? "" : ", ", "{\"copies\": ", copies,
              ", \"id_features\": ", run.id_features(), ", \"packs\": ", run.packs(),
              ", \"samples_per_second\": ", rate, ", \"times_copies_by_first\": ", share, "}");
  }
  if (base.json.empty()) return OkStatus();
  return WriteText(StrCat("{\"model\": \"", base.model, "\", \"runs\": [", rows, "]}\n"),
                   base.json);
}

Status Execute(const TrainCommand& command, const RankJob& job) {
  if (!command.write_log.empty()) return WriteLog(command);
  if (command.copies_up_to) return TrainCopies(command);
  if (command.ablation) return Ablation(command).Execute();
  return job.Execute(command, [](const TrainCommand& of_rank, Exchange* exchange) {
    return TrainRun(of_rank, exchange).Execute();
  });
}

// The commands beside a training.
struct Use {
  CLI::App* app;
  std::function<Status()> run;
};

// As CommandProblem and OptionProblem of wrong_words.h, of the parser's commands and options.
std::string ProblemOf(const CLI::App& app, std::span<const Use> uses, int argc, char** argv) {
  CommandLineWords words(argv + std::min(argc, 1), argv + argc);
  std::string program = "embank-train";
  const CLI::App* used = &app;
  if (!words.empty() && !words[0].starts_with('-')) {
    std::vector<std::pair<std::string, std::string>> commands;
    for (const Use& use : uses) {
      commands.emplace_back(use.app->get_name(), use.app->get_description());
      if (words[0] == use.app->get_name()) used = use.app;
    }
    const std::string problem = CommandProblem(program, words, commands);
    if (!problem.empty()) return problem;
    StrAppend(&program, " ", words[0]);
    words.erase(words.begin());
  }
  std::vector<std::string> options;
  for (const CLI::Option* option : used->get_options()) {
    for (const std::string& name : option->get_lnames()) options.push_back("--" + name);
  }
  return OptionProblem(program, words, options);
}

// Returns the exit code, if the program ends here.
std::optional<int> Parse(CLI::App* app, int argc, char** argv) {
  try {
    app->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app->exit(error) == 0 ? 0 : kExitUsage;
  }
  return std::nullopt;
}

// The option by which a person has given what a message of the library is about. Empty: none.
std::string_view OptionOf(std::string_view message) {
  constexpr std::pair<std::string_view, std::string_view> kOptions[] = {
      {"batch is", "--batch"},
      {"buffer of samples", "--buffer-samples"},
      {"create directory", "--path"},
      {"dim is", "--dim"},
      {"dram_bytes", "--dram-mib"},
      {"drop_updates", "--drop-updates"},
      {"excluded", "--exclude"},
      {"flush_iters", "--hot-every"},
      {"groups", "--groups"},
      {"hbm_bytes", "--hbm-mib"},
      {"micro_batches", "--micro-batches"},
      {"model is", "--model"},
      {"open ", "--path"},
      {"pmem_bytes", "--pmem-mib"},
      {"pmem_path", "--pmem"},
      {"pool at owner", "--pool-at-owner"},
      {"replicate", "--replicate"},
      {"roles:", "--roles"},
      {"seed", "--seed"},
      {"slices", "--slices"},
      {"ssd_bytes", "--ssd-mib"},
      {"staleness", "--staleness"},
      {"the budget for hot rows", "--budget"},
      {"the checkpoint is of", "--path"},
      {"the data have no id features", "--columns"},
      {"the dim of", "--dim"},
      {"the factor of the schedule", "--schedule-factor"},
      {"the rule of dense parameters: learning_rate", "--dense-rate"},
      {"the rule of dense parameters: max_gradient_norm", "--dense-clip"},
      {"the rule of dense parameters: weight_decay", "--dense-decay"},
      {"the rule of rows: learning_rate", "--row-rate"},
      {"the rule of rows: max_gradient_norm", "--row-clip"},
      {"the rule of rows: weight_decay", "--row-decay"},
      {"the sampled share", "--sample"},
      {"the schedule", "--schedule-steps"},
      {"warmup_iters", "--hot-warmup"},
      {"worker_threads", "--threads"}};
  // That of a rank begins with its number.
  if (message.starts_with("rank ") && message.find(": ") != std::string_view::npos) {
    message.remove_prefix(message.find(": ") + 2);
  }
  for (const auto& [begin, option] : kOptions) {
    if (message.starts_with(begin)) return option;
  }
  return "";
}

int ExitCodeOf(const Status& status) {
  if (status.ok()) return 0;
  const std::string_view option = OptionOf(status.message());
  std::fprintf(stderr, "embank-train: %s%s%s\n", std::string(option).c_str(),
               option.empty() ? "" : ": ", std::string(status.message()).c_str());
  return IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

// Completes the command with the model that it goes on with, and trains.
StatusOr<int> Train(CLI::App* app, int argc, char** argv, TrainCommand* command) {
  EMBANK_ASSIGN_OR_RETURN(const RankJob job, RankJob::Join(*command, environ));
  SetSilent(!job.tells());
  command->role_ranks = job.ranks();
  const auto told = [&](const Status& status) {
    return job.tells() || status.ok() ? ExitCodeOf(status) : kExitFailed;
  };
  if (command->resume && !command->trainer.store.path.empty()) {
    const Status taken = job.AgreeOn(TakeTrainedModel(job.FirstPath(*command), command));
    if (!taken.ok()) return told(taken);
    if (const std::optional<int> ended = Parse(app, argc, argv)) return *ended;
  }
  const Status completed = job.AgreeOn(Complete(command));
  return told(completed.ok() ? Execute(*command, job) : completed);
}

int Main(int argc, char** argv) {
  CLI::App app("Trains a click model whose embedding rows are in an Embank store");
  app.set_version_flag("--version", EMBANK_VERSION);
  TrainCommand command;
  command.words.assign(argv, argv + argc);
  AddOptions(&app, &command);
  ModelCommand use_command;
  CalibrateCommand calibrate;
  FaeInfoCommand info;
  const Use uses[] = {{AddPredict(&app, &use_command), [&] { return RunPredict(use_command); }},
                      {AddEvaluate(&app, &use_command), [&] { return RunEvaluate(use_command); }},
                      {AddDescribe(&app, &use_command), [&] { return RunDescribe(use_command); }},
                      {AddCalibrate(&app, &calibrate), [&] { return RunCalibrate(calibrate); }},
                      {AddFaeInfo(&app, &info), [&] { return RunFaeInfo(info); }}};
  CheckNumbers(&app);
  for (const Use& use : uses) CheckNumbers(use.app);
  const std::string problem = ProblemOf(app, uses, argc, argv);
  if (!problem.empty()) {
    std::fputs(problem.c_str(), stderr);
    return kExitUsage;
  }
  if (const std::optional<int> ended = Parse(&app, argc, argv)) return *ended;
  for (const Use& use : uses) {
    if (use.app->parsed()) return ExitCodeOf(use.run());
  }
  const StatusOr<int> ended = Train(&app, argc, argv, &command);
  return ended.ok() ? *ended : ExitCodeOf(ended.status());
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
