// embank-bench: the command line.
#include <CLI/CLI.hpp>
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
#include "tools/wrong_words.h"

namespace embank {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;

// Options that are words, before they are parsed: at first those of the defaults.
struct Words {
  std::vector<std::string> phases;
  std::vector<std::string> evictions;
  std::string value_type;
  std::string optimizer;
  std::string distribution;
  std::string id_mode;
  std::string trace_format;
};

// Commands have the same words; only kv has id_mode.
template <typename Options>
Words WordsOf(const Options& options) {
  Words words;
  for (const auto phase : options.phases) words.phases.emplace_back(PhaseName(phase));
  words.value_type = ValueTypeName(options.shape.value_type);
  words.optimizer = OptimizerName(options.shape.optimizer);
  words.distribution = DistributionName(options.distribution);
  words.id_mode = IdModeName(KvOptions().id_mode);
  return words;
}

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

Status Tiers(const Words& words, TiersOptions options) {
  EMBANK_RETURN_IF_ERROR(TakeShape(words, &options.replay.shape));
  EMBANK_RETURN_IF_ERROR(TakeTraceFormat(words, &options.replay.trace_format));
  EMBANK_RETURN_IF_ERROR(Validate(options));
  EMBANK_RETURN_IF_ERROR(CheckJsonPath(options.replay.json_path));
  const Machine machine = DescribeMachine();
  Progress progress(stderr, SteadyClock());
  EMBANK_ASSIGN_OR_RETURN(const TiersReport report, RunTiers(options, &progress));
  progress.Clear();
  std::fputs(TiersTable(machine, options, report).c_str(), stdout);
  if (!options.replay.json_path.empty()) {
    EMBANK_RETURN_IF_ERROR(
        WriteFile(options.replay.json_path, TiersJson(machine, options, report)));
  }
  return CheckMismatches(report.mismatches, report.first_mismatch);
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

// The parser would wrap a negative number round to a large one.
std::string NotNegative(const std::string& word) {
  return word.rfind('-', 0) == 0 ? "must not be negative" : "";
}

template <typename Value>
void AddNumber(CLI::App* app, const char* name, Value* value, const char* description) {
  app->add_option(name, *value, description)->capture_default_str()->check(NotNegative);
}

void AddCudaDevice(CLI::App* app, int32_t* cuda_device) {
  app->add_option("--cuda-device", *cuda_device, "-1: the host twin of a device")
      ->capture_default_str();
}

// A list of numbers: "1,2".
template <typename Value>
void AddNumbers(CLI::App* app, const char* name, std::vector<Value>* values,
                const char* description) {
  app->add_option(name, *values, description)->delimiter(',')->check(NotNegative);
}

void AddShapeOptions(CLI::App* app, TableShape* shape, Words* words) {
  AddNumber(app, "--dim", &shape->dim, "values of a row, 1..4096");
  app->add_option("--type", words->value_type, "f32, f16 or bf16")->capture_default_str();
  app->add_option("--optimizer", words->optimizer,
                  "none, sgd, adagrad, rowwise-adagrad, adam or ftrl")
      ->capture_default_str();
  app->add_option("--trace-format", words->trace_format,
                  "be64, u32 or text (default: by the file's name)");
}

void AddKvOptions(CLI::App* app, KvOptions* options, Words* words) {
  app->add_option("--engines", options->engines, "of embank,libcuckoo,absl")->delimiter(',');
  app->add_option("--phases", words->phases, "of fill,lookup,update,small")->delimiter(',');
  AddNumber(app, "--rows", &options->rows, "rows of the table (a trace has its own)");
  AddShapeOptions(app, &options->shape, words);
  app->add_option("--dist", words->distribution, "uniform, zipf:EXPONENT or trace:FILE")
      ->capture_default_str();
  app->add_option("--id-mode", words->id_mode, "permuted, first-appearance or hashed")
      ->capture_default_str();
  AddNumber(app, "--batch", &options->batch, "keys of a batch");
  AddNumbers(app, "--threads", &options->threads, "that call, in turns for a list as 1,2");
  AddNumber(app, "--seconds", &options->seconds, "of each phase but the fill");
  AddNumber(app, "--rounds", &options->rounds, "of all engines; figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of keys and rows");
  app->add_flag("--reserve", options->reserve, "tell the peers the number of rows beforehand");
  AddNumber(app, "--dram-fraction", &options->dram_fraction,
            "memory of an engine / its data, where rows are forgotten; 0: no limit");
  AddNumber(app, "--dram-bytes", &options->dram_bytes, "the same in bytes; 0: see --dram-fraction");
  AddNumber(app, "--id-space", &options->id_space, "ids are below this number; 0: that of rows");
  app->add_option("--on-full", options->on_full, "forget, with such memory");
  app->add_option("--eviction", words->evictions, "of lru,clock,lfu, with such memory")
      ->delimiter(',');
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddSsdOptions(CLI::App* app, SsdOptions* options, Words* words) {
  app->add_option("--path", options->path, "directory on the SSD; nothing stays in it")->required();
  app->add_option("--engines", options->engines,
                  "of embank,embank-lfu,embank-memory,rocksdb,rocksdb-rows")
      ->delimiter(',');
  app->add_option("--phases", words->phases, "of fill,lookup,scan,overwrite,checkpoint,recover")
      ->delimiter(',');
  app->add_option("--pmem", options->pmem_path,
                  "directory of a PMem tier: adds the phase pmem; nothing stays in it");
  AddNumber(app, "--pmem-bytes", &options->pmem_bytes,
            "of that tier, from 4 MiB; 0: 1.5 times the rows");
  AddNumber(app, "--rows", &options->rows, "rows of the table (a trace has its own)");
  AddShapeOptions(app, &options->shape, words);
  AddNumber(app, "--dram-fraction", &options->dram_fraction, "memory of an engine / its data");
  AddNumber(app, "--utilisation", &options->utilisation,
            "living records / budget of Embank's log; 0: no budget");
  app->add_option("--dist", words->distribution, "uniform, zipf:EXPONENT or trace:FILE")
      ->capture_default_str();
  AddNumber(app, "--batch", &options->batch, "keys of a batch");
  AddNumber(app, "--threads", &options->threads, "that call Embank, and jobs of fio");
  AddNumbers(app, "--peer-threads", &options->peer_threads,
             "that look up in a peer, in turns for a list as 2,8,32");
  AddNumber(app, "--depth", &options->depth, "reads in flight of one job of fio");
  AddNumber(app, "--seconds", &options->seconds, "of each timed part");
  AddNumber(app, "--warmup", &options->warmup, "lookups of an engine before its first, in seconds");
  AddNumber(app, "--overwrites", &options->overwrites, "rows overwritten in a round / rows");
  AddNumber(app, "--changed", &options->changed, "rows that the trainer changes; 0: all of them");
  AddNumber(app, "--sync-us", &options->sync_us, "by which syncs of Embank's files are longer");
  AddNumber(app, "--rounds", &options->rounds, "of all engines; figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of keys and rows");
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddStreamOptions(CLI::App* app, ReplayOptions* options, Words* words) {
  app->add_option("--trace", options->trace_path, "key trace (default: a generated stream)");
  AddShapeOptions(app, &options->shape, words);
  AddNumber(app, "--batch", &options->batch, "keys of a batch");
  AddNumber(app, "--threads", &options->threads, "of the store; 0: one per core");
  AddNumber(app, "--seed", &options->seed, "of the rows and of a generated stream");
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddReplayOptions(CLI::App* app, ReplayOptions* options, Words* words) {
  AddStreamOptions(app, options, words);
  app->add_option("--report", options->report_path,
                  "page (HTML) to which pictures and figures of the run are added");
}

void AddSurviveOptions(CLI::App* app, SurviveOptions* options, Words* words) {
  app->add_option("--path", options->path, "directory on the SSD; nothing stays in it")->required();
  AddReplayOptions(app, &options->replay, words);
  AddNumber(app, "--dram-fraction", &options->dram_fraction, "memory of the store / its rows");
  AddNumber(app, "--kills", &options->kills, "of the process, each with a recovery");
}

void AddTiersOptions(CLI::App* app, TiersOptions* options, Words* words) {
  app->add_option("--path", options->path, "directory on the SSD; nothing stays in it")->required();
  app->add_option("--pmem", options->pmem_path,
                  "directory of the PMem tier (default: that of --path); nothing stays in it");
  AddStreamOptions(app, &options->replay, words);
  AddNumber(app, "--hbm-share", &options->hbm_share, "device memory / all rows");
  AddNumber(app, "--dram-share", &options->dram_share, "memory of the store / all rows");
  AddNumber(app, "--pmem-share", &options->pmem_share, "rows in PMem / all rows");
  AddNumber(app, "--flush-iters", &options->flush_iters,
            "batches between two flushes of the hot set, and before the first");
  AddCudaDevice(app, &options->cuda_device);
}

void AddLimitsOptions(CLI::App* app, LimitsOptions* options) {
  AddNumbers(app, "--rows-bytes", &options->row_bytes, "sizes of vectors, as 64,128,256,512");
  AddNumbers(app, "--threads", &options->threads, "as 1,2 (default: powers of two, all cores)");
  AddNumber(app, "--seconds", &options->seconds, "of all probes together");
  AddNumber(app, "--memory-mib", &options->memory_mib, "of rows; 0: 3 GiB or a third of the free");
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddTracesOptions(CLI::App* app, TracesOptions* options) {
  app->add_option("--traces", options->directory, "directory of key traces")->required();
  AddNumbers(app, "--fractions", &options->fractions,
             "rows of the cache / distinct keys (default: 0.10,0.25)");
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddHotOptions(CLI::App* app, HotOptions* options, Words* words,
                   std::vector<std::string>* curve) {
  AddNumber(app, "--rows", &options->rows, "rows (a trace has its own)");
  AddNumber(app, "--zipf", &options->skew, "exponent of the stream");
  app->add_option("--preset", options->preset, "avg, extreme or kaggle, in place of --zipf");
  app->add_option("--trace", options->trace_path, "key trace, in place of a generated stream");
  app->add_option("--trace-format", words->trace_format,
                  "be64, u32 or text (default: by the file's name)");
  AddNumber(app, "--batch", &options->batch, "lookups of an iteration");
  AddNumber(app, "--k", &options->k, "hot rows / rows");
  AddNumber(app, "--iters", &options->iters, "iterations, warm-up included");
  AddNumber(app, "--drift-at", &options->drift_at, "last iteration in front of a drift; 0: none");
  AddNumber(app, "--warmup-iters", &options->warmup_iters,
            "iterations in front of the first flush");
  AddNumber(app, "--flush-iters", &options->flush_iters, "iterations between two flushes");
  app->add_flag("--all", options->all, "five k, three exponents, and a drift");
  AddNumber(app, "--dim", &options->dim, "f32 values of a row, for the model of the link");
  app->add_option("--curve", *curve, "FILE.csv FILE.svg: hit ratios over sizes of HBM")
      ->expected(2);
  AddNumber(app, "--seed", &options->seed, "of the stream");
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddPackedOptions(CLI::App* app, PackedOptions* options) {
  AddNumber(app, "--tables", &options->tables, "of a call");
  AddNumber(app, "--rows", &options->rows, "of each table");
  AddNumbers(app, "--dims", &options->dims, "f32 values of a row, in turns for a list as 16,64");
  AddNumbers(app, "--batches", &options->batches, "samples of a call, in turns for a list");
  AddNumber(app, "--zipf", &options->skew, "exponent of the ids");
  AddNumber(app, "--threads", &options->threads, "of the store");
  AddNumber(app, "--seconds", &options->seconds, "of each round of a case");
  AddNumber(app, "--rounds", &options->rounds, "figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of ids and rows");
  app->add_option("--save-ids", options->ids_directory,
                  "directory for the ids, tables.u32 and bags.u32");
  app->add_option("--json", options->json_path, "file for the figures");
}

void AddDeviceOptions(CLI::App* app, DeviceOptions* options) {
  AddNumber(app, "--rows", &options->rows, "of the table");
  AddNumber(app, "--dim", &options->dim, "f32 values of a row");
  AddNumber(app, "--batch", &options->batch, "distinct keys of a call");
  AddNumber(app, "--hbm-share", &options->hbm_share, "rows in device memory / all rows");
  AddNumbers(app, "--hits", &options->hit_shares,
             "shares of a call's keys that are in device memory, in turns for a list");
  AddNumber(app, "--threads", &options->threads, "of the store");
  AddCudaDevice(app, &options->cuda_device);
  AddNumber(app, "--link-gbps", &options->link_gbps,
            "GB/s of a modelled link to the twin: times are those of the link alone; 0: no model");
  AddNumber(app, "--link-us", &options->link_us, "latency of that link for each call");
  AddNumber(app, "--seconds", &options->seconds, "of each kind of call in each round");
  AddNumber(app, "--rounds", &options->rounds, "figures are their medians");
  AddNumber(app, "--seed", &options->seed, "of keys and rows");
  app->add_option("--json", options->json_path, "file for the figures");
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
  SsdOptions ssd_options;
  Words ssd_words = WordsOf(ssd_options);
  ReplayOptions replay_options;
  CLI::App* const kv = app.add_subcommand("kv", "the same batches through Embank and its peers");
  AddKvOptions(kv, &kv_options, &words);
  CLI::App* const ssd =
      app.add_subcommand("ssd", "rows that memory does not hold, through Embank and a peer");
  AddSsdOptions(ssd, &ssd_options, &ssd_words);
  CLI::App* const replay =
      app.add_subcommand("replay", "a key trace through the store, compared with the oracle");
  AddReplayOptions(replay, &replay_options, &words);
  SurviveOptions survive_options;
  CLI::App* const survive =
      app.add_subcommand("survive", "a store on disk, killed again and again, and the oracle");
  AddSurviveOptions(survive, &survive_options, &words);
  TiersOptions tiers_options;
  CLI::App* const tiers =
      app.add_subcommand("tiers", "a store with four tiers, compared with the oracle");
  AddTiersOptions(tiers, &tiers_options, &words);
  LimitsOptions limits_options;
  CLI::App* const limits = app.add_subcommand("limits", "what the machine's memory can do");
  AddLimitsOptions(limits, &limits_options);
  TracesOptions traces_options;
  CLI::App* const traces =
      app.add_subcommand("traces", "hit ratios of eviction policies on key traces");
  AddTracesOptions(traces, &traces_options);
  HotOptions hot_options;
  std::vector<std::string> hot_curve;
  CLI::App* const hot = app.add_subcommand("hot", "hit ratios of a hot set, simulated");
  AddHotOptions(hot, &hot_options, &words, &hot_curve);
  PackedOptions packed_options;
  CLI::App* const packed = app.add_subcommand("packed", "lookups and gradients of many tables");
  AddPackedOptions(packed, &packed_options);
  DeviceOptions device_options;
  CLI::App* const device = app.add_subcommand("device", "calls with rows in device memory");
  AddDeviceOptions(device, &device_options);
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
  if (tiers->parsed()) return ExitCode(Tiers(words, tiers_options));
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
