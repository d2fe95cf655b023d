#include "train/fae/calibration_picture.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/check.h"
#include "base/numeric.h"
#include "base/str_cat.h"
#include "train/popularity/cutoff.h"

namespace embank {
namespace {

constexpr size_t kPoints = 129;
// In pixels.
constexpr double kWidth = 720;
constexpr double kHeight = 400;
constexpr double kLeft = 60;
constexpr double kRight = 20;
constexpr double kTop = 44;
constexpr double kBottom = 52;
constexpr int kShareTicks = 5;
// Colours that differ for people who do not see all of them.
constexpr const char* kRowsColour = "#d55e00";
constexpr const char* kInputsColour = "#0072b2";

// Counts values by the number of points that are not above them.
class PointCounts {
 public:
  explicit PointCounts(std::span<const PopularityPoint> points)
      : points_(points), ending_(points.size() + 1) {}

  void Add(double value) {
    const auto above = std::ranges::upper_bound(points_, value, {}, &PopularityPoint::threshold);
    ++ending_[static_cast<size_t>(above - points_.begin())];
    ++values_;
  }
  // Returns the share of values that are at least the threshold of each point.
  std::vector<double> Shares() const {
    std::vector<double> shares(points_.size());
    uint64_t count = 0;
    for (size_t i = points_.size(); i-- > 0;) {
      count += ending_[i + 1];
      if (values_ > 0) shares[i] = static_cast<double>(count) / static_cast<double>(values_);
    }
    return shares;
  }

 private:
  const std::span<const PopularityPoint> points_;
  std::vector<uint64_t> ending_;
  uint64_t values_ = 0;
};

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return StrCat("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", text,
                "</text>\n");
}

std::string Line(double x1, double y1, double x2, double y2, const char* stroke) {
  return StrCat("<line x1=\"", x1, "\" y1=\"", y1, "\" x2=\"", x2, "\" y2=\"", y2, "\" stroke=\"",
                stroke, "\"/>\n");
}

// The places of thresholds and shares in the picture.
struct Axes {
  double log_low = 0.0;
  double log_high = 1.0;

  double X(double threshold) const {
    const double part = (std::log10(threshold) - log_low) / (log_high - log_low);
    return kLeft + (kWidth - kLeft - kRight) * std::clamp(part, 0.0, 1.0);
  }
  static double Y(double share) { return kHeight - kBottom - (kHeight - kTop - kBottom) * share; }
};

std::string Grid(const Axes& axes) {
  std::string text;
  for (int i = 0; i <= kShareTicks; ++i) {
    const double share = static_cast<double>(i) / kShareTicks;
    StrAppend(&text, Line(kLeft, Axes::Y(share), kWidth - kRight, Axes::Y(share), "#ccc"),
              Text(kLeft - 8, Axes::Y(share) + 4, "end", StrCat(100 * i / kShareTicks, " %")));
  }
  for (double power = std::ceil(axes.log_low); power <= axes.log_high; power += 1.0) {
    const double x = axes.X(std::pow(10.0, power));
    StrAppend(&text, Line(x, kTop, x, Axes::Y(0), "#ccc"),
              Text(x, Axes::Y(0) + 18, "middle", StrCat("1e", static_cast<int>(power))));
  }
  return StrCat(text, Text((kLeft + kWidth - kRight) / 2, kHeight - 10, "middle",
                           "threshold: lookups of a row / lookups in its table"));
}

std::string Curve(std::span<const PopularityPoint> curve, const Axes& axes,
                  double PopularityPoint::*share, const char* colour) {
  std::string points;
  for (const PopularityPoint& point : curve) {
    StrAppend(&points, axes.X(point.threshold), ",", Axes::Y(point.*share), " ");
  }
  return StrCat("<polyline points=\"", points, "\" fill=\"none\" stroke=\"", colour,
                "\" stroke-width=\"2\"/>\n");
}

std::string Legend(double x, const char* colour, const std::string& name) {
  return StrCat("<rect x=\"", x, "\" y=\"12\" width=\"12\" height=\"12\" fill=\"", colour, "\"/>\n",
                Text(x + 18, 23, "start", name));
}

}  // namespace

std::vector<PopularityPoint> PopularityCurve(std::span<const TablePopularity> tables,
                                             std::span<const double> input_thresholds) {
  double low = 1.0;
  double high = 0.0;
  for (const TablePopularity& table : tables) {
    if (table.is_small || table.entries.empty()) continue;
    const auto accesses = static_cast<double>(table.accesses);
    const auto [least, most] = std::ranges::minmax_element(table.entries, {}, &IdCount::count);
    low = std::min(low, least->count / accesses);
    high = std::max(high, (most->count + 1.0) / accesses);
  }
  if (high == 0.0) return {};
  std::vector<PopularityPoint> points(kPoints);
  const double step = NaturalLog(high / low) / (kPoints - 1);
  for (size_t i = 0; i < kPoints; ++i) {
    points[i].threshold = low * Exponential(step * static_cast<double>(i));
  }
  points.front().threshold = low;
  points.back().threshold = high;

  PointCounts rows(points);
  for (const TablePopularity& table : tables) {
    if (table.is_small) continue;
    for (const IdCount& entry : table.entries) {
      rows.Add(ScoreOf(entry) / static_cast<double>(table.accesses));
    }
  }
  PointCounts inputs(points);
  for (const double threshold : input_thresholds) inputs.Add(threshold);
  const std::vector<double> rows_shares = rows.Shares();
  const std::vector<double> inputs_shares = inputs.Shares();
  for (size_t i = 0; i < kPoints; ++i) {
    points[i].rows_share = rows_shares[i];
    points[i].inputs_share = inputs_shares[i];
  }
  return points;
}

std::string CalibrationSvg(std::span<const PopularityPoint> curve, double chosen) {
  std::string text =
      StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth, "\" height=\"", kHeight,
             "\" font-family=\"sans-serif\" font-size=\"12\">\n"
             "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n");
  if (curve.empty()) {
    return StrCat(text, Text(kLeft, kTop, "start", "All tables are small: all rows are hot."),
                  "</svg>\n");
  }
  EMBANK_CHECK(curve.front().threshold > 0.0 && chosen > 0.0 &&
               curve.back().threshold > curve.front().threshold);
  const Axes axes = {std::log10(curve.front().threshold), std::log10(curve.back().threshold)};
  StrAppend(&text, Grid(axes), Curve(curve, axes, &PopularityPoint::rows_share, kRowsColour),
            Curve(curve, axes, &PopularityPoint::inputs_share, kInputsColour),
            Legend(kLeft, kRowsColour, "hot rows, of those of large tables in the sample"),
            Legend(kLeft + 310, kInputsColour, "inputs that are all hot"));
  const double x = axes.X(chosen);
  StrAppend(&text, Line(x, kTop - 4, x, Axes::Y(0), "black"),
            Text(x, kTop - 8, x > kWidth / 2 ? "end" : "start", StrCat("chosen: ", chosen)));
  return StrCat(text, "</svg>\n");
}

}  // namespace embank
