// embank-bench: the command line.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/clock.h"
#include "bench/cache_report.h"
#include "bench/cache_run.h"
#include "bench/command_options.h"
#include "bench/device_report.h"
#include "bench/device_run.h"
#include "bench/hot_report.h"
#include "bench/hot_run.h"
#include "bench/html_report.h"
#include "bench/kv_run.h"
#include "bench/limits_run.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/packed_report.h"
#include "bench/packed_run.h"
#include "bench/progress.h"
#include "bench/replay.h"
#include "bench/report.h"
#include "bench/run_sections.h"
#include "bench/ssd_report.h"
#include "bench/ssd_run.h"
#include "bench/survive_report.h"
#include "bench/survive_run.h"
#include "bench/tiers_report.h"
#include "bench/tiers_run.h"
#include "bench/traces_run.h"
#include "bench/training_section.h"
#include "tools/wrong_words.h"

namespace embank {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Parses one option's word; the status names the option.
template <typename Value, typename Target>
Status Take(const char* option, const StatusOr<Value>& parsed, Target* target) {
  if (!parsed.ok()) {
    return InvalidArgumentError(StrCat(option, ": ", parsed.status().message()));
  }
  *target = *parsed;
  return OkStatus();
}

Status TakeShape(const Words& words, TableShape* shape) {
  EMBANK_RETURN_IF_ERROR(Take("--type", ParseValueType(words.value_type), &shape->value_type));
  return Take("--optimizer", ParseOptimizer(words.optimizer), &shape->optimizer);
}

Status TakeTraceFormat(const Words& words, std::optional<TraceFormat>* format) {
  if (words.trace_format.empty()) return OkStatus();
  return Take("--trace-format", ParseTraceFormat(words.trace_format), format);
}

Status CheckJsonPath(const std::string& path) {
  if (path.empty()) return OkStatus();
  const Status status = CheckWritable(path);
  if (status.ok()) return OkStatus();
  return InvalidArgumentError(StrCat("--json: ", status.message()));
}

Status CheckReportPath(const std::string& path) {
  if (path.empty()) return OkStatus();
  const Status status = CheckPage(path);
  if (status.ok()) return OkStatus();
  return InvalidArgumentError(StrCat("--report: ", status.message()));
}

Status RunKvWithBudget(const KvOptions& options) {
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const CacheReport report, RunCache(options, &progress));
  progress.Clear();
  std::fputs(CacheTable(machine, options, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, CacheJson(machine, options, report));
}

Status Kv(const Words& words, KvOptions options) {
  EMBANK_RETURN_IF_ERROR(TakeShape(words, &options.shape));
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.trace_format));
  EMBANK_RETURN_IF_ERROR(
      Take("--dist", ParseDistribution(words.distribution), &options.distribution));
  EMBANK_RETURN_IF_ERROR(Take("--id-mode", ParseIdMode(words.id_mode), &options.id_mode));
  options.phases.clear();
  for (const std::string& word : words.phases) {
    EMBANK_RETURN_IF_ERROR(Take("--phases", ParsePhase(word), &options.phases.emplace_back()));
  }
  for (const std::string& word : words.evictions) {
    EMBANK_RETURN_IF_ERROR(
        Take("--eviction", ParseEviction(word), &options.evictions.emplace_back()));
  }
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  if (options.HasBudget()) return RunKvWithBudget(options);
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const KvReport report, RunKv(options, &progress));
  progress.Clear();
  std::fputs(KvTable(machine, options, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, KvJson(machine, options, report));
}

Status Ssd(const Words& words, SsdOptions options) {
  EMBANK_RETURN_IF_ERROR(TakeShape(words, &options.shape));
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.trace_format));
  EMBANK_RETURN_IF_ERROR(
      Take("--dist", ParseDistribution(words.distribution), &options.distribution));
  options.phases.clear();
  for (const std::string& word : words.phases) {
    EMBANK_RETURN_IF_ERROR(Take("--phases", ParseSsdPhase(word), &options.phases.emplace_back()));
  }
  const bool adds_pmem =
      !options.pmem_path.empty() &&
      std::count(options.phases.begin(), options.phases.end(), SsdPhase::kPmem) == 0;
  if (adds_pmem) options.phases.push_back(SsdPhase::kPmem);
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const SsdReport report, RunSsd(options, &progress));
  progress.Clear();
  std::fputs(SsdTable(machine, options, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, SsdJson(machine, options, report));
}

