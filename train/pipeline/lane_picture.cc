#include "train/pipeline/lane_picture.h"

#include <algorithm>
#include <array>

#include "base/check.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// In pixels.
constexpr double kWidth = 960;
constexpr double kLeft = 80;
constexpr double kLane = 36;
constexpr double kBar = 26;
constexpr double kTop = 44;
constexpr double kBottom = 40;
constexpr double kLegendColumn = 145;
constexpr double kLegendRow = 16;
constexpr size_t kLegendColumns = 6;
constexpr int kTicks = 8;

// Colours that differ for people who do not see all of them.
constexpr std::array<const char*, kBarKindsMax> kColours = {
    "#56b4e9", "#0072b2", "#009e73", "#e69f00", "#cc79a7",
    "#d55e00", "#f0e442", "#999999", "#332288", "#117733"};

// '&' stands in names of operations.
std::string Escaped(const std::string& name) {
  std::string text;
  for (const char c : name) text += c == '&' ? "&amp;" : std::string(1, c);
  return text;
}

std::string Text(double x, double y, const char* anchor, const std::string& text) {
  return StrCat("<text x=\"", x, "\" y=\"", y, "\" text-anchor=\"", anchor, "\">", Escaped(text),
                "</text>\n");
}

std::string Rectangle(double x, double y, double width, double height, size_t kind,
                      const std::string& title) {
  return StrCat("<rect x=\"", x, "\" y=\"", y, "\" width=\"", width, "\" height=\"", height,
                "\" fill=\"", kColours[kind], "\"><title>", Escaped(title), "</title></rect>\n");
}

std::string Legend(const std::vector<LanePicture::Kind>& kinds) {
  std::string text;
  for (size_t i = 0; i < kinds.size(); ++i) {
    const double x = kLeft + kLegendColumn * static_cast<double>(i % kLegendColumns);
    const size_t row = i / kLegendColumns;
    const double y = kLegendRow * static_cast<double>(row);
    StrAppend(&text, Rectangle(x, y + 6, 12, 12, i, kinds[i].title),
              Text(x + 17, y + 16, "start", kinds[i].name));
  }
  return text;
}

}  // namespace

std::string SvgText(const LanePicture& picture) {
  EMBANK_CHECK(picture.kinds.size() <= kBarKindsMax);
  uint64_t begin_ns = UINT64_MAX;
  uint64_t end_ns = 0;
  for (const LanePicture::Bar& bar : picture.bars) {
    begin_ns = std::min(begin_ns, bar.begin_ns);
    end_ns = std::max(end_ns, bar.end_ns);
  }
  const auto top_of = [](size_t lane) { return kTop + kLane * static_cast<double>(lane); };
  const double lanes_end = top_of(picture.lanes.size());
  std::string text = StrCat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", kWidth,
                            "\" height=\"", lanes_end + kBottom,
                            "\" font-family=\"sans-serif\" font-size=\"12\">\n"
                            "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
                            Legend(picture.kinds));
  if (picture.bars.empty()) {
    return StrCat(text, Text(kLeft, kTop + kBar, "start", picture.none), "</svg>\n");
  }
  const double scale =
      (kWidth - kLeft - 20) / static_cast<double>(std::max<uint64_t>(1, end_ns - begin_ns));
  for (size_t lane = 0; lane < picture.lanes.size(); ++lane) {
    StrAppend(&text, Text(kLeft - 8, top_of(lane) + kBar * 0.7, "end", picture.lanes[lane]));
  }
  for (const LanePicture::Bar& bar : picture.bars) {
    StrAppend(
        &text,
        Rectangle(kLeft + scale * static_cast<double>(bar.begin_ns - begin_ns), top_of(bar.lane),
                  std::max(0.5, scale * static_cast<double>(bar.end_ns - bar.begin_ns)), kBar,
                  bar.kind, bar.title));
  }
  for (int i = 0; i <= kTicks; ++i) {
    const double ns = static_cast<double>(end_ns - begin_ns) * i / kTicks;
    const double x = kLeft + scale * ns;
    StrAppend(&text, "<line x1=\"", x, "\" x2=\"", x, "\" y1=\"", kTop - 4, "\" y2=\"", lanes_end,
              "\" stroke=\"#ccc\"/>\n",
              Text(x, lanes_end + 16, "middle",
                   StrCat(static_cast<double>(static_cast<int64_t>(ns / 1e4)) / 100)));
  }
  return StrCat(text, Text(kLeft, lanes_end + 34, "start", "milliseconds"), "</svg>\n");
}

}  // namespace embank
