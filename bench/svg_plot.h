// A picture of numbers: axes, and lines or steps of some series, as the text of an SVG element.
#ifndef EMBANK_BENCH_SVG_PLOT_H_
#define EMBANK_BENCH_SVG_PLOT_H_

#include <optional>
#include <string>
#include <vector>

namespace embank {

struct PlotPoint {
  double x = 0.0;
  double y = 0.0;
};

struct PlotSeries {
  std::string name;  // in the legend
  std::vector<PlotPoint> points;
};

struct PlotAxis {
  std::string label;  // with its unit
  bool is_log = false;
  // The range of the axis. Without it the axis covers all values; a y axis that is not logarithmic
  // begins at 0.
  std::optional<double> begin = {};
  std::optional<double> end = {};
};

struct SvgPlot {
  // kSteps: a point is the begin of a step that ends where the next point begins, as in a
  // histogram.
  enum class Kind { kLines, kSteps };

  Kind kind = Kind::kLines;
  std::string title;
  PlotAxis x;
  PlotAxis y;
  std::vector<PlotSeries> series;
  std::vector<double> marks = {};  // places on the x axis, each a vertical line
  std::string mark_name = {};
};

// The element <svg>. Points that are not finite are gaps, and so are those at or below 0 of a
// logarithmic axis. Without any point the picture says that there is nothing to show. Colours come
// from the page: the classes plot-series-0, plot-series-1, ..., plot-mark, plot-grid, plot-axis.
std::string SvgElement(const SvgPlot& plot);

// Round numbers from `low` to `high`, both included where they are round: 1, 2 or 5 times a power
// of ten apart, at most `count_max` (at least 2). None where low > high or either is not finite.
std::vector<double> LinearTicks(double low, double high, int count_max);
// The powers of ten from `low` to `high`, both > 0; where these are at most three, also 2 and 5
// times the powers of ten in that range.
std::vector<double> LogTicks(double low, double high);
// "0.05", "20", "1,500".
std::string TickText(double value);

}  // namespace embank

#endif  // EMBANK_BENCH_SVG_PLOT_H_