Status CheckMismatches(uint64_t mismatches, const std::string& first) {
  if (mismatches == 0) return OkStatus();
  return InternalError(StrCat("the store differs from the oracle: ", first));
}

Status RunReplayCommand(const Words& words, ReplayOptions options, const RunOrigin& origin) {
  EMBANK_RETURN_IF_ERROR(TakeShape(words, &options.shape));
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.trace_format));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  EMBANK_RETURN_IF_ERROR(CheckReportPath(options.report_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const ReplayReport report, RunReplay(options, &progress));
  progress.Clear();
  std::fputs(ReplayTable(machine, options, report).c_str(), stdout);
  if (!options.json_path.empty()) {
    EMBANK_RETURN_IF_ERROR(WriteFile(options.json_path, ReplayJson(machine, options, report)));
  }
  if (!options.report_path.empty()) {
    EMBANK_RETURN_IF_ERROR(
        AppendToPage(options.report_path, ReplaySection(machine, options, report, origin)));
  }
  return CheckMismatches(report.mismatches, report.first_mismatch);
}

Status Survive(const Words& words, SurviveOptions options, const RunOrigin& origin) {
  EMBANK_RETURN_IF_ERROR(TakeShape(words, &options.replay.shape));
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.replay.trace_format));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.replay.json_path));
  EMBANK_RETURN_IF_ERROR(CheckReportPath(options.replay.report_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const SurviveReport report, RunSurvive(options, &progress));
  progress.Clear();
  std::fputs(SurviveTable(machine, options, report).c_str(), stdout);
  if (!options.replay.json_path.empty()) {
    EMBANK_RETURN_IF_ERROR(
        WriteFile(options.replay.json_path, SurviveJson(machine, options, report)));
  }
  if (!options.replay.report_path.empty()) {
    EMBANK_RETURN_IF_ERROR(
        AppendToPage(options.replay.report_path, SurviveSection(machine, options, report, origin)));
  }
  return CheckMismatches(report.mismatches, report.first_mismatch);
}

Status Tiers(const Words& words, TiersOptions options, const RunOrigin& origin) {
  EMBANK_RETURN_IF_ERROR(TakeShape(words, &options.replay.shape));
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.replay.trace_format));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.replay.json_path));
  EMBANK_RETURN_IF_ERROR(CheckReportPath(options.replay.report_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const TiersReport report, RunTiers(options, &progress));
  progress.Clear();
  std::fputs(TiersTable(machine, options, report).c_str(), stdout);
  if (!options.replay.json_path.empty()) {
    EMBANK_RETURN_IF_ERROR(
        WriteFile(options.replay.json_path, TiersJson(machine, options, report)));
  }
  if (!options.replay.report_path.empty()) {
    EMBANK_RETURN_IF_ERROR(
        AppendToPage(options.replay.report_path, TiersSection(machine, options, report, origin)));
  }
  return CheckMismatches(report.mismatches, report.first_mismatch);
}

Status Training(const TrainingPageOptions& options, RunOrigin origin) {
  origin.command = options.command;
  EMBANK_ASSIGN_OR_RETURN(const HtmlSection section,
                          TrainingSection(DescribeMachine(), options.json_path, origin));
  EMBANK_RETURN_IF_ERROR(CheckReportPath(options.report_path));
  return AppendToPage(options.report_path, section);
}

Status Limits(const LimitsOptions& options) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const LimitsReport report, RunLimits(options, &progress));
  progress.Clear();
  std::fputs(LimitsTable(machine, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, LimitsJson(machine, options, report));
}

Status Traces(const TracesOptions& options) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const TracesReport report, RunTraces(options, &progress));
  progress.Clear();
  std::fputs(TracesTable(machine, options, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, TracesJson(machine, options, report));
}

Status CheckCurvePaths(const HotOptions& options) {
  for (const std::string& path : {options.curve_csv, options.curve_svg}) {
    if (path.empty()) continue;
    const Status status = CheckWritable(path);
    if (!status.ok()) return InvalidArgumentError(StrCat("--curve: ", status.message()));
  }
  return OkStatus();
}

Status Hot(const Words& words, const std::vector<std::string>& curve, HotOptions options) {
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.trace_format));
  if (!curve.empty()) {
    options.curve_csv = curve[0];
    options.curve_svg = curve[1];
  }
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  EMBANK_RETURN_IF_ERROR(CheckCurvePaths(options));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const HotReport report, RunHot(options, &progress));
  progress.Clear();
  std::fputs(HotTable(machine, options, report).c_str(), stdout);
  if (!options.curve_csv.empty()) {
    EMBANK_RETURN_IF_ERROR(WriteFile(options.curve_csv, HotCurveCsv(report)));
    EMBANK_RETURN_IF_ERROR(WriteFile(options.curve_svg, HotCurveSvg(report)));
  }
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, HotJson(machine, options, report));
}

