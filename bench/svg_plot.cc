#include "bench/svg_plot.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "absl/strings/str_format.h"
#include "base/str_cat.h"
#include "bench/escaped_text.h"

namespace embank {
namespace {

// In units of the picture. Left of the frame stand the numbers of the y axis, above it the axis's
// label and the legend, below it the numbers and the label of the x axis.
constexpr double kWidth = 720;
constexpr double kHeight = 290;
constexpr double kLeft = 64;
constexpr double kRight = 706;
constexpr double kTop = 38;
constexpr double kBottom = 240;
constexpr double kLetterWidth = 7;  // about
constexpr int kTicksX = 10;
constexpr int kTicksY = 6;
// A value within this part of a tick counts as on the tick.
constexpr double kSlack = 1e-9;

// The values of one axis, and where they are drawn.
struct Scale {
  double low = 0.0;
  double high = 1.0;
  double low_place = 0.0;
  double high_place = 1.0;
  bool is_log = false;
  std::vector<double> ticks = {};

  bool CanShow(double value) const { return std::isfinite(value) && (!is_log || value > 0.0); }
  double Place(double value) const {
    const double share =
        is_log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return low_place + std::clamp(share, 0.0, 1.0) * (high_place - low_place);
  }
};

struct Extent {
  double low = std::numeric_limits<double>::infinity();
  double high = -std::numeric_limits<double>::infinity();

  bool IsEmpty() const { return low > high; }
  void Include(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
};

// The multiples of `step` from `low` to `high`.
std::vector<double> Multiples(double step, double low, double high) {
  const double first = std::ceil(low / step - kSlack);
  const double last = std::floor(high / step + kSlack);
  std::vector<double> multiples;
  // + 0.0: there is no -0.
  for (int i = 0; i <= last - first; ++i) multiples.push_back((first + i) * step + 0.0);
  return multiples;
}

// One value alone gets space on both sides.
Scale ScaleOf(const PlotAxis& axis, const Extent& extent, double low_place, double high_place,
              int tick_count_max) {
  Scale scale = {axis.begin.value_or(extent.low), axis.end.value_or(extent.high), low_place,
                 high_place, axis.is_log};
  if (!(scale.low < scale.high)) {
    scale.high = scale.low == 0.0 ? 1.0 : scale.low + std::abs(scale.low);
  }
  scale.ticks = scale.is_log ? LogTicks(scale.low, scale.high)
                             : LinearTicks(scale.low, scale.high, tick_count_max);
  return scale;
}

// The power of ten at or below a value.
double PowerBelow(double value) { return std::pow(10.0, std::floor(std::log10(value))); }

// Makes an axis longer, so that it begins and ends at a tick.
void EndAtTicks(Scale* scale) {
  if (scale->is_log) {
    const double low_power = PowerBelow(scale->low);
    const double high_power = PowerBelow(scale->high);
    for (const double factor : {5.0, 2.0, 1.0}) {
      if (low_power * factor <= scale->low * (1 + kSlack)) {
        scale->low = low_power * factor;
        break;
      }
    }
    for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
      if (high_power * factor >= scale->high * (1 - kSlack)) {
        scale->high = high_power * factor;
        break;
      }
    }
    scale->ticks = LogTicks(scale->low, scale->high);
    return;
  }
  if (scale->ticks.size() < 2) return;
  const double step = scale->ticks[1] - scale->ticks[0];
  scale->low = std::floor(scale->low / step + kSlack) * step;
  scale->high = std::ceil(scale->high / step - kSlack) * step;
  scale->ticks = Multiples(step, scale->low, scale->high);
}

class Drawing {
 public:
  explicit Drawing(const SvgPlot& plot) : plot_(plot) {
    x_.is_log = plot.x.is_log;
    y_.is_log = plot.y.is_log;
    Extent x;
    Extent y;
    for (const PlotSeries& series : plot.series) {
      for (const PlotPoint& point : series.points) {
        if (!CanShow(point)) continue;
        x.Include(point.x);
        y.Include(point.y);
      }
    }
    is_empty_ = x.IsEmpty();
    if (is_empty_) return;
    if (!plot.y.is_log) y.low = 0.0;
    x_ = ScaleOf(plot.x, x, kLeft, kRight, kTicksX);
    y_ = ScaleOf(plot.y, y, kBottom, kTop, kTicksY);
    if (!plot.y.end.has_value()) EndAtTicks(&y_);
  }

  std::string Text() {
    text_ = absl::StrFormat(
        "<svg class=\"plot\" viewBox=\"0 0 %g %g\" role=\"img\" aria-label=\"%s\">\n", kWidth,
        kHeight, EscapedText(plot_.title));
    if (is_empty_) {
      Words((kLeft + kRight) / 2, (kTop + kBottom) / 2, "middle", "nothing was measured");
    } else {
      Grid();
      Marks();
      for (size_t i = 0; i < plot_.series.size(); ++i) {
        plot_.kind == SvgPlot::Kind::kLines ? Line(i) : Steps(i);
      }
    }
    Words(kLeft - 56, 18, "start", plot_.y.label);
    Words((kLeft + kRight) / 2, kHeight - 8, "middle", plot_.x.label);
    Legend();
    return text_ + "</svg>\n";
  }

 private:
  bool CanShow(const PlotPoint& point) const { return x_.CanShow(point.x) && y_.CanShow(point.y); }

  void Words(double x, double y, const char* anchor, const std::string& words) {
    absl::StrAppendFormat(&text_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>\n", x,
                          y, anchor, EscapedText(words));
  }
  void Stroke(double x1, double y1, double x2, double y2, const char* css_class) {
    absl::StrAppendFormat(&text_,
                          "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" class=\"%s\"/>\n",
                          x1, y1, x2, y2, css_class);
  }

