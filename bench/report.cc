#include "bench/report.h"

#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "bench/report_parts.h"
#include "train/bytes/errno_status.h"
#include "train/bytes/file_pointer.h"

namespace embank {
namespace {

// Explains the columns and lines of the tables; each text is printed below its table.
constexpr const char* kKvLegend =
    "T: threads; Mrows/s: million keys a second, the median of the rounds; min..max: of the "
    "rounds; limit: the rate / that of the machine's memory alone; rel: the rate / that of "
    "the first engine; p50, p99.9: half, 99.9 % of the batches take no longer; tail: p99.9 / "
    "p50; index B/row: bytes per row that find a row by its key; all B/row: all memory per "
    "row";
constexpr const char* kCallsLegend =
    "keys: of one call; p50: half of the calls take no longer; p99: 99 % of the calls take no "
    "longer";
constexpr const char* kVerbLegend =
    "rows: keys asked for, a repeated one each time; rows/s: per second in the store's calls; "
    "p50, p99: half, 99 % of the batches take no longer";
constexpr const char* kReplayLegend =
    "accesses: their share that goes to the keys asked for most; bytes per row: of one row, "
    "and of all memory / rows; compared: with a second, simple implementation (the oracle), "
    "bit for bit; mismatches: answers or rows that differed; digest: a checksum of all "
    "answers, which is the same on every machine";
constexpr const char* kLimitsLegend =
    "pages: of the rows' memory; bytes: that one operation uses; T: threads; M/s: million "
    "operations a second; min..max: of the rounds; ns: time of one thread for an operation; "
    "GB/s: bytes used. bench/README.md explains the probes";
constexpr const char* kTracesLegend =
    "rows: of the cache, as a share of the distinct keys; hit ratio: accesses that find their "
    "row / accesses; lfu-cold: LFU that forgets how often a row was used when it leaves; "
    "optimum: evicts the row that is used again last, so no cache hits more";

const char* PagesName(PageKind pages) { return pages == PageKind::kHuge ? "2 MiB" : "4 KiB"; }

// Returns the rate of distinct keys if duplicates were removed beforehand, else that of all rows.
double LimitRate(const KvResult& limit) {
  return limit.unique_rows_per_second.value_or(limit.rows_per_second);
}

Json RunJson(const KvResult& result) {
  Json run;
  run["engine"] = result.engine;
  run["phase"] = PhaseName(result.phase);
  run["threads"] = result.threads;
  run["batch"] = result.batch;
  run["rows_per_second"] = result.rows_per_second;
  run["rows_per_second_min"] = result.rows_per_second_min;
  run["rows_per_second_max"] = result.rows_per_second_max;
  run["unique_rows_per_second"] = OrNull(result.unique_rows_per_second);
  run["fraction_of_limit"] = OrNull(result.fraction_of_limit);
  run["speedup"] = OrNull(result.speedup);
  run["index_bytes_per_row"] = OrNull(result.index_bytes_per_row);
  run["bytes_per_row"] = result.bytes_per_row;
  run["batch_p50_us"] = result.batch_p50_us;
  run["batch_p99_us"] = result.batch_p99_us;
  run["batch_p999_us"] = result.batch_p999_us;
  run["batch_p999_over_p50"] = result.tail;
  return run;
}

Json LimitJson(const KvResult& limit) {
  Json json;
  json["phase"] = PhaseName(limit.phase);
  json["threads"] = limit.threads;
  json["rows_per_second"] = LimitRate(limit);
  json["speedup"] = OrNull(limit.speedup);
  return json;
}

std::string VerbLine(const char* name, const VerbTiming& timing) {
  return absl::StrFormat(
      "  %-10s %14s %14s %10s %11s %11s\n", name, Grouped(timing.positions),
      GroupedRounded(timing.PositionsPerSecond()), Grouped(timing.latency.count()),
      GroupedRounded(static_cast<double>(timing.latency.PercentileNs(0.5)) * 1e-3),
      GroupedRounded(static_cast<double>(timing.latency.PercentileNs(0.99)) * 1e-3));
}

Json VerbJson(const char* name, const VerbTiming& timing) {
  return {{"verb", name},
          {"rows", timing.positions},
          {"rows_per_second", timing.PositionsPerSecond()},
          {"batch_p50_us", static_cast<double>(timing.latency.PercentileNs(0.5)) * 1e-3},
          {"batch_p99_us", static_cast<double>(timing.latency.PercentileNs(0.99)) * 1e-3}};
}

// The rate of the first engine in the same phase with as many threads.
double Baseline(const KvReport& report, const KvResult& result) {
  for (const KvResult& first : report.results) {
    const bool is_alike = first.phase == result.phase && first.threads == result.threads &&
                          first.batch == result.batch;
    if (is_alike) return first.rows_per_second;
  }
  return result.rows_per_second;
}

std::string KvPhases(const KvReport& report) {
  std::string text =
      absl::StrFormat("  %-7s%-10s%2s%9s%14s%6s%6s%8s%9s%7s\n", "phase", "engine", "T", "Mrows/s",
                      "min..max", "limit", "rel", "p50 us", "p99.9 us", "tail");
  for (const KvResult& result : report.results) {
    if (result.phase == Phase::kSmall) continue;
    absl::StrAppendFormat(
        &text, "  %-7s%-10s%2d%9.3f%14s%6s%6.2f%8.0f%9.0f%7.1f\n", PhaseName(result.phase),
        result.engine, result.threads, result.rows_per_second * 1e-6,
        absl::StrFormat("%.1f..%.1f", result.rows_per_second_min * 1e-6,
                        result.rows_per_second_max * 1e-6),
        OrDash(result.fraction_of_limit, 2), result.rows_per_second / Baseline(report, result),
        result.batch_p50_us, result.batch_p999_us, result.tail);
  }
  for (const KvResult& limit : report.limits) {
    absl::StrAppendFormat(&text, "  %-7s%-10s%2d%9.3f%s\n", PhaseName(limit.phase), limit.engine,
                          limit.threads, LimitRate(limit) * 1e-6,
                          limit.unique_rows_per_second.has_value() ? "  distinct keys" : "");
  }
  return text;
}

std::string KvUnique(const KvReport& report) {
  std::string text;
  for (const KvResult& result : report.results) {
    if (!result.unique_rows_per_second.has_value()) continue;
    absl::StrAppendFormat(&text, "  %-7s%-10s%2d%9.3f\n", PhaseName(result.phase), result.engine,
                          result.threads, *result.unique_rows_per_second * 1e-6);
  }
  return text.empty() ? text : "\n  distinct keys of batches, M/s\n" + text;
}

std::string KvSpeedups(const KvReport& report) {
  std::string text;
  for (const std::vector<KvResult>* results : {&report.results, &report.limits}) {
    for (const KvResult& result : *results) {
      if (!result.speedup.has_value()) continue;
      absl::StrAppendFormat(&text, "  %-7s%-10s%2d%9.2f", PhaseName(result.phase), result.engine,
                            result.threads, *result.speedup);
      text += result.phase == Phase::kSmall ? absl::StrFormat("  calls of %d keys\n", result.batch)
                                            : "\n";
    }
  }
  return text.empty() ? text : "\n  speedup over the first number of threads\n" + text;
}

std::string KvCalls(const KvReport& report) {
  std::string text;
  for (const KvResult& result : report.results) {
    if (result.phase != Phase::kSmall) continue;
    absl::StrAppendFormat(&text, "  %-7s%-10s%2d%9d%12s%12s\n", PhaseName(result.phase),
                          result.engine, result.threads, result.batch,
                          GroupedRounded(result.batch_p50_us * 1e3),
                          GroupedRounded(result.batch_p99_us * 1e3));
  }
  if (text.empty()) return text;
  return absl::StrFormat("\n  %-7s%-10s%2s%9s%12s%12s\n", "calls", "engine", "T", "keys", "p50 ns",
                         "p99 ns") +
         text + Legend(kCallsLegend);
}

std::string KvMemory(const KvReport& report) {
  std::string text =
      absl::StrFormat("\n  %-17s%2s%16s%16s\n", "memory", "T", "index B/row", "all B/row");
  for (const KvResult& result : report.results) {
    const KvResult& first = report.results.front();
    if (result.phase != first.phase || result.batch != first.batch) continue;
    absl::StrAppendFormat(&text, "  %-17s%2d%16s%16.1f\n", result.engine, result.threads,
                          OrDash(result.index_bytes_per_row, 1), result.bytes_per_row);
  }
  return text;
}

// "folder/name.trc.bin.zst" -> "name".
std::string TraceName(const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  return name.substr(0, name.find('.'));
}

// A line per trace and size of the cache: a figure of each policy, and what stands behind them.
template <typename Figure, typename Last>
std::string TraceLines(const TracesReport& report, const Figure& figure, const Last& last) {
  std::string text;
  for (const TraceResult& result : report.results) {
    absl::StrAppendFormat(&text, "  %-29.29s%5.0f%%", TraceName(result.file),
                          result.fraction * 100);
    for (const PolicyFigure& policy : result.figures) {
      absl::StrAppendFormat(&text, "%9s", figure(policy));
    }
    absl::StrAppendFormat(&text, "%s\n", last(result));
  }
  return text;
}

std::string TraceHeading(const TracesReport& report, const char* first, const char* last) {
  std::string text = absl::StrFormat("\n  %-29s%6s", first, "rows");
  for (const PolicyFigure& policy : report.results.front().figures) {
    absl::StrAppendFormat(&text, "%9s", policy.policy);
  }
  return text + last + "\n";
}

}  // namespace

std::string KvTable(const Machine& machine, const KvOptions& options, const KvReport& report) {
  std::string text = "embank-bench kv\n" + Heading(machine, options.shape);
  absl::StrAppendFormat(&text, "  keys     %s rows, %s, %s\n", Grouped(report.rows),
                        DistributionName(options.distribution),
                        options.distribution.kind == Distribution::Kind::kTrace
                            ? (report.trace_is_whole ? "whole" : "its beginning only")
                            : IdModeName(options.id_mode));
  absl::StrAppendFormat(&text, "  run      batch %d, %s threads, median of %d rounds\n\n",
                        options.batch, StrJoin(options.threads, ", "), options.rounds);
  return text + KvPhases(report) + KvUnique(report) + KvSpeedups(report) + KvCalls(report) +
         KvMemory(report) + "\n" + Legend(kKvLegend);
}

std::string KvJson(const Machine& machine, const KvOptions& options, const KvReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  AddKeys(options, report.rows, report.positions, report.trace_is_whole, &parameters);
  parameters["batch"] = options.batch;
  parameters["threads"] = options.threads;
  parameters["seconds"] = options.seconds;
  parameters["rounds"] = options.rounds;
  parameters["seed"] = options.seed;
  parameters["reserve"] = options.reserve;
  json["runs"] = Json::array();
  for (const KvResult& result : report.results) json["runs"].push_back(RunJson(result));
  json["limits"] = Json::array();
  for (const KvResult& limit : report.limits) json["limits"].push_back(LimitJson(limit));
  return JsonText(json);
}

std::string ReplayTable(const Machine& machine, const ReplayOptions& options,
                        const ReplayReport& report) {
  std::string text = "embank-bench replay\n" + Heading(machine, options.shape);
  absl::StrAppendFormat(&text, "  keys     %s\n\n", report.source);
  absl::StrAppendFormat(&text, "  %-10s %14s %14s %10s %11s %11s\n", "verb", "rows", "rows/s",
                        "batches", "p50 us", "p99 us");
  text += VerbLine("lookup", report.lookup);
  if (report.gradients.positions > 0) text += VerbLine("gradients", report.gradients);
  StrAppend(&text, VerbLine("scan", report.scan), Legend(kVerbLegend));
  absl::StrAppendFormat(&text, "\n  distinct keys   %s\n", Grouped(report.distinct_keys));
  absl::StrAppendFormat(
      &text, "  accesses        top 1 %%: %.1f %%   top 10 %%: %.1f %%   top 20 %%: %.1f %%\n",
      report.share_top_1 * 100, report.share_top_10 * 100, report.share_top_20 * 100);
  absl::StrAppendFormat(&text, "  bytes per row   %d in its slab, %.1f all-in (index, slack)\n",
                        report.row_bytes, report.bytes_per_row);
  absl::StrAppendFormat(&text, "  compared        %s answers; %s rows, state and heat\n",
                        Grouped(report.answers_compared), Grouped(report.rows_compared));
  absl::StrAppendFormat(&text, "  mismatches      %s\n", MismatchesText(report));
  absl::StrAppendFormat(&text, "  digest          crc32c %08x\n", report.digest);
  absl::StrAppendFormat(&text, "  time            %.1f s, with the oracle\n", report.seconds);
  return text + "\n" + Legend(kReplayLegend);
}

std::string ReplayJson(const Machine& machine, const ReplayOptions& options,
                       const ReplayReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  parameters["source"] = report.source;
  AddShape(options.shape, &parameters);
  parameters["batch"] = options.batch;
  parameters["threads"] = options.threads;
  parameters["seed"] = options.seed;
  json["runs"] = {VerbJson("lookup", report.lookup), VerbJson("gradients", report.gradients),
                  VerbJson("scan", report.scan)};
  json["positions"] = report.positions;
  json["distinct_keys"] = report.distinct_keys;
  json["share_top_1"] = report.share_top_1;
  json["share_top_10"] = report.share_top_10;
  json["share_top_20"] = report.share_top_20;
  json["row_bytes"] = report.row_bytes;
  json["bytes_per_row"] = report.bytes_per_row;
  AddComparison(report, &json);
  json["digest"] = absl::StrFormat("%08x", report.digest);
  json["seconds"] = report.seconds;
  return JsonText(json);
}

std::string LimitsTable(const Machine& machine, const LimitsReport& report) {
  std::string text = "embank-bench limits\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  run      %.2f GiB of rows, median of %d rounds\n\n",
                        static_cast<double>(report.rows_bytes) * 0x1p-30, kLimitRounds);
  absl::StrAppendFormat(&text, "  %-6s%-18s%8s%4s%11s%15s%9s%7s\n", "pages", "probe", "bytes", "T",
                        "M/s", "min..max", "ns", "GB/s");
  for (const LimitFigure& figure : report.figures) {
    absl::StrAppendFormat(
        &text, "  %-6s%-18s%8d%4d%11.4g%15s%9.4g%7.1f\n", PagesName(figure.pages),
        ProbeName(figure.probe), figure.bytes, figure.threads, figure.per_second * 1e-6,
        absl::StrFormat("%.3g..%.3g", figure.per_second_min * 1e-6, figure.per_second_max * 1e-6),
        figure.Nanoseconds(), figure.BytesPerSecond() * 1e-9);
  }
  return text + "\n" + Legend(kLimitsLegend);
}

