#include "bench/svg_plot.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

namespace embank::svg_plot_test {
namespace {

using testing::AllOf;
using testing::DoubleEq;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pointwise;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

size_t CountOf(const std::string& part, const std::string& text) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

SvgPlot SomePlot(std::vector<PlotPoint> points) {
  SvgPlot plot;
  plot.title = "a title";
  plot.x = {.label = "keys"};
  plot.y = {.label = "rate"};
  plot.series = {{"lookups", std::move(points)}};
  return plot;
}

// A number as an axis shows it.
std::string Tick(const std::string& number) { return ">" + number + "</text>"; }

TEST(LinearTicks, AreRoundNumbers) {
  EXPECT_THAT(LinearTicks(0, 10, 6), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(LinearTicks(0, 1, 6),
              Pointwise(DoubleEq(), std::vector<double>{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_THAT(LinearTicks(0.95, 2.05, 4), ElementsAre(1, 1.5, 2));
  EXPECT_THAT(LinearTicks(0, 12e6, 6), ElementsAre(0, 5e6, 10e6));
  EXPECT_THAT(LinearTicks(-3, 3, 4), ElementsAre(-2, 0, 2));
}

TEST(LinearTicks, AreNeverMoreThanAskedFor) {
  for (int count_max = 2; count_max < 12; ++count_max) {
    for (double high = 1e-9; high < 1e12; high *= 1.37) {
      const std::vector<double> ticks = LinearTicks(0, high, count_max);
      ASSERT_LE(ticks.size(), static_cast<size_t>(count_max)) << high;
      ASSERT_GE(ticks.size(), static_cast<size_t>(count_max) / 3) << high;
      ASSERT_LE(ticks.back(), high * (1 + 1e-6));
    }
  }
}

TEST(LinearTicks, NoRangeHasNoTicks) {
  EXPECT_THAT(LinearTicks(2, 1, 6), IsEmpty());
  EXPECT_THAT(LinearTicks(kNan, 1, 6), IsEmpty());
  EXPECT_THAT(LinearTicks(0, kInfinity, 6), IsEmpty());
  EXPECT_THAT(LinearTicks(-1e308, 1e308, 6), IsEmpty());
  EXPECT_THAT(LinearTicks(5, 5, 6), ElementsAre(5));
  EXPECT_THAT(LinearTicks(0, 5e-324, 6), ElementsAre(0, 5e-324));
  EXPECT_LE(LinearTicks(1e16, 1e16 + 4, 6).size(), 6u);
}

TEST(LogTicks, ArePowersOfTenAndFewOfThemAreDivided) {
  EXPECT_THAT(LogTicks(0.05, 30000),
              Pointwise(DoubleEq(), std::vector<double>{0.1, 1, 10, 100, 1000, 10000}));
  EXPECT_THAT(LogTicks(0.15, 10),
              Pointwise(DoubleEq(), std::vector<double>{0.2, 0.5, 1, 2, 5, 10}));
  EXPECT_THAT(LogTicks(1, 1), ElementsAre(1));
  EXPECT_THAT(LogTicks(0, 10), IsEmpty());
  EXPECT_THAT(LogTicks(-1, 10), IsEmpty());
  EXPECT_THAT(LogTicks(1, kNan), IsEmpty());
}

TEST(TickText, IsShortAndGrouped) {
  EXPECT_EQ(TickText(0), "0");
  EXPECT_EQ(TickText(0.05), "0.05");
  EXPECT_EQ(TickText(3 * 0.1), "0.3");
  EXPECT_EQ(TickText(1500), "1,500");
  EXPECT_EQ(TickText(1234567.5), "1,234,567.5");
  EXPECT_EQ(TickText(-1500), "-1,500");
  EXPECT_EQ(TickText(-100), "-100");
}

TEST(SvgPlot, HasALineTicksAndLabels) {
  const std::string svg = SvgElement(SomePlot({{0, 1}, {1, 11.5}, {2, 4}}));
  EXPECT_THAT(svg, AllOf(testing::StartsWith("<svg "), testing::EndsWith("</svg>\n"),
                         HasSubstr("aria-label=\"a title\""), HasSubstr(Tick("keys")),
                         HasSubstr(Tick("rate")), HasSubstr(Tick("lookups"))));
  // The y axis begins at 0 and ends at a tick above all values.
  EXPECT_THAT(svg, AllOf(HasSubstr(Tick("0")), HasSubstr(Tick("12")), Not(HasSubstr(Tick("14"))),
                         HasSubstr(Tick("1.5")), Not(HasSubstr(Tick("-0")))));
  EXPECT_EQ(CountOf("<path", svg), 1u);
  EXPECT_EQ(CountOf("M", svg), 1u) << "one line without a gap";
  EXPECT_THAT(svg, Not(HasSubstr("nothing was measured")));
}

TEST(SvgPlot, WithoutAPointSaysSo) {
  for (const std::vector<PlotPoint>& points :
       {std::vector<PlotPoint>{}, {{0, kNan}, {kInfinity, 1}, {kNan, kNan}}}) {
    SvgPlot plot = SomePlot(points);
    plot.marks = {1};
    plot.mark_name = "checkpoint";
    const std::string svg = SvgElement(plot);
    EXPECT_THAT(svg, AllOf(HasSubstr("nothing was measured"), HasSubstr(Tick("keys")),
                           Not(HasSubstr("<path")), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  }
  SvgPlot none = SomePlot({});
  none.series.clear();
  EXPECT_THAT(SvgElement(none), HasSubstr("nothing was measured"));
}

TEST(SvgPlot, OnePointIsADot) {
  for (const double value : {0.0, 3.0, 1e-300}) {
    const std::string svg = SvgElement(SomePlot({{value, value}}));
    EXPECT_EQ(CountOf("<circle", svg), 1u) << value;
    EXPECT_THAT(svg, AllOf(Not(HasSubstr("<path")), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  }
}

TEST(SvgPlot, ValuesThatAreNotFiniteAreAGap) {
  const std::string svg =
      SvgElement(SomePlot({{0, 1}, {1, 2}, {2, kNan}, {3, 1}, {4, kInfinity}, {5, 1}, {6, 1}}));
  EXPECT_EQ(CountOf("M", svg), 2u) << "two lines";
  EXPECT_EQ(CountOf("<circle", svg), 1u) << "and the point between the gaps";
  EXPECT_THAT(svg, AllOf(Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
}

TEST(SvgPlot, ALogarithmicAxisLeavesOutWhatItCannotShow) {
  SvgPlot plot = SomePlot({{0.3, 0.03}, {1, 0}, {10, 4}, {20, -1}, {-1, 3}});
  plot.x.is_log = true;
  plot.y.is_log = true;
  const std::string svg = SvgElement(plot);
  EXPECT_EQ(CountOf("<circle", svg), 2u);
  EXPECT_THAT(svg, AllOf(HasSubstr(Tick("0.02")), HasSubstr(Tick("5")), Not(HasSubstr("nan")),
                         Not(HasSubstr("inf"))));
}

TEST(SvgPlot, StepsCloseAtTheAxis) {
  SvgPlot plot = SomePlot({{1, 10}, {2, 40}, {3, 0}});
  plot.kind = SvgPlot::Kind::kSteps;
  const std::string svg = SvgElement(plot);
  EXPECT_THAT(svg, HasSubstr("M64.0 240.0L64.0 240.0L64.0 189.5L385.0 189.5L385.0 38.0"
                             "L706.0 38.0L706.0 240.0L706.0 240.0L706.0 240.0\""));
}

TEST(SvgPlot, MarksStandWithinTheAxis) {
  SvgPlot plot = SomePlot({{1, 1}, {3, 2}});
  plot.marks = {0, 1, 2, 4, kNan};
  plot.mark_name = "checkpoint";
  EXPECT_EQ(CountOf("class=\"plot-mark\"", SvgElement(plot)), 3u) << "two, and one in the legend";
}

TEST(SvgPlot, EscapesWhatOthersNamed) {
  SvgPlot plot = SomePlot({{1, 1}, {2, 2}});
  plot.title = "\"<script>\"";
  plot.x.label = "a < b";
  plot.series[0].name = "x & y";
  const std::string svg = SvgElement(plot);
  EXPECT_THAT(svg, AllOf(HasSubstr("&quot;&lt;script&gt;&quot;"), HasSubstr("a &lt; b"),
                         HasSubstr("x &amp; y"), Not(HasSubstr("<script"))));
}

}  // namespace
}  // namespace embank::svg_plot_test