  void Grid() {
    for (const double tick : y_.ticks) {
      const double y = y_.Place(tick);
      Stroke(kLeft, y, kRight, y, "plot-grid");
      Words(kLeft - 8, y + 4, "end", TickText(tick));
    }
    for (const double tick : x_.ticks) {
      const double x = x_.Place(tick);
      Stroke(x, kBottom, x, kBottom + 5, "plot-axis");
      Words(x, kBottom + 20, "middle", TickText(tick));
    }
    Stroke(kLeft, kBottom, kRight, kBottom, "plot-axis");
  }

  void Marks() {
    for (const double mark : plot_.marks) {
      if (!x_.CanShow(mark) || mark < x_.low || mark > x_.high) continue;
      Stroke(x_.Place(mark), kTop, x_.Place(mark), kBottom, "plot-mark");
    }
  }

  // A point between two gaps is a dot.
  void Line(size_t number) {
    const std::vector<PlotPoint>& points = plot_.series[number].points;
    std::string path;
    std::string dots;
    for (size_t i = 0; i < points.size(); ++i) {
      if (!CanShow(points[i])) continue;
      const bool follows = i > 0 && CanShow(points[i - 1]);
      const bool goes_on = i + 1 < points.size() && CanShow(points[i + 1]);
      const double x = x_.Place(points[i].x);
      const double y = y_.Place(points[i].y);
      if (follows || goes_on) {
        absl::StrAppendFormat(&path, "%s%.1f %.1f", follows ? "L" : "M", x, y);
      } else {
        absl::StrAppendFormat(
            &dots, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3.5\" class=\"plot-series-%d\"/>\n", x, y,
            number);
      }
    }
    if (!path.empty()) {
      absl::StrAppendFormat(&text_, "<path d=\"%s\" class=\"plot-line plot-series-%d\"/>\n", path,
                            number);
    }
    text_ += dots;
  }

  void Steps(size_t number) {
    const std::vector<PlotPoint>& points = plot_.series[number].points;
    std::string path;
    double last_y = kBottom;
    for (const PlotPoint& point : points) {
      if (!CanShow(point)) continue;
      const double x = x_.Place(point.x);
      const double y = y_.Place(point.y);
      if (path.empty()) path = absl::StrFormat("M%.1f %.1f", x, kBottom);
      absl::StrAppendFormat(&path, "L%.1f %.1fL%.1f %.1f", x, last_y, x, y);
      last_y = y;
    }
    if (path.empty()) return;
    // The last step is as long as the axis is; a histogram ends with an empty one.
    absl::StrAppendFormat(&path, "L%.1f %.1fL%.1f %.1f", kRight, last_y, kRight, kBottom);
    absl::StrAppendFormat(&text_, "<path d=\"%s\" class=\"plot-area plot-series-%d\"/>\n", path,
                          number);
  }

  // From the right, above the frame.
  void Legend() {
    double x = kRight;
    const auto entry = [&](const std::string& name, const std::string& css_class) {
      x -= static_cast<double>(name.size()) * kLetterWidth;
      Words(x, 18, "start", name);
      Stroke(x - 28, 14, x - 6, 14, css_class.c_str());
      x -= 44;
    };
    if (!plot_.marks.empty() && !is_empty_) entry(plot_.mark_name, "plot-mark");
    for (size_t i = plot_.series.size(); i-- > 0;) {
      entry(plot_.series[i].name, StrCat("plot-line plot-series-", i));
    }
  }

  const SvgPlot& plot_;
  Scale x_;
  Scale y_;
  bool is_empty_ = false;
  std::string text_;
};

}  // namespace

std::string SvgElement(const SvgPlot& plot) { return Drawing(plot).Text(); }

std::vector<double> LinearTicks(double low, double high, int count_max) {
  if (!std::isfinite(high - low) || low > high) return {};
  if (low == high) return {low};
  const double power = PowerBelow((high - low) / count_max);
  if (!(power > 0.0)) return {low, high};
  for (double step = power;; step *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      std::vector<double> ticks = Multiples(step * factor, low, high);
      if (ticks.size() <= static_cast<size_t>(count_max)) return ticks;
    }
  }
}

std::vector<double> LogTicks(double low, double high) {
  if (!(low > 0.0) || !std::isfinite(high) || low > high) return {};
  constexpr int kPowersAlone = 3;
  const auto first = static_cast<int>(std::floor(std::log10(low)));
  const auto last = static_cast<int>(std::ceil(std::log10(high)));
  const auto is_within = [&](double tick) {
    return tick >= low * (1 - kSlack) && tick <= high * (1 + kSlack);
  };
  std::vector<double> powers;
  std::vector<double> all;
  for (int i = first; i <= last; ++i) {
    const double power = std::pow(10.0, i);
    if (is_within(power)) powers.push_back(power);
    for (const double factor : {1.0, 2.0, 5.0}) {
      if (is_within(power * factor)) all.push_back(power * factor);
    }
  }
  return powers.size() > kPowersAlone ? powers : all;
}

std::string TickText(double value) {
  std::string text = absl::StrFormat("%.10g", value);
  const size_t sign = value < 0 ? 1 : 0;
  const size_t whole = std::min(text.find('.'), text.size());
  if (text.find('e') != std::string::npos) return text;
  for (size_t i = whole; i > sign + 3;) text.insert(i -= 3, 1, ',');
  return text;
}

}  // namespace embank