std::string LimitsJson(const Machine& machine, const LimitsOptions& options,
                       const LimitsReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  json["parameters"] = {
      {"memory_bytes", report.rows_bytes}, {"seconds", options.seconds}, {"rounds", kLimitRounds}};
  json["limits"] = Json::array();
  for (const LimitFigure& figure : report.figures) {
    json["limits"].push_back({{"probe", ProbeName(figure.probe)},
                              {"pages", PagesName(figure.pages)},
                              {"threads", figure.threads},
                              {"bytes", figure.bytes},
                              {"row_bytes", figure.row_bytes},
                              {"per_second", figure.per_second},
                              {"per_second_min", figure.per_second_min},
                              {"per_second_max", figure.per_second_max},
                              {"nanoseconds", figure.Nanoseconds()},
                              {"bytes_per_second", figure.BytesPerSecond()}});
  }
  return JsonText(json);
}

std::string TracesTable(const Machine& machine, const TracesOptions& options,
                        const TracesReport& report) {
  std::string text = "embank-bench traces\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  keys     %s\n", options.directory);
  absl::StrAppendFormat(&text, "  run      1 thread, median of %d rounds\n", kTraceRounds);
  text += TraceHeading(report, "hit ratio", "  optimum") +
          TraceLines(
              report, [](const PolicyFigure& f) { return absl::StrFormat("%.4f", f.hit_ratio); },
              [](const TraceResult& r) { return absl::StrFormat("%9.4f", r.optimum); });
  text += TraceHeading(report, "M accesses/s", "") +
          TraceLines(
              report,
              [](const PolicyFigure& f) {
                return absl::StrFormat("%.1f", f.accesses_per_second * 1e-6);
              },
              [](const TraceResult&) { return ""; });
  text += absl::StrFormat("\n  %-29s%14s%14s\n", "trace", "accesses", "distinct keys");
  const std::string* previous = nullptr;
  for (const TraceResult& result : report.results) {
    if (previous != nullptr && *previous == result.file) continue;
    previous = &result.file;
    absl::StrAppendFormat(&text, "  %-29.29s%14s%14s%s\n", TraceName(result.file),
                          Grouped(result.accesses), Grouped(result.distinct_keys),
                          result.is_whole ? "" : "  its beginning only");
  }
  for (const LeftOutFile& file : report.left_out) {
    absl::StrAppendFormat(&text, "  left out: %s\n", file.reason);
  }
  return text + "\n" + Legend(kTracesLegend);
}

