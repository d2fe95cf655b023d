#include "bench/tiers_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

constexpr const char* kLegend =
    "rows, MiB: of vectors and states in the tier at the end; answered: positions of lookups whose "
    "rows were there, and their share; rows in, rows out: moved to the tier and from it during the "
    "run, where the store counts them; unique: share of the distinct keys of each batch, of HBM in "
    "each 64th batch, of PMem and SSD with the reads of gradients, of DRAM unknown; beside "
    "flushes: lookups of one thread while top-k flushes follow "
    "each other, "
    "in turns with lookups alone; longest wait: of a batch of the whole run at the payload gate; "
    "compared: with a second, simple implementation (the oracle), bit for bit";

double ShareOf(uint64_t part, uint64_t whole) {
  return static_cast<double>(part) / static_cast<double>(std::max<uint64_t>(1, whole));
}

double Mib(uint64_t bytes) { return static_cast<double>(bytes) * 0x1p-20; }

std::string OrDash(const std::optional<uint64_t>& rows) { return rows ? Grouped(*rows) : "-"; }

}  // namespace

std::string TiersTable(const Machine& machine, const TiersOptions& options,
                       const TiersReport& report) {
  std::string text = "embank-bench tiers\n" + Heading(machine, options.replay.shape);
  absl::StrAppendFormat(&text, "  keys     %s\n", report.source);
  absl::StrAppendFormat(&text, "  data     %s rows, %.0f MiB; HBM %.0f MiB (%s), DRAM %.0f MiB, ",
                        Grouped(report.rows), Mib(report.data_bytes), Mib(report.hbm_bytes),
                        report.device, Mib(report.dram_bytes));
  absl::StrAppendFormat(&text, "PMem %.0f MiB\n\n", Mib(report.pmem_bytes));
  absl::StrAppendFormat(&text, "  %-6s %12s %8s %12s %8s %8s %12s %12s\n", "tier", "rows", "MiB",
                        "answered", "share", "unique", "rows in", "rows out");
  for (const TierFigures& tier : report.tiers) {
    absl::StrAppendFormat(&text, "  %-6s %12s %8.1f %12s %8.3f %8s %12s %12s\n", tier.name,
                          Grouped(tier.rows), Mib(tier.bytes), Grouped(tier.answered),
                          ShareOf(tier.answered, report.positions), OrDash(tier.unique_share, 3),
                          OrDash(tier.moved_in), OrDash(tier.moved_out));
  }
  absl::StrAppendFormat(&text, "  %-6s %12s %8s %12s %8.3f %8.3f\n\n", "made", "", "",
                        Grouped(report.created), ShareOf(report.created, report.positions),
                        ShareOf(report.created, report.distinct));
  absl::StrAppendFormat(&text, "  flushes             %d top-k, %d epochs ended early\n",
                        report.hot_flushes, report.early_epochs);
  absl::StrAppendFormat(&text,
                        "  beside flushes      p99 %.0f us, alone %.0f us; p50 %.0f and %.0f us; ",
                        report.flush.p99_beside_us, report.flush.p99_alone_us,
                        report.flush.p50_beside_us, report.flush.p50_alone_us);
  absl::StrAppendFormat(&text, "longest wait %.0f us; %d flushes\n", report.flush.longest_wait_us,
                        report.flush.flushes);
  absl::StrAppendFormat(&text, "  rows/s              lookup %s, gradients %s\n",
                        GroupedRounded(report.lookup.PositionsPerSecond()),
                        GroupedRounded(report.gradients.PositionsPerSecond()));
  absl::StrAppendFormat(&text, "  compared            %s answers, %s rows; mismatches %s\n",
                        Grouped(report.answers_compared), Grouped(report.rows_compared),
                        MismatchesText(report));
  absl::StrAppendFormat(&text, "  time                %.1f s, with the oracle\n", report.seconds);
  return text + "\n" + Legend(kLegend);
}

std::string TiersJson(const Machine& machine, const TiersOptions& options,
                      const TiersReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  parameters["source"] = report.source;
  AddShape(options.replay.shape, &parameters);
  parameters["batch"] = options.replay.batch;
  parameters["threads"] = options.replay.threads;
  parameters["seed"] = options.replay.seed;
  parameters["flush_iters"] = options.flush_iters;
  parameters["rows"] = report.rows;
  parameters["data_bytes"] = report.data_bytes;
  parameters["hbm_bytes"] = report.hbm_bytes;
  parameters["dram_bytes"] = report.dram_bytes;
  parameters["pmem_bytes"] = report.pmem_bytes;
  parameters["device"] = report.device;
  json["tiers"] = Json::array();
  for (const TierFigures& tier : report.tiers) {
    Json one = {{"tier", tier.name},
                {"rows", tier.rows},
                {"bytes", tier.bytes},
                {"answered", tier.answered},
                {"hit_ratio_lookups", ShareOf(tier.answered, report.positions)},
                {"hit_ratio_unique", OrNull(tier.unique_share)}};
    if (tier.moved_in) one["moved_in"] = *tier.moved_in;
    if (tier.moved_out) one["moved_out"] = *tier.moved_out;
    json["tiers"].push_back(one);
  }
  json["created"] = report.created;
  json["hot_flushes"] = report.hot_flushes;
  json["early_epochs"] = report.early_epochs;
  Json& flush = json["beside_flushes"];
  flush["flushes"] = report.flush.flushes;
  flush["batches"] = report.flush.batches;
  flush["p50_alone_us"] = report.flush.p50_alone_us;
  flush["p99_alone_us"] = report.flush.p99_alone_us;
  flush["p50_beside_us"] = report.flush.p50_beside_us;
  flush["p99_beside_us"] = report.flush.p99_beside_us;
  flush["longest_wait_us"] = report.flush.longest_wait_us;
  json["checkpoints"] = report.checkpoints;
  json["lookup_rows_per_second"] = report.lookup.PositionsPerSecond();
  json["gradients_rows_per_second"] = report.gradients.PositionsPerSecond();
  AddComparison(report, &json);
  json["seconds"] = report.seconds;
  return JsonText(json);
}

}  // namespace embank
