// What of the log is worth being written anew.
#include <algorithm>
#include <utility>

#include "tiers/row_log.h"

namespace embank {
namespace {

// With a limit three quarters of what segments hold shall live: moving rows out of the emptiest
// then costs 1.3 writes for each write (u_victim = 0.56 where u = (u_victim - 1) / ln(u_victim) =
// 0.75). Without one space is cheaper than writes.
constexpr uint64_t kLivePercent = 75;
constexpr uint64_t kLivePercentUnlimited = 60;
// So much below it, and callers have to help.
constexpr uint64_t kLargeDebtPercent = 5;
// Of fewer segments nothing is said.
constexpr uint64_t kSegmentsMin = 4;
// For room alone segments are emptied of which a sixteenth is dead: 16 writes for each.
constexpr uint32_t kRoomDeadPart = 16;

}  // namespace

void RowLog::Finish(LogSegment* segment) {
  segment->finished = true;
  if (segment->live_rows == 0) return;
  finished_bytes_ += segment->header.segment_bytes;
  finished_live_bytes_ += segment->LiveBytes();
  AssessDebt();
}

// One record of it has died.
void RowLog::CountDead(const LogSegment& segment) {
  if (!segment.finished) return;
  finished_live_bytes_ -= segment.header.record_bytes;
  if (segment.live_rows == 0) finished_bytes_ -= segment.header.segment_bytes;
  AssessDebt();
}

void RowLog::AssessDebt() {
  const uint64_t percent = options_.ssd_bytes != 0 ? kLivePercent : kLivePercentUnlimited;
  LogDebt debt = LogDebt::kNone;
  if (finished_bytes_ >= kSegmentsMin * options_.segment_bytes) {
    const uint64_t live_percent = finished_live_bytes_ * 100 / finished_bytes_;
    if (live_percent < percent) debt = LogDebt::kSome;
    if (live_percent < percent - kLargeDebtPercent) debt = LogDebt::kLarge;
  }
  if (debt != this->debt()) debt_.store(debt, std::memory_order_relaxed);
}

std::shared_ptr<LogSegment> RowLog::PickVictim(CompactionAim aim) {
  MutexLock lock(&mutex_);
  victim_ = nullptr;
  const bool is_short = room_.SpareSegments() <= 0;
  const bool for_debt = aim == CompactionAim::kDebt;
  if (for_debt && (debt() == LogDebt::kNone || IsFull(LogStream::kCompaction))) return nullptr;
  if (aim == CompactionAim::kLaterSpace && !is_short) return nullptr;
  // Near its end the log has no room for copies that bring none back.
  const bool unkept_only = aim == CompactionAim::kSpace || (for_debt && is_short);
  std::shared_ptr<LogSegment> best;
  double best_score = 0;
  for (const std::shared_ptr<LogSegment>& segment : segments_) {
    if (segment == nullptr || !segment->finished || segment->passed_over) continue;
    if (segment->live_rows == 0 || segment->live_rows == segment->geometry.slots) continue;
    if (unkept_only && IsKept(*segment)) continue;
    const uint32_t dead = segment->geometry.slots - segment->live_rows;
    if (!for_debt && dead * kRoomDeadPart < segment->geometry.slots) continue;
    const double living = static_cast<double>(segment->live_rows) / segment->geometry.slots;
    const auto age = static_cast<double>(next_segment_id_ - segment->header.segment_id);
    const double score = (1 - living) * age / (1 + living);
    if (score <= best_score) continue;
    best_score = score;
    best = segment;
  }
  victim_ = best.get();
  victim_aim_ = aim;
  return best;
}

size_t RowLog::LiveOf(const LogSegment& segment, uint32_t* slot, std::span<Location> live) const {
  ReaderMutexLock lock(&mutex_);
  size_t count = 0;
  for (; *slot < segment.geometry.slots && count < live.size(); ++*slot) {
    if (segment.IsLive(*slot)) live[count++] = LocationOf(segment, *slot);
  }
  return count;
}

void RowLog::PassOver(LogSegment* segment) {
  MutexLock lock(&mutex_);
  segment->passed_over = true;
}

void RowLog::Release(std::shared_ptr<LogSegment> victim) {
  {
    MutexLock lock(&mutex_);
    victim_ = nullptr;
    victim.reset();
    PartFromDeadSegments();
  }
  writer_->Wake();
}

}  // namespace embank
