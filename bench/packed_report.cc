#include "bench/packed_report.h"

#include "absl/strings/str_format.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

constexpr const char* kLegend =
    "tables: a lookup of one key for each sample in each table, and the Adagrad step of the same "
    "keys; bags: the same in one table with 325 keys for each sample, which are summed; us: the "
    "median of the rounds' means of one call, and the least and the greatest round; samples/s: of "
    "both calls";

Json TimeJson(const CallTime& time) {
  return {{"us", time.median_us}, {"us_min", time.min_us}, {"us_max", time.max_us}};
}

double SamplesPerSecond(const PackedFigure& figure) {
  return figure.of.batch * 1e6 / (figure.lookup.median_us + figure.gradients.median_us);
}

}  // namespace

std::string PackedTable(const Machine& machine, const PackedOptions& options,
                        const PackedReport& report) {
  std::string text = "embank-bench packed\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  ids      Zipf %g, %d threads\n\n", options.skew, options.threads);
  absl::StrAppendFormat(&text, "  %-7s %6s %10s %4s %6s %26s %26s %12s\n", "case", "tables",
                        "rows each", "dim", "batch", "lookup us", "gradients us", "samples/s");
  const auto time = [](const CallTime& of) {
    return absl::StrFormat("%.0f (%.0f..%.0f)", of.median_us, of.min_us, of.max_us);
  };
  for (const PackedFigure& figure : report.figures) {
    absl::StrAppendFormat(&text, "  %-7s %6d %10s %4d %6d %26s %26s %12s\n", figure.of.name,
                          figure.of.tables, Grouped(figure.of.rows), figure.of.dim, figure.of.batch,
                          time(figure.lookup), time(figure.gradients),
                          GroupedRounded(SamplesPerSecond(figure)));
  }
  return text + "\n" + Legend(kLegend);
}

std::string PackedJson(const Machine& machine, const PackedOptions& options,
                       const PackedReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  json["parameters"] = {{"skew", options.skew},
                        {"threads", options.threads},
                        {"seconds", options.seconds},
                        {"rounds", options.rounds},
                        {"seed", options.seed}};
  json["cases"] = Json::array();
  for (const PackedFigure& figure : report.figures) {
    json["cases"].push_back({{"case", figure.of.name},
                             {"tables", figure.of.tables},
                             {"rows", figure.of.rows},
                             {"dim", figure.of.dim},
                             {"batch", figure.of.batch},
                             {"bag", figure.of.bag},
                             {"calls", figure.calls},
                             {"lookup", TimeJson(figure.lookup)},
                             {"gradients", TimeJson(figure.gradients)},
                             {"samples_per_second", SamplesPerSecond(figure)}});
  }
  return JsonText(json);
}

}  // namespace embank
