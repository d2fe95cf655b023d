#include "bench/hot_report.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/link_model.h"
#include "bench/report_parts.h"
#include "bench/svg_plot.h"

namespace embank {
namespace {

constexpr const char* kHotLegend =
    "lookups / unique: hits / lookups, and hits / distinct ids of each batch (of lru: at their "
    "first position). k: hot rows / rows. algorithm: Algorithm 1 as printed; cumulative: the same "
    "by Embank's planner; halving: counters halved at each flush; ideal: the ids of the highest "
    "true probability, of a trace those most frequent in the whole of it. steady: behind the "
    "warm-up; drifted: the 300 iterations behind the drift; settled: those behind them. moves: "
    "rows that became hot; early: heat epochs that ended early";
constexpr const char* kModelLegend =
    "model: nothing here is measured but the number of distinct rows per batch. A batch takes 10 "
    "us "
    "and its cold distinct rows at 12 GB/s; gain: rate / rate without hot rows; bar: 0.8 / (1 - "
    "h); rows for it: distinct rows that a batch must have, so that 10 us are small enough";

constexpr std::array kModelShares = {0.24, 0.5, 0.8, 0.95};
constexpr double kBarPart = 0.8;

double Share(uint64_t part, uint64_t all) {
  return all == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(all);
}
double LookupRatio(const HotHits& hits) { return Share(hits.lookup_hits, hits.lookups); }
double UniqueRatio(const HotHits& hits) { return Share(hits.distinct_hits, hits.distinct); }

std::string SkewText(const std::optional<double>& skew) {
  return skew.has_value() ? absl::StrFormat("%.3f", *skew) : "trace";
}

// A row of the table: the figures of all policies for one skew, part and k.
std::string FiguresRow(const HotReport& report, size_t first) {
  const HotFigure& head = report.figures[first];
  std::string text =
      absl::StrFormat("  %-5s %-7s %5.3f", SkewText(head.skew), HotPartName(head.part), head.k);
  for (const HotPolicyKind kind : kHotPolicyKinds) {
    for (const HotFigure& figure : report.figures) {
      if (figure.policy != kind || figure.part != head.part || figure.k != head.k ||
          figure.skew != head.skew) {
        continue;
      }
      absl::StrAppendFormat(&text, " %5.3f/%5.3f", LookupRatio(figure.hits),
                            UniqueRatio(figure.hits));
    }
  }
  return text + "\n";
}

std::string FiguresTable(const HotReport& report) {
  std::string text = absl::StrFormat("  %-5s %-7s %5s", "skew", "part", "k");
  for (const HotPolicyKind kind : kHotPolicyKinds) {
    absl::StrAppendFormat(&text, " %11s", HotPolicyName(kind));
  }
  text += "\n";
  for (size_t i = 0; i < report.figures.size(); ++i) {
    if (report.figures[i].policy == kHotPolicyKinds[0]) text += FiguresRow(report, i);
  }
  text += "\n";
  for (const HotFigure& figure : report.figures) {
    if (figure.policy != HotPolicyKind::kEmbank) continue;
    absl::StrAppendFormat(&text, "  embank, skew %s, k %.3f, %s: %d flushes, %s moves, %d early\n",
                          SkewText(figure.skew), figure.k, HotPartName(figure.part), figure.flushes,
                          Grouped(figure.moves), figure.early_epochs);
  }
  return text + "\n" + Legend(kHotLegend);
}

std::string LevelsTable(const HotReport& report) {
  if (report.levels.empty()) return "";
  std::string text = "\n  three levels: shares of the lookups\n";
  absl::StrAppendFormat(&text, "  %-6s%-9s%13s%14s%9s\n", "skew", "policy", "first (k)",
                        "second (k)", "third");
  for (const HotLevels& levels : report.levels) {
    absl::StrAppendFormat(&text, "  %-6s%-9s%6.3f (%4.3f)%7.3f (%4.2f)%9.3f\n",
                          SkewText(levels.skew), HotPolicyName(levels.policy), levels.first,
                          levels.k_first, levels.second, levels.k_second, levels.third);
  }
  return text;
}

// A model for each steady figure of embank.
struct ModelRow {
  const HotFigure* figure;
  LinkModel model;
};
std::vector<ModelRow> Models(const HotOptions& options, const HotReport& report) {
  std::vector<ModelRow> rows;
  for (const HotFigure& figure : report.figures) {
    if (figure.policy != HotPolicyKind::kEmbank || figure.part != HotPart::kSteady) continue;
    const double batches =
        static_cast<double>(figure.hits.lookups) / static_cast<double>(options.batch);
    LinkModel model;
    model.rows_per_batch = static_cast<double>(figure.hits.distinct) / batches;
    model.row_bytes = uint64_t{4} * options.dim;
    rows.push_back({&figure, model});
  }
  return rows;
}

std::string ModelTable(const HotOptions& options, const HotReport& report) {
  const std::vector<ModelRow> rows = Models(options, report);
  if (rows.empty()) return "";
  std::string text = absl::StrFormat("\n  model of the link, rows of %d bytes\n", 4 * options.dim);
  absl::StrAppendFormat(&text, "  %-6s%6s%11s%9s%8s%8s%13s\n", "skew", "k", "rows/batch", "h",
                        "gain", "bar", "rows for it");
  std::optional<double> last_skew = -1.0;
  for (const ModelRow& row : rows) {
    const auto line = [&](const std::string& k, double share) {
      const double bar = kBarPart / (1.0 - share);
      absl::StrAppendFormat(&text, "  %-6s%6s%11.0f%9.3f%8.2f%8.2f%13.0f\n",
                            SkewText(row.figure->skew), k, row.model.rows_per_batch, share,
                            row.model.Gain(share), bar, row.model.RowsForGain(share, kBarPart));
    };
    if (row.figure->skew != last_skew) {
      for (const double share : kModelShares) line("any", share);
    }
    last_skew = row.figure->skew;
    line(absl::StrFormat("%.3f", row.figure->k), UniqueRatio(row.figure->hits));
  }
  return text + "\n" + Legend(kModelLegend);
}

std::string CurveTable(const HotReport& report) {
  if (report.curve.empty()) return "";
  std::string text = "\n  hit ratio over hbm_bytes (1 GiB is 1 % of the rows)\n";
  absl::StrAppendFormat(&text, "  %-10s%8s%18s%18s\n", "hbm_bytes", "k", "embank", "ideal");
  for (const HotCurvePoint& point : report.curve) {
    absl::StrAppendFormat(&text, "  %5d MiB%9.4f%9.3f / %.3f%10.3f / %.3f\n", point.hbm_mib,
                          point.k, LookupRatio(point.embank), UniqueRatio(point.embank),
                          LookupRatio(point.ideal), UniqueRatio(point.ideal));
  }
  return text;
}

Json RatiosJson(const HotHits& hits) {
  return {{"hit_ratio_lookups", LookupRatio(hits)},
          {"hit_ratio_unique", UniqueRatio(hits)},
          {"lookups", hits.lookups},
          {"unique", hits.distinct}};
}

Json RunsJson(const HotReport& report) {
  Json runs = Json::array();
  for (const HotFigure& figure : report.figures) {
    Json run = {{"policy", HotPolicyName(figure.policy)},
                {"part", HotPartName(figure.part)},
                {"k", figure.k},
                {"skew", OrNull(figure.skew)}};
    run.update(RatiosJson(figure.hits));
    run["flushes"] = figure.flushes;
    run["moves"] = figure.moves;
    run["early_epochs"] = figure.early_epochs;
    runs.push_back(std::move(run));
  }
  return runs;
}

Json ModelJson(const HotOptions& options, const HotReport& report) {
  Json json = Json::array();
  for (const ModelRow& row : Models(options, report)) {
    std::vector<double> shares(kModelShares.begin(), kModelShares.end());
    shares.push_back(UniqueRatio(row.figure->hits));
    for (const double share : shares) {
      json.push_back({{"source", "model"},
                      {"skew", OrNull(row.figure->skew)},
                      {"k", row.figure->k},
                      {"rows_per_batch", row.model.rows_per_batch},
                      {"row_bytes", row.model.row_bytes},
                      {"hit_share", share},
                      {"gain", row.model.Gain(share)}});
    }
  }
  return json;
}

}  // namespace

std::string HotTable(const Machine& machine, const HotOptions& options, const HotReport& report) {
  std::string text = "embank-bench hot\n" + Heading(machine);
  absl::StrAppendFormat(
      &text, "  run      %s rows, batch %d, warm-up %d, flush every %d iterations%s%s\n\n",
      Grouped(report.rows), options.batch, options.warmup_iters, options.flush_iters,
      options.trace_path.empty() ? "" : ", ", options.trace_path);
  return text + FiguresTable(report) + LevelsTable(report) + ModelTable(options, report) +
         CurveTable(report);
}

std::string HotJson(const Machine& machine, const HotOptions& options, const HotReport& report) {
  Json json;
  json["machine"] = MachineJson(machine);
  json["commit"] = Commit();
  json["parameters"] = {{"rows", report.rows},
                        {"batch", options.batch},
                        {"warmup_iters", options.warmup_iters},
                        {"flush_iters", options.flush_iters},
                        {"drift_at", options.all ? 600 : options.drift_at},
                        {"preset", options.preset},
                        {"trace", options.trace_path},
                        {"dim", options.dim},
                        {"seed", options.seed}};
  json["runs"] = RunsJson(report);
  json["levels"] = Json::array();
  for (const HotLevels& levels : report.levels) {
    json["levels"].push_back({{"policy", HotPolicyName(levels.policy)},
                              {"skew", OrNull(levels.skew)},
                              {"k_first", levels.k_first},
                              {"k_second", levels.k_second},
                              {"first", levels.first},
                              {"second", levels.second},
                              {"third", levels.third}});
  }
  json["link_model"] = ModelJson(options, report);
  json["curve"] = Json::array();
  for (const HotCurvePoint& point : report.curve) {
    for (const auto& [policy, hits] : {std::pair{HotPolicyKind::kEmbank, point.embank},
                                       std::pair{HotPolicyKind::kIdeal, point.ideal}}) {
      Json entry = {{"hbm_mib", point.hbm_mib}, {"k", point.k}, {"policy", HotPolicyName(policy)}};
      entry.update(RatiosJson(hits));
      json["curve"].push_back(std::move(entry));
    }
  }
  return JsonText(json);
}

std::string HotCurveCsv(const HotReport& report) {
  std::string text = "hbm_mib,k,policy,hit_ratio_lookups,hit_ratio_unique\n";
  for (const HotCurvePoint& point : report.curve) {
    for (const auto& [name, hits] :
         {std::pair{"embank", point.embank}, std::pair{"ideal", point.ideal}}) {
      absl::StrAppendFormat(&text, "%d,%.6f,%s,%.6f,%.6f\n", point.hbm_mib, point.k, name,
                            LookupRatio(hits), UniqueRatio(hits));
    }
  }
  return text;
}

std::string HotCurveSvg(const HotReport& report) {
  SvgPlot plot;
  plot.title = "Hit ratio over hbm_bytes";
  plot.x = {.label = "hbm_bytes, MiB (1 GiB is 1 % of the rows)", .is_log = true};
  plot.y = {.label = "hit ratio"};
  plot.series = {{"lookups", {}}, {"unique", {}}};
  for (const HotCurvePoint& point : report.curve) {
    const auto mib = static_cast<double>(point.hbm_mib);
    plot.series[0].points.push_back({mib, LookupRatio(point.embank)});
    plot.series[1].points.push_back({mib, UniqueRatio(point.embank)});
  }
  std::string svg = SvgElement(plot);
  const std::string tag = "<svg ";
  svg.replace(svg.find(tag), tag.size(), "<svg xmlns=\"http://www.w3.org/2000/svg\" ");
  svg.insert(svg.find('>') + 1,
             "\n<style>text { font: 13px sans-serif; fill: #444; } .plot-grid { stroke: #ddd; } "
             ".plot-axis { stroke: #444; } .plot-line { fill: none; stroke-width: 2; } "
             ".plot-series-0 { stroke: #1f5fa8; } "
             ".plot-series-1 { stroke: #b4501e; stroke-dasharray: 6 3; }</style>");
  return svg;
}

}  // namespace embank