std::string TracesJson(const Machine& machine, const TracesOptions& options,
                       const TracesReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  json["parameters"] = {{"traces", options.directory},
                        {"fractions", options.fractions},
                        {"threads", 1},
                        {"rounds", kTraceRounds}};
  json["runs"] = Json::array();
  for (const TraceResult& result : report.results) {
    for (const PolicyFigure& figure : result.figures) {
      json["runs"].push_back({{"trace", result.file},
                              {"accesses", result.accesses},
                              {"distinct_keys", result.distinct_keys},
                              {"trace_is_whole", result.is_whole},
                              {"fraction", result.fraction},
                              {"capacity_rows", result.capacity},
                              {"policy", figure.policy},
                              {"hit_ratio", figure.hit_ratio},
                              {"optimal_hit_ratio", result.optimum},
                              {"accesses_per_second", figure.accesses_per_second},
                              {"accesses_per_second_min", figure.accesses_per_second_min},
                              {"accesses_per_second_max", figure.accesses_per_second_max}});
    }
  }
  json["left_out"] = Json::array();
  for (const LeftOutFile& file : report.left_out) {
    json["left_out"].push_back({{"file", file.file}, {"reason", file.reason}});
  }
  return JsonText(json);
}

Status CheckWritable(const std::string& path) {
  const FilePointer file(std::fopen(path.c_str(), "ab"));
  if (file != nullptr) return OkStatus();
  return ErrnoStatus(errno, StrCat(path, ": cannot write"));
}

Status WriteFile(const std::string& path, const std::string& text) {
  FilePointer file(std::fopen(path.c_str(), "wb"));
  const bool written = file != nullptr &&
                       std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fclose(file.release()) == 0;
  if (written) return OkStatus();
  return ErrnoStatus(errno, StrCat(path, ": cannot write"));
}

}  // namespace embank
