#include "tiers/space/compaction_pace.h"

#include <algorithm>

#include "base/check.h"

namespace embank {
namespace {

// With fewer segments the pace is not adapted.
constexpr double kSegmentsMin = 4;
// Without a limit: with fewer living rows, a moved row costs less than 1.6 writes.
constexpr double kLiveUnlimited = 0.6;
constexpr double kGainUnlimited = 20;
// Emptying a segment with more living rows would take more space than it frees.
constexpr double kLiveMax = 0.8;
// Evenly overwritten rows of half of ssd_bytes are then in 0.67 of it, and 0.25 is emptied. A later
// begin would leave no space for that.
constexpr double kBeginMin = 0.55;
constexpr double kBeginMax = 0.85;
// At a tenth beyond it, each change pays for one row.
constexpr double kGain = 10;
// The part of the log that should be spare when a checkpoint ends; for small logs in segments.
constexpr double kSparePartMin = 0.04;
constexpr double kSparePartMax = 0.08;
constexpr double kSpareMin = 1;
constexpr double kSpareMax = 2;
// A later begin shows its effect when the segments emptied before have come free: three intervals.
constexpr uint32_t kIntervalsMin = 4;
constexpr double kLater = 0.005;
constexpr double kEarlier = 0.01;

}  // namespace

CompactionPace::CompactionPace(uint64_t ssd_bytes, uint64_t segment_bytes)
    : segments_(static_cast<double>(ssd_bytes) / static_cast<double>(segment_bytes)),
      segment_bytes_(static_cast<double>(segment_bytes)),
      begin_(kBeginMin) {}

void CompactionPace::AddFinished(int64_t bytes, int64_t live_bytes) {
  finished_bytes_ += bytes;
  live_bytes_ += live_bytes;
  EMBANK_CHECK(0 <= live_bytes_ && live_bytes_ <= finished_bytes_);
}

void CompactionPace::SetSpare(int64_t segments) {
  spare_ = segments;
  spare_min_ = std::min(spare_min_, segments);
}

void CompactionPace::EndInterval() {
  intervals_worked_ = has_worked_ ? intervals_worked_ + 1 : 0;
  const auto spare = static_cast<double>(spare_min_);
  if (spare < std::max(kSpareMin, kSparePartMin * segments_)) {
    begin_ = std::max(kBeginMin, begin_ - kEarlier);
  } else if (intervals_worked_ >= kIntervalsMin &&
             spare > std::max(kSpareMax, kSparePartMax * segments_)) {
    begin_ = std::min(kBeginMax, begin_ + kLater);
  }
  spare_min_ = spare_;
  has_worked_ = false;
}

uint32_t CompactionPace::pace() const {
  const double finished = static_cast<double>(finished_bytes_) / segment_bytes_;
  if (spare_ <= 0 || finished < kSegmentsMin) return 0;
  const double live = static_cast<double>(live_bytes_) / static_cast<double>(finished_bytes_);
  double rows = 0;
  if (segments_ == 0) {
    rows = kGainUnlimited * (kLiveUnlimited - live);
  } else if (live < kLiveMax) {
    rows = kGain * (finished / segments_ - begin_);
  }
  return static_cast<uint32_t>(std::clamp(rows * kChangedRows, 0.0, double{kPaceMax}));
}

}  // namespace embank