Status Packed(const PackedOptions& options) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const PackedReport report, RunPacked(options, &progress));
  progress.Clear();
  std::fputs(PackedTable(machine, options, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, PackedJson(machine, options, report));
}

Status DeviceCommand(const DeviceOptions& options) {
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.json_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const DeviceReport report, RunDevice(options, &progress));
  progress.Clear();
  std::fputs(DeviceTable(machine, options, report).c_str(), stdout);
  if (options.json_path.empty()) return OkStatus();
  return WriteFile(options.json_path, DeviceJson(machine, options, report));
}

int ExitCode(const Status& status) {
  if (status.ok()) return 0;
  std::fprintf(stderr, "embank-bench: %s\n", std::string(status.message()).c_str());
  return IsInvalidArgument(status) ? kExitUsage : kExitFailed;
}

// As CommandProblem of tools/wrong_words.h, of the parser's commands.
std::string ProblemOf(const CLI::App& app, int argc, char** argv) {
  std::vector<std::pair<std::string, std::string>> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands.emplace_back(command->get_name(), command->get_description());
  }
  return CommandProblem("embank-bench", {argv + std::min(argc, 1), argv + argc}, commands);
}

int Main(int argc, char** argv) {
  CLI::App app("Benchmarks of Embank, an embedded key-value store for embeddings");
  app.require_subcommand(1);
  app.failure_message([](const CLI::App*, const CLI::Error& error) {
    return StrCat("embank-bench: ", error.what(),
                  "\nRun 'embank-bench COMMAND --help' for the options of a command.\n");
  });
  KvOptions kv_options;
  Words words = WordsOf(kv_options);
  const CLI::App* const kv = AddKv(&app, &kv_options, &words);
  SsdOptions ssd_options;
  Words ssd_words = WordsOf(ssd_options);
  const CLI::App* const ssd = AddSsd(&app, &ssd_options, &ssd_words);
  ReplayOptions replay_options;
  AddReplay(&app, &replay_options, &words);
  SurviveOptions survive_options;
  const CLI::App* const survive = AddSurvive(&app, &survive_options, &words);
  TiersOptions tiers_options;
  const CLI::App* const tiers = AddTiers(&app, &tiers_options, &words);
  TrainingPageOptions training_options;
  const CLI::App* const training = AddTraining(&app, &training_options);
  LimitsOptions limits_options;
  const CLI::App* const limits = AddLimits(&app, &limits_options);
  TracesOptions traces_options;
  const CLI::App* const traces = AddTraces(&app, &traces_options);
  HotOptions hot_options;
  std::vector<std::string> hot_curve;
  const CLI::App* const hot = AddHot(&app, &hot_options, &words, &hot_curve);
  PackedOptions packed_options;
  const CLI::App* const packed = AddPacked(&app, &packed_options);
  DeviceOptions device_options;
  const CLI::App* const device = AddDevice(&app, &device_options);
  const std::string problem = ProblemOf(app, argc, argv);
  if (!problem.empty()) {
    std::fputs(problem.c_str(), stderr);
    return kExitUsage;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  const std::vector<const char*> command(argv, argv + argc);
  const RunOrigin origin{CommandText(command), TimeText(std::time(nullptr))};
  if (traces->parsed()) return ExitCode(Traces(traces_options));
  if (packed->parsed()) return ExitCode(Packed(packed_options));
  if (device->parsed()) return ExitCode(DeviceCommand(device_options));
  if (hot->parsed()) return ExitCode(Hot(words, hot_curve, hot_options));
  if (survive->parsed()) return ExitCode(Survive(words, survive_options, origin));
  if (tiers->parsed()) return ExitCode(Tiers(words, tiers_options, origin));
  if (training->parsed()) return ExitCode(Training(training_options, origin));
  if (ssd->parsed()) return ExitCode(Ssd(ssd_words, ssd_options));
  if (limits->parsed()) return ExitCode(Limits(limits_options));
  return ExitCode(kv->parsed() ? Kv(words, kv_options)
                               : RunReplayCommand(words, replay_options, origin));
}

}  // namespace
}  // namespace embank

int main(int argc, char** argv) {
  try {
    return embank::Main(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "embank-bench: %s\n", error.what());
    return embank::kExitFailed;
  }
}
