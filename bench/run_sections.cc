#include "bench/run_sections.h"

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "base/str_cat.h"
#include "bench/report_parts.h"
#include "bench/survive_report.h"

namespace embank {
namespace {

constexpr double kMillion = 1e6;
constexpr uint32_t kBinsPerPower = 8;
constexpr const char* kKeysLabel = "keys replayed, million";

double Millions(uint64_t count) { return static_cast<double>(count) / kMillion; }

std::string Milliseconds(uint64_t nanoseconds) {
  return absl::StrFormat("%.3f", static_cast<double>(nanoseconds) * 1e-6);
}

// A figure of each slice, at the slice's end.
template <typename Figure>
PlotSeries SeriesOf(std::string name, const std::vector<RunSlice>& slices, uint64_t positions,
                    const Figure& figure) {
  PlotSeries series{std::move(name), {}};
  for (const RunSlice& slice : slices) {
    positions += slice.positions;
    series.points.push_back({Millions(positions), figure(slice)});
  }
  return series;
}

// The share of the batches that took as long as each bin, in percent.
PlotSeries HistogramOf(std::string name, const LatencyHistogram& latency) {
  PlotSeries series{std::move(name), {}};
  const std::vector<LatencyHistogram::Bin> bins = latency.Bins(kBinsPerPower);
  for (const LatencyHistogram::Bin& bin : bins) {
    series.points.push_back(
        {static_cast<double>(std::max<uint64_t>(1, bin.begin_ns)) * 1e-6,
         100.0 * static_cast<double>(bin.count) / static_cast<double>(latency.count())});
  }
  if (!bins.empty()) series.points.push_back({static_cast<double>(bins.back().end_ns) * 1e-6, 0.0});
  return series;
}

// `is_log`: one verb is many times slower than the other.
HtmlFigure ThroughputFigure(const std::vector<RunSlice>& slices, uint64_t positions_before,
                            bool is_log) {
  HtmlFigure figure;
  figure.plot.title = "Throughput";
  figure.plot.x = {.label = kKeysLabel, .begin = Millions(positions_before)};
  figure.plot.y = {
      .label = is_log ? "million keys per second (logarithmic scale)" : "million keys per second",
      .is_log = is_log};
  figure.plot.series = {
      SeriesOf("lookups", slices, positions_before,
               [](const RunSlice& slice) { return slice.LookupsPerSecond() / kMillion; }),
      SeriesOf("gradients", slices, positions_before,
               [](const RunSlice& slice) { return slice.GradientsPerSecond() / kMillion; })};
  figure.caption =
      "Keys per second of time spent in the store's calls: rows looked up, and gradients applied "
      "to them. The time of the oracle is not in it.";
  return figure;
}

HtmlFigure HitFigure(const std::vector<RunSlice>& slices, uint64_t positions_before,
                     std::string name, std::string caption) {
  HtmlFigure figure;
  figure.plot.title = "Hit ratio";
  figure.plot.x = {.label = kKeysLabel, .begin = Millions(positions_before)};
  figure.plot.y = {.label = "% of the rows asked for", .end = 100.0};
  figure.plot.series = {SeriesOf(std::move(name), slices, positions_before,
                                 [](const RunSlice& slice) { return slice.HitRatio() * 100.0; })};
  figure.caption = std::move(caption);
  return figure;
}

HtmlFigure LatencyFigure(const VerbTiming& lookup, const VerbTiming& gradients) {
  HtmlFigure figure;
  figure.plot.kind = SvgPlot::Kind::kSteps;
  figure.plot.title = "Time of a batch";
  figure.plot.x = {.label = "milliseconds of one batch (logarithmic scale)", .is_log = true};
  figure.plot.y = {.label = "% of the batches"};
  figure.plot.series = {HistogramOf("lookups", lookup.latency),
                        HistogramOf("gradients", gradients.latency)};
  figure.caption =
      "How long calls took: the higher the step, the more batches took as long. The steps "
      "far to the right are the few slow batches.";
  return figure;
}

HtmlTable VerbTable(std::span<const std::pair<const char*, const VerbTiming*>> verbs) {
  HtmlTable table;
  table.title = "Calls";
  table.columns = {"verb",   "rows",   "rows/s",   "batches",
                   "p50 ms", "p99 ms", "p99.9 ms", "longest ms"};
  for (const auto& [name, timing] : verbs) {
    if (timing->positions == 0) continue;
    table.rows.push_back(
        {name, Grouped(timing->positions), GroupedRounded(timing->PositionsPerSecond()),
         Grouped(timing->latency.count()), Milliseconds(timing->latency.PercentileNs(0.5)),
         Milliseconds(timing->latency.PercentileNs(0.99)),
         Milliseconds(timing->latency.PercentileNs(0.999)),
         Milliseconds(timing->latency.max_ns())});
  }
  table.legend =
      "rows: keys asked for, a repeated one each time; rows/s: per second in the store's calls; "
      "p50, p99, p99.9: half, 99 %, 99.9 % of the batches take no longer. Times of a scan are "
      "those "
      "of one part of it.";
  return table;
}

std::string RateText(double rate) { return rate == rate ? GroupedRounded(rate) : "-"; }

HtmlTable SliceTable(const std::vector<RunSlice>& slices, uint64_t positions) {
  HtmlTable table;
  table.title = "The numbers of the pictures over time";
  table.columns = {"keys up to", "lookups/s", "gradients/s", "hit ratio"};
  for (const RunSlice& slice : slices) {
    positions += slice.positions;
    const double hit_ratio = slice.HitRatio();
    table.rows.push_back({Grouped(positions), RateText(slice.LookupsPerSecond()),
                          RateText(slice.GradientsPerSecond()),
                          hit_ratio == hit_ratio ? absl::StrFormat("%.3f", hit_ratio) : "-"});
  }
  table.is_folded = true;
  return table;
}

HtmlTable FigureTable(const char* title, std::vector<std::vector<std::string>> rows) {
  return {title, {"figure", "value"}, std::move(rows)};
}

std::vector<std::pair<std::string, std::string>> Facts(const Machine& machine,
                                                       const ReplayOptions& options,
                                                       const std::string& source,
                                                       const RunOrigin& origin) {
  std::vector<std::pair<std::string, std::string>> facts = OriginFacts(machine, origin);
  facts.emplace_back("keys", source);
  facts.emplace_back("rows",
                     absl::StrFormat("%d values of type %s, optimizer %s", options.shape.dim,
                                     ValueTypeName(options.shape.value_type),
                                     OptimizerName(options.shape.optimizer)));
  facts.emplace_back("batch", StrCat(Grouped(options.batch), " keys"));
  return facts;
}

void SetVerdict(uint64_t mismatches, const std::string& first, std::string success,
                HtmlSection* section) {
  section->is_failed = mismatches > 0;
  section->verdict = mismatches == 0
                         ? std::move(success)
                         : StrCat("FAILED: ", Grouped(mismatches),
                                  " answers or rows differ from the oracle's; the first: ", first);
}

std::string Percent(double share) { return absl::StrFormat("%.1f %%", share * 100.0); }

double MiB(uint64_t bytes) { return static_cast<double>(bytes) * 0x1p-20; }

HtmlTable KillTable(const SurviveReport& report) {
  HtmlTable table;
  table.title = "Kills";
  table.columns = {"killed in", "batches told", "batches found", "recovery s"};
  for (const Kill& kill : report.kills) {
    table.rows.push_back({KilledInName(kill.where), Grouped(kill.batches_told),
                          Grouped(kill.batches_found),
                          absl::StrFormat("%.3f", kill.recover_seconds)});
  }
  table.legend =
      "killed in: what the process was doing; batches told: that it had done by then; batches "
      "found: those in the checkpoint that the next opening found, whose rows were all compared; "
      "recovery s: time of that opening.";
  return table;
}

HtmlTable TierTable(const TiersReport& report) {
  HtmlTable table;
  table.title = "Tiers";
  table.columns = {"tier", "rows", "MiB", "lookups answered", "rows in", "rows out"};
  const auto share = [&](uint64_t lookups) {
    return Percent(static_cast<double>(lookups) /
                   static_cast<double>(std::max<uint64_t>(1, report.positions)));
  };
  const auto moved = [](const std::optional<uint64_t>& rows) {
    return rows ? Grouped(*rows) : std::string("-");
  };
  for (const TierFigures& tier : report.tiers) {
    table.rows.push_back({tier.name, Grouped(tier.rows), absl::StrFormat("%.1f", MiB(tier.bytes)),
                          share(tier.answered), moved(tier.moved_in), moved(tier.moved_out)});
  }
  table.rows.push_back({"made", "", "", share(report.created), "", ""});
  table.legend =
      "rows, MiB: in the tier at the end; lookups answered: whose rows were there; rows in, rows "
      "out: moved to the tier and from it, where the store counts them.";
  return table;
}

}  // namespace

std::vector<std::pair<std::string, std::string>> OriginFacts(const Machine& machine,
                                                             const RunOrigin& origin) {
  return {{"machine", absl::StrFormat("%s, %d cores, %.1f GiB of memory, %s, huge pages %s, load "
                                      "%.2f before the run",
                                      machine.cpu, machine.cores,
                                      static_cast<double>(machine.memory_bytes) * 0x1p-30,
                                      machine.kernel, machine.huge_pages, machine.load_average)},
          {"commit", Commit()},
          {"command", origin.command},
          {"begun", origin.time}};
}

std::string CommandText(std::span<const char* const> words) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  std::string text;
  for (std::string word : words) {
    if (text.empty()) word = word.substr(word.rfind('/') + 1);
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    StrAppend(&text, text.empty() ? "" : " ",
              is_plain ? word : StrCat("'", absl::StrReplaceAll(word, {{"'", "'\\''"}}), "'"));
  }
  return text;
}

