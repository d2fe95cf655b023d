#include "bench/report.h"

#include <cerrno>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/status_macros.h"
#include "bindings/c/embank.h"

namespace embank {
namespace {

using Json = nlohmann::ordered_json;

struct FileCloser {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using FilePointer = std::unique_ptr<std::FILE, FileCloser>;

// 1234567 -> "1,234,567".
std::string Grouped(uint64_t number) {
  std::string digits = absl::StrCat(number);
  for (size_t i = digits.size(); i > 3;) digits.insert(i -= 3, 1, ',');
  return digits;
}

std::string GroupedRounded(double number) { return Grouped(static_cast<uint64_t>(number + 0.5)); }

const char* Commit() {
  const char* commit = embank_build_info("git");
  return commit == nullptr ? "unknown" : commit;
}

std::string Heading(const Machine& machine, const TableShape& shape) {
  std::string text;
  absl::StrAppendFormat(&text, "  machine  %s\n", machine.cpu);
  absl::StrAppendFormat(&text, "           %d cores, %.1f GiB, huge pages %s, load %.2f\n",
                        machine.cores, static_cast<double>(machine.memory_bytes) * 0x1p-30,
                        machine.huge_pages, machine.load_average);
  absl::StrAppendFormat(&text, "           %s\n", machine.kernel);
  absl::StrAppendFormat(&text, "  commit   %s\n", Commit());
  absl::StrAppendFormat(&text, "  table    dim %d %s, optimizer %s\n", shape.dim,
                        ValueTypeName(shape.value_type), OptimizerName(shape.optimizer));
  return text;
}

Json MachineJson(const Machine& machine) {
  return {{"cpu", machine.cpu},
          {"cores", machine.cores},
          {"memory_bytes", machine.memory_bytes},
          {"kernel", machine.kernel},
          {"huge_pages", machine.huge_pages},
          {"load_average", machine.load_average}};
}

void AddShape(const TableShape& shape, Json* parameters) {
  (*parameters)["dim"] = shape.dim;
  (*parameters)["type"] = ValueTypeName(shape.value_type);
  (*parameters)["optimizer"] = OptimizerName(shape.optimizer);
}

Json RunJson(const KvOptions& options, const KvResult& result) {
  Json run;
  run["engine"] = result.engine;
  run["phase"] = PhaseName(result.phase);
  run["threads"] = options.threads;
  run["rows_per_second"] = result.rows_per_second;
  run["rows_per_second_min"] = result.rows_per_second_min;
  run["rows_per_second_max"] = result.rows_per_second_max;
  run["fraction_of_limit"] = nullptr;
  run["index_bytes_per_row"] = nullptr;
  if (result.index_bytes_per_row.has_value()) {
    run["index_bytes_per_row"] = *result.index_bytes_per_row;
  }
  run["bytes_per_row"] = result.bytes_per_row;
  run["batch_p50_us"] = result.batch_p50_us;
  run["batch_p99_us"] = result.batch_p99_us;
  run["batch_p999_us"] = result.batch_p999_us;
  return run;
}

// Rates of the first engine, which the others are compared with.
std::map<Phase, double> Baseline(const KvReport& report) {
  std::map<Phase, double> rates;
  for (const KvResult& result : report.results) {
    rates.emplace(result.phase, result.rows_per_second);
  }
  return rates;
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

}  // namespace

std::string KvTable(const Machine& machine, const KvOptions& options, const KvReport& report) {
  std::string text = "embank-bench kv\n" + Heading(machine, options.shape);
  absl::StrAppendFormat(&text, "  keys     %s rows, %s, %s\n", Grouped(report.rows),
                        DistributionName(options.distribution),
                        options.distribution.kind == Distribution::Kind::kTrace
                            ? (report.trace_is_whole ? "whole" : "its beginning only")
                            : IdModeName(options.id_mode));
  absl::StrAppendFormat(&text, "  run      batch %d, %d threads, median of %d rounds\n\n",
                        options.batch, options.threads, options.rounds);
  absl::StrAppendFormat(&text, "  %-7s%-10s%9s%15s%9s%8s%9s%10s\n", "phase", "engine", "Mrows/s",
                        "min..max", "p50 us", "p99 us", "p99.9 us", "relative");
  const std::map<Phase, double> baseline = Baseline(report);
  for (const KvResult& result : report.results) {
    absl::StrAppendFormat(&text, "  %-7s%-10s%9.3f%15s%9.0f%8.0f%9.0f%10.2f\n",
                          PhaseName(result.phase), result.engine, result.rows_per_second * 1e-6,
                          absl::StrFormat("%.2f..%.2f", result.rows_per_second_min * 1e-6,
                                          result.rows_per_second_max * 1e-6),
                          result.batch_p50_us, result.batch_p99_us, result.batch_p999_us,
                          result.rows_per_second / baseline.at(result.phase));
  }
  absl::StrAppendFormat(&text, "\n  %-17s%16s%16s\n", "memory", "index B/row", "all B/row");
  for (const KvResult& result : report.results) {
    if (result.phase != report.results.front().phase) break;
    const std::string index_bytes = result.index_bytes_per_row.has_value()
                                        ? absl::StrFormat("%.1f", *result.index_bytes_per_row)
                                        : "-";
    absl::StrAppendFormat(&text, "  %-17s%16s%16.1f\n", result.engine, index_bytes,
                          result.bytes_per_row);
  }
  return text;
}

std::string KvJson(const Machine& machine, const KvOptions& options, const KvReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  parameters["rows"] = report.rows;
  parameters["positions"] = report.positions;
  AddShape(options.shape, &parameters);
  parameters["dist"] = DistributionName(options.distribution);
  parameters["id_mode"] = IdModeName(options.id_mode);
  parameters["batch"] = options.batch;
  parameters["threads"] = options.threads;
  parameters["seconds"] = options.seconds;
  parameters["rounds"] = options.rounds;
  parameters["seed"] = options.seed;
  parameters["reserve"] = options.reserve;
  json["runs"] = Json::array();
  for (const KvResult& result : report.results) json["runs"].push_back(RunJson(options, result));
  return json.dump(2) + "\n";
}

std::string ReplayTable(const Machine& machine, const ReplayOptions& options,
                        const ReplayReport& report) {
  std::string text = "embank-bench replay\n" + Heading(machine, options.shape);
  absl::StrAppendFormat(&text, "  keys     %s\n\n", report.source);
  absl::StrAppendFormat(&text, "  %-10s %14s %14s %10s %11s %11s\n", "verb", "rows", "rows/s",
                        "batches", "p50 us", "p99 us");
  text += VerbLine("lookup", report.lookup);
  if (report.gradients.positions > 0) text += VerbLine("gradients", report.gradients);
  text += VerbLine("scan", report.scan);
  absl::StrAppendFormat(&text, "\n  distinct keys   %s\n", Grouped(report.distinct_keys));
  absl::StrAppendFormat(
      &text, "  accesses        top 1 %%: %.1f %%   top 10 %%: %.1f %%   top 20 %%: %.1f %%\n",
      report.share_top_1 * 100, report.share_top_10 * 100, report.share_top_20 * 100);
  absl::StrAppendFormat(&text, "  bytes per row   %d in its slab, %.1f all-in (index, slack)\n",
                        report.row_bytes, report.bytes_per_row);
  absl::StrAppendFormat(&text, "  compared        %s answers; %s rows, state and heat\n",
                        Grouped(report.answers_compared), Grouped(report.rows_compared));
  absl::StrAppendFormat(
      &text, "  mismatches      %s%s%s\n", Grouped(report.mismatches),
      report.first_mismatch.empty() ? "" : ", the first: ", report.first_mismatch);
  absl::StrAppendFormat(&text, "  digest          crc32c %08x\n", report.digest);
  absl::StrAppendFormat(&text, "  time            %.1f s, with the oracle\n", report.seconds);
  return text;
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
  json["answers_compared"] = report.answers_compared;
  json["rows_compared"] = report.rows_compared;
  json["mismatches"] = report.mismatches;
  json["first_mismatch"] = report.first_mismatch;
  json["digest"] = absl::StrFormat("%08x", report.digest);
  json["seconds"] = report.seconds;
  return json.dump(2) + "\n";
}

absl::Status CheckWritable(const std::string& path) {
  const FilePointer file(std::fopen(path.c_str(), "ab"));
  if (file != nullptr) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write"));
}

absl::Status WriteFile(const std::string& path, const std::string& text) {
  FilePointer file(std::fopen(path.c_str(), "wb"));
  const bool written = file != nullptr &&
                       std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fclose(file.release()) == 0;
  if (written) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat(path, ": cannot write"));
}

}  // namespace embank
