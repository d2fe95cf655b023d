#include "bench/rank_report.h"

#include "absl/strings/str_format.h"
#include "bench/rank_ids.h"
#include "bench/report_parts.h"

namespace embank {
namespace {

// The exchanges of a step must reach this part of the ratio of their bytes.
constexpr double kExchangeBar = 0.85;

constexpr const char* kExchangeLegend =
    "MB: that all ranks send to others in a step; alone us: one MPI_Alltoallv of the bytes of the "
    "rows; step us: the exchanges of counts, ids with touches, and rows, with all that a rank does "
    "for them but its lookup; both of the slowest rank, medians of the rounds, in turns; ratio: "
    "alone / step, the median of the rounds; least: of the fastest rounds of both; bar: 0.85 x "
    "rows / (rows + ids + counts) in bytes; "
    "counts, ids, rows: the exchanges on rank 0; rest: lays out parts and copies ids into them";
constexpr const char* kDenseLegend =
    "beside us: slices forward and backward with buckets that are summed over the ranks as soon as "
    "they are there; behind us: with buckets that are summed when the last slice has ended; of the "
    "slowest rank, medians of the rounds, in turns; ratio: behind / beside, the median of the "
    "rounds";
constexpr const char* kBytesLegend =
    "bytes that a rank sends to others in a step, padding included, in the mean of ranks and steps";
constexpr const char* kLoadLegend =
    "by hash, by feature: the lookups of the busiest rank / those of the mean rank, where ranks "
    "have rows by the hash of their ids, or whole features; all: each id of a sample is a lookup; "
    "distinct: each distinct id of a slice, as in training; largest share: of the lookups, that "
    "of one id; bar: 1 + that share x ranks";

}  // namespace

std::string RankExchangeTable(const Machine& machine, const RankExchangeOptions& options,
                              uint32_t ranks, std::span<const RankExchangeFigure> figures) {
  std::string text = "embank-ranks exchange\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  ids      %d fields of %s ids, Zipf %g, %s samples, %d ranks\n\n",
                        RankIds::kFields, Grouped(RankIds::kCardinality), RankIds::kExponent,
                        Grouped(options.samples), ranks);
  absl::StrAppendFormat(&text, "  %4s %8s %7s %9s %9s %6s %6s %6s  %9s %7s %8s %6s\n", "dim",
                        "rows MB", "ids MB", "alone us", "step us", "ratio", "least", "bar",
                        "counts us", "ids us", "rows us", "rest");
  for (const RankExchangeFigure& figure : figures) {
    absl::StrAppendFormat(
        &text, "  %4d %8.2f %7.2f %9.0f %9.0f %6.3f %6.3f %6.3f  %9.0f %7.0f %8.0f %6.0f\n",
        figure.dim, static_cast<double>(figure.row_bytes) * 1e-6,
        static_cast<double>(figure.id_bytes) * 1e-6, figure.rows_alone_us, figure.step_us,
        figure.ratio, figure.ratio_of_least, kExchangeBar * figure.BytesRatio(), figure.counts_us,
        figure.ids_us, figure.rows_us, figure.rest_us);
  }
  return text + "\n" + Legend(kExchangeLegend);
}

std::string RankDenseTable(const Machine& machine, uint32_t ranks,
                           std::span<const RankDenseFigure> figures) {
  std::string text = "embank-ranks dense\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  ranks    %d, of one thread and the link's\n\n", ranks);
  absl::StrAppendFormat(&text, "  %-9s %7s %11s %8s %10s %10s %6s\n", "model", "batch",
                        "parameters", "buckets", "beside us", "behind us", "ratio");
  for (const RankDenseFigure& figure : figures) {
    absl::StrAppendFormat(&text, "  %-9s %7s %11s %8d %10.0f %10.0f %6.3f\n", figure.model,
                          Grouped(figure.batch), Grouped(figure.parameters), figure.buckets,
                          figure.beside_us, figure.behind_us, figure.ratio);
  }
  return text + "\n" + Legend(kDenseLegend);
}

std::string RankBytesTable(const Machine& machine, const RankBytesOptions& options,
                           std::span<const RankBytesFigure> figures) {
  std::string text = "embank-ranks bytes\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  batch    %s samples, of a twentieth of the Kaggle set's ids\n\n",
                        Grouped(options.batch));
  absl::StrAppendFormat(&text, "  %-9s %5s %7s %9s %10s %10s %10s %7s %10s %9s\n", "model", "ranks",
                        "counts", "ids", "rows", "sums", "dense", "vote", "all", "exchanges");
  for (const RankBytesFigure& figure : figures) {
    absl::StrAppendFormat(&text, "  %-9s %5d %7s %9s %10s %10s %10s %7s %10s %9.0f\n", figure.model,
                          figure.ranks, GroupedRounded(figure.counts), GroupedRounded(figure.ids),
                          GroupedRounded(figure.rows), GroupedRounded(figure.sums),
                          GroupedRounded(figure.dense), GroupedRounded(figure.vote),
                          GroupedRounded(figure.all()), figure.exchanges);
  }
  return text + "\n" + Legend(kBytesLegend);
}

std::string RankLoadTable(const Machine& machine, const RankLoadOptions& options,
                          const RankLoadFigure& figure) {
  std::string text = "embank-ranks load\n" + Heading(machine);
  absl::StrAppendFormat(&text, "  ids      %d fields of %s ids, Zipf %g, %d x %s samples\n",
                        RankIds::kFields, Grouped(RankIds::kCardinality), RankIds::kExponent,
                        options.batches, Grouped(options.samples));
  absl::StrAppendFormat(&text, "  ranks    %d\n\n", options.ranks);
  absl::StrAppendFormat(&text, "  %-8s %14s %8s %8s %10s\n", "lookups", "largest share", "by hash",
                        "bar", "by feature");
  const auto add = [&](const char* name, const RankLoad& load) {
    absl::StrAppendFormat(&text, "  %-8s %14.5f %8.3f %8.3f %10.3f\n", name, load.largest_share,
                          load.by_hash, 1.0 + load.largest_share * options.ranks, load.by_feature);
  };
  add("all", figure.all);
  add("distinct", figure.distinct);
  return text + "\n" + Legend(kLoadLegend);
}

}  // namespace embank
