#include "tools/progress_text.h"

#include <array>
#include <cstdint>
#include <cstdio>
#include "tools/rank_output.h"

namespace embank {
namespace {

// "5:07" or "1:05:07".
std::string TextOfSeconds(double seconds) {
  const auto whole = static_cast<unsigned long long>(seconds + 0.5);
  std::array<char, 40> text;
  if (whole < 3600) {
    std::snprintf(text.data(), text.size(), "%llu:%02llu", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%llu:%02llu:%02llu", whole / 3600, whole / 60 % 60,
                  whole % 60);
  }
  return text.data();
}

}  // namespace

std::string ProgressText(double fraction, double before, double seconds) {
  if (fraction <= 0.0) return "";
  std::array<char, 40> share;
  std::snprintf(share.data(), share.size(), "%.1f %%", 100.0 * fraction);
  // From less of the data, no rate is known.
  constexpr double kFractionMin = 1e-4;
  std::string text = share.data();
  if (fraction - before >= kFractionMin) {
    text += ", " + TextOfSeconds(seconds * (1.0 - fraction) / (fraction - before)) + " left";
  }
  return text + "  ";
}

void ProgressLines::Show(double fraction, uint64_t count) {
  const double seconds = Seconds();
  if (seconds < next_line_) return;
  next_line_ = seconds + kSecondsPerLine;
  std::fprintf(Err(), "%s%llu %s, %.0f per second\n", ProgressText(fraction, 0.0, seconds).c_str(),
               static_cast<unsigned long long>(count), what_, PerSecond(count));
}

}  // namespace embank
