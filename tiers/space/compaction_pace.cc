#include "tiers/space/compaction_pace.h"

#include <algorithm>

#include "base/check.h"

namespace embank {
namespace {

// With fewer segments the pace is not adapted.
constexpr double kSegmentsMin = 4;
// Where the size follows the rows: with fewer living rows, a moved row costs less than 1.6 writes.
constexpr double kLiveBegin = 0.6;
constexpr double kGainOfSize = 20;
// Where changes leave the pace behind, or are too few for it, checkpoints keep half of it living.
constexpr double kLiveMin = 0.5;
// A class may waste so much; where segments are small, a part of one.
constexpr double kSlackBytesMax = uint64_t{256} << 10;
constexpr double kSlackSegmentPart = 64;
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

CompactionPace::CompactionPace(uint64_t ssd_bytes, uint64_t segment_bytes, bool follows_rows)
    : segments_(static_cast<double>(ssd_bytes) / static_cast<double>(segment_bytes)),
      segment_bytes_(static_cast<double>(segment_bytes)),
      follows_rows_(follows_rows),
      begin_(kBeginMin) {
  SetClasses(1);
}

void CompactionPace::SetClasses(uint64_t classes) {
  slack_bytes_ =
      static_cast<double>(classes) * std::min(kSlackBytesMax, segment_bytes_ / kSlackSegmentPart);
}

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

bool CompactionPace::HasWaste(bool is_begun) const {
  if (!follows_rows_ || spare_ <= 0) return false;
  const auto finished = static_cast<double>(finished_bytes_);
  const auto live = static_cast<double>(live_bytes_);
  if (is_begun) return finished > live / kLiveBegin + slack_bytes_;
  return finished > live / kLiveMin + 2 * slack_bytes_;
}

double CompactionPace::RowsForSize() const {
  if (!HasWaste(/*is_begun=*/true)) return 0;
  const double beyond_slack = static_cast<double>(finished_bytes_) - slack_bytes_;
  const double live = static_cast<double>(live_bytes_) + static_cast<double>(dirty_bytes_);
  return kGainOfSize * (kLiveBegin - live / beyond_slack);
}

double CompactionPace::RowsForLimit() const {
  const double finished = static_cast<double>(finished_bytes_) / segment_bytes_;
  if (segments_ == 0 || finished < kSegmentsMin) return 0;
  const double live = static_cast<double>(live_bytes_) / static_cast<double>(finished_bytes_);
  return live < kLiveMax ? kGain * (finished / segments_ - begin_) : 0;
}

uint32_t CompactionPace::pace() const {
  if (spare_ <= 0) return 0;
  const double rows = std::max(RowsForSize(), RowsForLimit());
  return static_cast<uint32_t>(std::clamp(rows * kChangedRows, 0.0, double{kPaceMax}));
}

}  // namespace embank
