#include "bench/progress.h"

#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_format.h"

namespace embank {
namespace {

constexpr uint64_t kSecondNs = 1'000'000'000;
constexpr uint64_t kTerminalIntervalNs = kSecondNs / 10;
constexpr uint64_t kLogIntervalNs = 10 * kSecondNs;
constexpr size_t kBarColumns = 20;
constexpr size_t kLineColumnsMax = 79;  // The last column of a terminal may wrap.

}  // namespace

std::string ProgressLine(double fraction, double elapsed_seconds, const std::string& note) {
  const double done = std::clamp(fraction, 0.0, 1.0);
  const auto filled = static_cast<size_t>(done * static_cast<double>(kBarColumns));
  std::string line = absl::StrFormat("[%s%s] %3.0f %%  %s", std::string(filled, '#'),
                                     std::string(kBarColumns - filled, '.'), done * 100.0, note);
  std::string rest;
  if (done >= 0.01) {
    const auto seconds = static_cast<uint64_t>(elapsed_seconds * (1.0 - done) / done + 0.5);
    rest = absl::StrFormat("  ETA %d:%02d", seconds / 60, seconds % 60);
  }
  line.resize(std::min(line.size(), kLineColumnsMax - rest.size()));
  return line + rest;
}

Progress::Progress(std::FILE* out, const Clock* clock)
    : out_(out),
      clock_(clock),
      is_terminal_(isatty(fileno(out)) != 0),
      start_ns_(clock->NowNs()),
      next_ns_(start_ns_ + (is_terminal_ ? kSecondNs : kLogIntervalNs)) {}

void Progress::Update(double fraction, const std::string& note) {
  const uint64_t now_ns = clock_->NowNs();
  if (now_ns < next_ns_) return;
  next_ns_ = now_ns + (is_terminal_ ? kTerminalIntervalNs : kLogIntervalNs);
  const double elapsed_seconds =
      static_cast<double>(now_ns - start_ns_) / static_cast<double>(kSecondNs);
  const std::string line = ProgressLine(fraction, elapsed_seconds, note);
  std::fputs(is_terminal_ ? ("\r\033[K" + line).c_str() : (line + "\n").c_str(), out_);
  std::fflush(out_);
  line_is_shown_ = is_terminal_;
}

void Progress::Clear() {
  if (!line_is_shown_) return;
  std::fputs("\r\033[K", out_);
  std::fflush(out_);
  line_is_shown_ = false;
}

}  // namespace embank
