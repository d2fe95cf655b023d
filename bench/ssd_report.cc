#include "bench/ssd_report.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/report_parts.h"
#include "bindings/c/embank.h"

namespace embank {
namespace {

// Each legend explains the columns of a phase, and stands below its table.
constexpr const char* kFillLegend =
    "T: threads; krows/s: thousand rows a second; p50 us: microseconds, half of the batches take "
    "no longer; tail: p99.9 / p50, where 99.9 % of the batches take no longer than p99.9; max ms: "
    "milliseconds of the longest batch; settle s: seconds until the disk rests; WA: bytes written "
    "/ bytes of changed rows";
constexpr const char* kLookupLegend =
    "T: threads; krows/s: thousand rows a second; kIOPS: thousand reads of the disk a second; of "
    "fio: kIOPS / the random reads that fio gets from the same disk; hit: share of the rows found "
    "in memory; us/miss: microseconds of CPU time / rows not found there; p50 us: microseconds, "
    "half of the batches take no longer; tail: p99.9 / p50, where 99.9 % of the batches take no "
    "longer than p99.9";
constexpr const char* kPmemLegend =
    "T: threads; krows/s: thousand rows a second; pmem: share of the rows answered from PMem; pmem "
    "k/s: thousand of those rows a second; us/row: microseconds of CPU time / rows answered from "
    "PMem; drains: waits until PMem has what was written, since the store was made; writes: writes "
    "of buffers, headers and footers to PMem since then; to SSD: rows that the checkpoint behind "
    "the fill wrote to the SSD";
constexpr const char* kScanLegend =
    "T: threads; s: seconds for all rows; krows/s: thousand rows a second; MB/s: million bytes of "
    "rows a second; of fio: MB/s / what fio reads in order from the same disk; kIOPS: thousand "
    "reads of the disk a second";
constexpr const char* kOverwriteLegend =
    "T: threads; krows/s: thousand rows a second; of rows: rows written anew / rows of the table; "
    "MB/s: million bytes written to the disk a second; WA: bytes written / bytes of changed rows; "
    "p50 us: microseconds, half of the batches take no longer; tail: p99.9 / p50, where 99.9 % of "
    "the batches take no longer than p99.9; max ms: milliseconds of the longest batch";
constexpr const char* kCheckpointLegend =
    "T: threads; s: seconds of a checkpoint alone; MB/s: million bytes that it writes a second; of "
    "fio: MB/s / what fio writes in order to the same disk; trainer k/s: thousand rows a second "
    "beside checkpoints; slower: what that costs the trainer (0.1: a tenth of its rate); max ms: "
    "milliseconds of the longest batch beside checkpoints";
constexpr const char* kRecoverLegend =
    "T: threads; s: seconds until the store is open; Mrows/s: million rows of the store a "
    "second; footers s: seconds to read the bytes of the footers in order; times: s / footers s; "
    "index B/row: bytes of memory for each row, by which rows are found";

// A column: a figure, in its unit.
struct Column {
  const char* heading;
  const char* figure;
  double factor;
  int digits;
};

constexpr Column kFillColumns[] = {
    {"krows/s", "rows_per_second", 1e-3, 1}, {"p50 us", "batch_p50_us", 1, 0},
    {"tail", "batch_p999_over_p50", 1, 1},   {"max ms", "longest_batch_us", 1e-3, 0},
    {"settle s", "settle_seconds", 1, 2},    {"WA", "write_amplification", 1, 2}};
constexpr Column kLookupColumns[] = {
    {"krows/s", "rows_per_second", 1e-3, 1}, {"kIOPS", "iops", 1e-3, 1},
    {"of fio", "fraction_of_fio", 1, 2},     {"hit", "hit_ratio", 1, 3},
    {"us/miss", "cpu_us_per_miss", 1, 2},    {"p50 us", "batch_p50_us", 1, 0},
    {"tail", "batch_p999_over_p50", 1, 1}};
constexpr Column kPmemColumns[] = {{"krows/s", "rows_per_second", 1e-3, 1},
                                   {"pmem", "pmem_hit_ratio", 1, 3},
                                   {"pmem k/s", "pmem_rows_per_second", 1e-3, 1},
                                   {"us/row", "pmem_cpu_us_per_row", 1, 2},
                                   {"drains", "drains", 1, 0},
                                   {"writes", "pmem_buffers_written", 1, 0},
                                   {"to SSD", "ssd_rows_appended_by_checkpoint", 1, 0}};
constexpr Column kScanColumns[] = {{"s", "scan_seconds", 1, 2},
                                   {"krows/s", "rows_per_second", 1e-3, 1},
                                   {"MB/s", "scan_bytes_per_second", 1e-6, 0},
                                   {"of fio", "fraction_of_fio_read", 1, 2},
                                   {"kIOPS", "iops", 1e-3, 1}};
constexpr Column kOverwriteColumns[] = {{"krows/s", "rows_per_second", 1e-3, 1},
                                        {"of rows", "overwritten", 1, 2},
                                        {"MB/s", "written_bytes_per_second", 1e-6, 0},
                                        {"WA", "write_amplification", 1, 2},
                                        {"p50 us", "batch_p50_us", 1, 0},
                                        {"tail", "batch_p999_over_p50", 1, 1},
                                        {"max ms", "longest_batch_us", 1e-3, 0}};
constexpr Column kCheckpointColumns[] = {
    {"s", "checkpoint_seconds", 1, 3},         {"MB/s", "checkpoint_bytes_per_second", 1e-6, 0},
    {"of fio", "fraction_of_fio_write", 1, 2}, {"trainer k/s", "trainer_rows_per_second", 1e-3, 1},
    {"slower", "trainer_slowdown", 1, 3},      {"max ms", "longest_batch_us", 1e-3, 0}};
constexpr Column kRecoverColumns[] = {{"s", "recover_seconds", 1, 3},
                                      {"Mrows/s", "rows_per_second", 1e-6, 2},
                                      {"footers s", "footer_read_seconds", 1, 4},
                                      {"times", "times_footer_read", 1, 1},
                                      {"index B/row", "index_bytes_per_row", 1, 1}};

// The table of a phase: its columns, and the words that explain them.
struct PhaseTable {
  std::span<const Column> columns;
  const char* legend;
};

PhaseTable TableOf(SsdPhase phase) {
  switch (phase) {
    case SsdPhase::kFill:
      return {kFillColumns, kFillLegend};
    case SsdPhase::kLookup:
      return {kLookupColumns, kLookupLegend};
    case SsdPhase::kPmem:
      return {kPmemColumns, kPmemLegend};
    case SsdPhase::kScan:
      return {kScanColumns, kScanLegend};
    case SsdPhase::kOverwrite:
      return {kOverwriteColumns, kOverwriteLegend};
    case SsdPhase::kCheckpoint:
      return {kCheckpointColumns, kCheckpointLegend};
    case SsdPhase::kRecover:
      return {kRecoverColumns, kRecoverLegend};
  }
  return {{}, ""};
}

int WidthOf(const Column& column) {
  constexpr int kWidthMin = 7;
  const auto heading = static_cast<int>(std::char_traits<char>::length(column.heading));
  return std::max(kWidthMin, heading) + 1;
}

std::string Line(const SsdResult& result) {
  std::string text = absl::StrFormat("  %-13s%3d", result.which.engine, result.which.threads);
  for (const Column& column : TableOf(result.which.phase).columns) {
    std::optional<double> value = result.Figure(column.figure);
    if (value.has_value()) *value *= column.factor;
    absl::StrAppendFormat(&text, "%*s", WidthOf(column), OrDash(value, column.digits));
  }
  return text + "\n";
}

std::string Headings(SsdPhase phase) {
  std::string text = absl::StrFormat("\n  %-13s%3s", PhaseName(phase), "T");
  for (const Column& column : TableOf(phase).columns) {
    absl::StrAppendFormat(&text, "%*s", WidthOf(column), column.heading);
  }
  return text + "\n";
}

// Returns the lines below a phase of the device.
std::string Below(const SsdResult& result) {
  std::string text;
  const auto say = [&](const char* words, const char* figure, double factor, int digits) {
    std::optional<double> value = result.Figure(figure);
    if (!value.has_value()) return;
    absl::StrAppendFormat(&text, "  %s: %.*f\n", words, digits, *value * factor);
  };
  say("fio, thousand random reads a second", "fio_iops", 1e-3, 1);
  say("fio, us of CPU a read", "fio_cpu_us_per_read", 1.0, 2);
  say("rows a second of PMem / of the SSD in lookup", "pmem_times_ssd", 1.0, 2);
  say("fio, MB/s read in order", "fio_read_bytes_per_second", 1e-6, 0);
  say("fio, MB/s written in order", "fio_write_bytes_per_second", 1e-6, 0);
  say("log, GB taken in the end", "taken_bytes", 1e-9, 2);
  say("beside the trainer, s", "checkpoint_seconds_beside", 1.0, 3);
  say("longest barrier, us", "longest_flip_us", 1.0, 0);
  say("slots visited by one beside the trainer", "visited_slots_per_checkpoint", 1.0, 0);
  say("rows written by its flush pass", "flushed_rows_per_checkpoint", 1.0, 0);
  say("p95 of the trainer's batches, beside / alone", "trainer_p95_ratio", 1.0, 2);
  return text;
}

// How much faster an engine is, as far as it is compared.
std::string Ratios(const SsdResult& result) {
  std::string text;
  for (const auto& [figure, other] :
       {std::pair("times_best_peer", "best peer"), std::pair("times_memory", "embank-memory")}) {
    const std::optional<double> value = result.Figure(figure);
    if (!value.has_value() || result.which.engine == other) continue;
    absl::StrAppendFormat(&text, "  %s / %s: %.2f\n", result.which.engine, other, *value);
  }
  return text;
}

std::string GiB(uint64_t bytes) {
  return absl::StrFormat("%.2f GiB", static_cast<double>(bytes) * 0x1p-30);
}

}  // namespace

std::string SsdTable(const Machine& machine, const SsdOptions& options, const SsdReport& report) {
  const SsdSizes& sizes = report.sizes;
  std::string text = "embank-bench ssd\n" + Heading(machine, options.shape);
  absl::StrAppendFormat(&text, "  keys     %s rows of %d bytes, %s\n", Grouped(sizes.rows),
                        sizes.payload_bytes, DistributionName(options.distribution));
  absl::StrAppendFormat(&text, "  memory   %s of %s", GiB(sizes.dram_bytes), GiB(sizes.data_bytes));
  if (sizes.ssd_bytes > 0) StrAppend(&text, "; log of ", GiB(sizes.ssd_bytes));
  if (sizes.pmem_bytes > 0) StrAppend(&text, "; PMem of ", GiB(sizes.pmem_bytes));
  absl::StrAppendFormat(&text, "\n  run      batch %d, median of %d rounds\n  io_uring %s\n",
                        options.batch, options.rounds, embank_build_info("io_uring"));
  for (size_t i = 0; i < report.results.size(); ++i) {
    const SsdResult& result = report.results[i];
    const SsdPhase phase = result.which.phase;
    if (i == 0 || report.results[i - 1].which.phase != phase) text += Headings(phase);
    text += Line(result);
    const bool is_last =
        i + 1 == report.results.size() || report.results[i + 1].which.phase != phase;
    if (!is_last) continue;
    text += Legend(TableOf(phase).legend);
    const auto begin =
        std::find_if(report.results.begin(), report.results.end(),
                     [&](const SsdResult& other) { return other.which.phase == phase; });
    text += Below(*begin);
    for (const SsdResult& other : std::span(begin, report.results.begin() + i + 1)) {
      text += Ratios(other);
    }
  }
  if (!report.notes.empty()) text += "\n";
  for (const std::string& note : report.notes) StrAppend(&text, "  note: ", note, "\n");
  return text;
}

std::string SsdJson(const Machine& machine, const SsdOptions& options, const SsdReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  parameters["rows"] = report.sizes.rows;
  AddShape(options.shape, &parameters);
  parameters["payload_bytes"] = report.sizes.payload_bytes;
  parameters["record_bytes"] = report.sizes.record_bytes;
  parameters["data_bytes"] = report.sizes.data_bytes;
  parameters["dram_bytes"] = report.sizes.dram_bytes;
  parameters["ssd_bytes"] = report.sizes.ssd_bytes;
  parameters["pmem_bytes"] = report.sizes.pmem_bytes;
  parameters["dist"] = DistributionName(options.distribution);
  parameters["batch"] = options.batch;
  parameters["threads"] = options.threads;
  parameters["peer_threads"] = options.peer_threads;
  parameters["depth"] = options.depth;
  parameters["seconds"] = options.seconds;
  parameters["warmup"] = options.warmup;
  parameters["overwrites"] = options.overwrites;
  parameters["rounds"] = options.rounds;
  parameters["seed"] = options.seed;
  parameters["io_uring"] = embank_build_info("io_uring");
  json["runs"] = Json::array();
  for (const SsdResult& result : report.results) {
    Json run;
    run["engine"] = result.which.engine;
    run["phase"] = PhaseName(result.which.phase);
    run["threads"] = result.which.threads;
    run["batch"] = options.batch;
    for (const char* name : SsdFigureNames()) run[name] = OrNull(result.Figure(name));
    json["runs"].push_back(std::move(run));
  }
  json["notes"] = report.notes;
  return JsonText(json);
}

}  // namespace embank
