#include "bench/survive_report.h"

#include <algorithm>

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/kv_samples.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

constexpr const char* kKillsLegend =
    "killed in: what the process was doing; batches told: that it had done when it was "
    "killed; found: those in the checkpoint that the next opening found, whose rows were "
    "compared; recovery s: time of that opening";
constexpr const char* kLegend =
    "then: the rest of the keys, without a kill; rows/s: per second in the store's calls; hit "
    "ratio: rows found in memory; IOPS: reads of the disk per second; write amplification: "
    "bytes written / bytes of the rows that left memory; checkpoints: their number, and how "
    "long one took; recovery: the opening at the end; compared: with a second, simple "
    "implementation (the oracle), bit for bit; mismatches: answers or rows that differed";

struct NamedTiming {
  const char* name;
  const VerbTiming* timing;
};

std::vector<NamedTiming> TimingsOf(const SurviveFigures& figures) {
  return {{"lookup", &figures.lookup}, {"gradients", &figures.gradients}, {"scan", &figures.scan}};
}

std::string Kills(const SurviveReport& report) {
  std::string text = absl::StrFormat("  %-12s %14s %14s %12s\n", "killed in", "batches told",
                                     "found", "recovery s");
  for (const Kill& kill : report.kills) {
    absl::StrAppendFormat(&text, "  %-12s %14s %14s %12.3f\n", KilledInName(kill.where),
                          Grouped(kill.batches_told), Grouped(kill.batches_found),
                          kill.recover_seconds);
  }
  return text + Legend(kKillsLegend);
}

}  // namespace

const char* KilledInName(KilledIn where) {
  switch (where) {
    case KilledIn::kBatches:
      return "batches";
    case KilledIn::kCheckpoint:
      return "checkpoint";
    case KilledIn::kRecovery:
      return "recovery";
  }
  return "";
}

double LongestSeconds(const std::vector<double>& seconds) {
  return seconds.empty() ? 0.0 : *std::max_element(seconds.begin(), seconds.end());
}

double MedianSeconds(const std::vector<double>& seconds) {
  return seconds.empty() ? 0.0 : Median(seconds);
}

std::string SurviveTable(const Machine& machine, const SurviveOptions& options,
                         const SurviveReport& report) {
  const SurviveFigures& figures = report.figures;
  std::string text = "embank-bench survive\n" + Heading(machine, options.replay.shape);
  absl::StrAppendFormat(&text, "  keys     %s\n", report.source);
  absl::StrAppendFormat(&text, "  data     %s rows, %.0f MiB; memory of the store %.0f MiB\n\n",
                        Grouped(report.rows), static_cast<double>(report.data_bytes) * 0x1p-20,
                        static_cast<double>(report.dram_bytes) * 0x1p-20);
  if (!report.kills.empty()) text += Kills(report) + "\n";
  absl::StrAppendFormat(&text, "  %-12s %14s %14s\n", "then", "rows", "rows/s");
  for (const NamedTiming& one : TimingsOf(figures)) {
    if (one.timing->positions == 0) continue;
    absl::StrAppendFormat(&text, "  %-12s %14s %14s\n", one.name, Grouped(one.timing->positions),
                          GroupedRounded(one.timing->PositionsPerSecond()));
  }
  absl::StrAppendFormat(&text, "\n  hit ratio           %.3f of lookups and gradients\n",
                        figures.hit_ratio);
  absl::StrAppendFormat(&text, "  IOPS                %s reads of the log\n",
                        GroupedRounded(figures.iops));
  absl::StrAppendFormat(&text, "  write amplification %.2f\n", figures.write_amplification);
  absl::StrAppendFormat(&text, "  checkpoints         %d: median %.3f s, longest %.3f s\n",
                        figures.checkpoint_seconds.size(),
                        MedianSeconds(figures.checkpoint_seconds),
                        LongestSeconds(figures.checkpoint_seconds));
  absl::StrAppendFormat(&text, "  recovery            %.3f s\n", figures.recover_seconds);
  absl::StrAppendFormat(&text, "  compared            %s answers; %s rows and states\n",
                        Grouped(report.answers_compared), Grouped(report.rows_compared));
  absl::StrAppendFormat(&text, "  mismatches          %s\n", MismatchesText(report));
  absl::StrAppendFormat(&text, "  time                %.1f s, with the oracle\n", report.seconds);
  return text + "\n" + Legend(kLegend);
}

std::string SurviveJson(const Machine& machine, const SurviveOptions& options,
                        const SurviveReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  Json& parameters = json["parameters"];
  parameters["source"] = report.source;
  AddShape(options.replay.shape, &parameters);
  parameters["batch"] = options.replay.batch;
  parameters["threads"] = options.replay.threads;
  parameters["seed"] = options.replay.seed;
  parameters["rows"] = report.rows;
  parameters["data_bytes"] = report.data_bytes;
  parameters["dram_bytes"] = report.dram_bytes;
  json["kills"] = Json::array();
  for (const Kill& kill : report.kills) {
    json["kills"].push_back({{"where", KilledInName(kill.where)},
                             {"batches_told", kill.batches_told},
                             {"batches_found", kill.batches_found},
                             {"recover_seconds", kill.recover_seconds}});
  }
  const SurviveFigures& figures = report.figures;
  json["runs"] = Json::array();
  for (const NamedTiming& one : TimingsOf(figures)) {
    json["runs"].push_back({{"verb", one.name},
                            {"rows", one.timing->positions},
                            {"rows_per_second", one.timing->PositionsPerSecond()}});
  }
  json["hit_ratio"] = figures.hit_ratio;
  json["iops"] = figures.iops;
  json["write_amplification"] = figures.write_amplification;
  json["checkpoint_seconds"] = figures.checkpoint_seconds;
  json["recover_seconds"] = figures.recover_seconds;
  AddComparison(report, &json);
  json["seconds"] = report.seconds;
  return JsonText(json);
}

}  // namespace embank