std::string TimeText(int64_t seconds_since_1970) {
  const std::time_t time = seconds_since_1970;
  std::tm parts{};
  char text[32];
  if (gmtime_r(&time, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M UTC", &parts) == 0) {
    return "unknown";
  }
  return text;
}

HtmlSection ReplaySection(const Machine& machine, const ReplayOptions& options,
                          const ReplayReport& report, const RunOrigin& origin) {
  HtmlSection section;
  section.title = "Replay: a store in memory";
  SetVerdict(report.mismatches, report.first_mismatch,
             StrCat("All ", Grouped(report.answers_compared), " answers and all ",
                    Grouped(report.rows_compared), " rows are those of the oracle, bit for bit."),
             &section);
  section.paragraphs = {
      "Each batch of keys is looked up, as a training job does; a key that has no row yet gets "
      "one. "
      "Then gradients are applied to the rows. At the end all rows are scanned. The oracle is a "
      "second, simple implementation that shares no code with the store and does the same."};
  section.facts = Facts(machine, options, report.source, origin);
  section.figures = {
      ThroughputFigure(report.slices, 0, false),
      HitFigure(report.slices, 0, "keys that had a row",
                "Keys that had a row already; the others were new and got one. All rows are in "
                "memory here."),
      LatencyFigure(report.lookup, report.gradients)};
  const std::pair<const char*, const VerbTiming*> verbs[] = {
      {"lookup", &report.lookup}, {"gradients", &report.gradients}, {"scan", &report.scan}};
  section.tables = {
      VerbTable(verbs),
      FigureTable("Rows",
                  {{"distinct keys", Grouped(report.distinct_keys)},
                   {"accesses to the top 1 % of the keys", Percent(report.share_top_1)},
                   {"accesses to the top 10 %", Percent(report.share_top_10)},
                   {"accesses to the top 20 %", Percent(report.share_top_20)},
                   {"bytes of one row", Grouped(report.row_bytes)},
                   {"bytes of all memory / rows", absl::StrFormat("%.1f", report.bytes_per_row)}}),
      FigureTable("Comparison",
                  {{"answers compared", Grouped(report.answers_compared)},
                   {"rows compared, with state and heat", Grouped(report.rows_compared)},
                   {"mismatches", Grouped(report.mismatches)},
                   {"digest of all answers (the same on every machine)",
                    absl::StrFormat("crc32c %08x", report.digest)},
                   {"seconds, with the oracle", absl::StrFormat("%.1f", report.seconds)}}),
      SliceTable(report.slices, 0)};
  return section;
}

HtmlSection SurviveSection(const Machine& machine, const SurviveOptions& options,
                           const SurviveReport& report, const RunOrigin& origin) {
  const SurviveFigures& figures = report.figures;
  HtmlSection section;
  section.title = "Survive: a store on disk that is killed";
  SetVerdict(report.mismatches, report.first_mismatch,
             StrCat("Killed ", report.kills.size(),
                    " times, the store was its last checkpoint each time: ",
                    Grouped(report.rows_compared), " rows are those of the oracle, bit for bit."),
             &section);
  section.paragraphs = {
      absl::StrFormat("The rows take %.0f MiB and the store may use %.0f MiB of memory: the other "
                      "rows are on disk. The process is killed while it works, makes a checkpoint, "
                      "or opens its store. What is found then is compared with the oracle.",
                      MiB(report.data_bytes), MiB(report.dram_bytes)),
      "The pictures are of the rest of the run, which nobody kills. It begins with a store that "
      "was "
      "just opened: none of its rows is in memory yet."};
  section.facts = Facts(machine, options.replay, report.source, origin);
  section.figures = {
      ThroughputFigure(figures.slices, figures.positions_before, true),
      HitFigure(figures.slices, figures.positions_before, "rows found in memory",
                "Rows that lookups and gradients found in memory; the others were read from disk."),
      LatencyFigure(figures.lookup, figures.gradients)};
  for (size_t i = 0; i < 2; ++i) {
    for (const uint64_t position : figures.checkpoint_positions) {
      section.figures[i].plot.marks.push_back(Millions(position));
    }
    section.figures[i].plot.mark_name = "checkpoint";
  }
  const std::pair<const char*, const VerbTiming*> verbs[] = {
      {"lookup", &figures.lookup}, {"gradients", &figures.gradients}, {"scan", &figures.scan}};
  section.tables = {
      KillTable(report), VerbTable(verbs),
      FigureTable("The store on disk",
                  {{"rows", Grouped(report.rows)},
                   {"rows found in memory", Percent(figures.hit_ratio)},
                   {"reads of the disk per second", GroupedRounded(figures.iops)},
                   {"bytes written / bytes of rows that left memory",
                    absl::StrFormat("%.2f", figures.write_amplification)},
                   {"checkpoints", StrCat(figures.checkpoint_seconds.size())},
                   {"seconds of the median checkpoint",
                    absl::StrFormat("%.3f", MedianSeconds(figures.checkpoint_seconds))},
                   {"seconds of the longest",
                    absl::StrFormat("%.3f", LongestSeconds(figures.checkpoint_seconds))},
                   {"seconds of the opening at the end",
                    absl::StrFormat("%.3f", figures.recover_seconds)}}),
      FigureTable("Comparison",
                  {{"answers compared", Grouped(report.answers_compared)},
                   {"rows compared, with state", Grouped(report.rows_compared)},
                   {"mismatches", Grouped(report.mismatches)},
                   {"seconds, with the oracle", absl::StrFormat("%.1f", report.seconds)}}),
      SliceTable(figures.slices, figures.positions_before)};
  return section;
}

HtmlSection TiersSection(const Machine& machine, const TiersOptions& options,
                         const TiersReport& report, const RunOrigin& origin) {
  HtmlSection section;
  section.title = "Tiers: rows where their heat says";
  SetVerdict(
      report.mismatches, report.first_mismatch,
      StrCat("With rows in four tiers, all ", Grouped(report.answers_compared), " answers and all ",
             Grouped(report.rows_compared), " rows are those of the oracle, bit for bit."),
      &section);
  section.paragraphs = {absl::StrFormat(
      "%s rows take %.0f MiB. The store may use %.0f MiB of device memory (%s), %.0f MiB of DRAM "
      "and %.0f MiB of persistent memory; the other rows are on the SSD. Rows with the most heat "
      "go up, while batches go on.",
      Grouped(report.rows), MiB(report.data_bytes), MiB(report.hbm_bytes), report.device,
      MiB(report.dram_bytes), MiB(report.pmem_bytes))};
  section.facts = Facts(machine, options.replay, report.source, origin);
  const std::pair<const char*, const VerbTiming*> verbs[] = {{"lookup", &report.lookup},
                                                             {"gradients", &report.gradients}};
  section.figures = {LatencyFigure(report.lookup, report.gradients)};
  section.tables = {
      TierTable(report), VerbTable(verbs),
      FigureTable("Moves",
                  {{"top-k flushes", Grouped(report.hot_flushes)},
                   {"checkpoints", Grouped(report.checkpoints)},
                   {"p99 of a batch beside flushes, us",
                    absl::StrFormat("%.0f", report.flush.p99_beside_us)},
                   {"p99 without a flush, us", absl::StrFormat("%.0f", report.flush.p99_alone_us)},
                   {"longest wait of a batch for a flush, us",
                    absl::StrFormat("%.0f", report.flush.longest_wait_us)}})};
  return section;
}

}  // namespace embank
