// What of the log is worth being written anew.
#include <utility>

#include "tiers/log/row_log.h"

namespace embank {
namespace {

// For room alone segments are emptied of which a sixteenth is dead: 16 writes for each.
constexpr uint32_t kRoomDeadPart = 16;

}  // namespace

void RowLog::Finish(LogSegment* segment) {
  segment->finished = true;
  if (segment->live_rows == 0) return;
  pace_.AddFinished(static_cast<int64_t>(segment->header.segment_bytes),
                    static_cast<int64_t>(segment->LiveBytes()));
  NotePace();
}

// One record of it has died.
void RowLog::CountDead(const LogSegment& segment) {
  if (!segment.finished) return;
  const bool is_last = segment.live_rows == 0;
  pace_.AddFinished(is_last ? -static_cast<int64_t>(segment.header.segment_bytes) : 0,
                    -static_cast<int64_t>(segment.header.record_bytes));
  NotePace();
}

void RowLog::NotePace() {
  const uint32_t pace = pace_.pace();
  if (pace != this->pace()) pace_now_.store(pace, std::memory_order_relaxed);
}

std::shared_ptr<LogSegment> RowLog::PickVictim(CompactionAim aim) {
  MutexLock lock(&mutex_);
  victim_ = nullptr;
  victim_aim_ = aim;
  if (aim == CompactionAim::kForget) {
    std::shared_ptr<LogSegment> oldest = OldestToForget();
    victim_ = oldest.get();
    return oldest;
  }
  const bool for_pace = aim == CompactionAim::kPace;
  if (for_pace && pace() == 0) return nullptr;
  if (aim == CompactionAim::kLaterSpace && room_.SpareSegments() > 0) return nullptr;
  const bool unkept_only = aim == CompactionAim::kSpace;
  std::shared_ptr<LogSegment> best;
  double best_score = 0;
  for (const std::shared_ptr<LogSegment>& segment : segments_) {
    if (segment == nullptr || !segment->finished) continue;
    if (segment->passed_over || segment->unread) continue;
    if (segment->live_rows == 0 || segment->live_rows == segment->geometry.slots) continue;
    if (unkept_only && IsKept(*segment)) continue;
    const uint32_t dead = segment->geometry.slots - segment->live_rows;
    if (!for_pace && dead * kRoomDeadPart < segment->geometry.slots) continue;
    const double living = static_cast<double>(segment->live_rows) / segment->geometry.slots;
    const auto age = static_cast<double>(next_segment_id_ - segment->header.segment_id);
    const double score = (1 - living) * age / (1 + living);
    if (score <= best_score) continue;
    best_score = score;
    best = segment;
  }
  victim_ = best.get();
  if (for_pace && best != nullptr) pace_.NoteWork();
  return best;
}

// Rows are written when they leave memory: the oldest records are of those that left it first. The
// hand goes round in the older half: what it has left there, since it was in memory, it meets again
// before the end of the log, which moves on as fast; what the device did not read, behind as many.
std::shared_ptr<LogSegment> RowLog::OldestToForget() {
  std::shared_ptr<LogSegment> oldest;
  std::shared_ptr<LogSegment> next;
  size_t count = 0;
  size_t passed = 0;
  for (const std::shared_ptr<LogSegment>& segment : segments_) {
    if (segment == nullptr || !segment->finished || segment->passed_over) continue;
    if (segment->live_rows == 0 || !room_.Forgets(segment->header.row_class)) continue;
    const uint64_t id = segment->header.segment_id;
    ++count;
    if (oldest == nullptr || id < oldest->header.segment_id) oldest = segment;
    if (id <= forget_hand_) ++passed;
    if (id > forget_hand_ && (next == nullptr || id < next->header.segment_id)) next = segment;
  }
  const size_t half = (count + 1) / 2;
  if (passed < half && turns_since_unread_ <= half) return next;
  forget_hand_ = 0;
  turns_since_unread_ = 0;
  return oldest;
}

size_t RowLog::LiveOf(const LogSegment& segment, uint32_t* slot, std::span<Location> live) const {
  ReaderMutexLock lock(&mutex_);
  size_t count = 0;
  for (; *slot < segment.geometry.slots && count < live.size(); ++*slot) {
    if (segment.IsLive(*slot)) live[count++] = LocationOf(segment, *slot);
  }
  return count;
}

void RowLog::PassOver(LogSegment* segment, bool is_damaged) {
  MutexLock lock(&mutex_);
  if (is_damaged) {
    segment->passed_over = true;
  } else if (victim_aim_ != CompactionAim::kForget) {
    segment->unread = true;
  } else if (turns_since_unread_ == 0) {
    turns_since_unread_ = 1;
  }
}

void RowLog::Release(std::shared_ptr<LogSegment> victim, bool is_done) {
  {
    MutexLock lock(&mutex_);
    if (is_done && victim_aim_ == CompactionAim::kForget) {
      forget_hand_ = victim->header.segment_id;
      turns_since_unread_ += turns_since_unread_ > 0 ? 1 : 0;
    }
    victim_ = nullptr;
    victim.reset();
    PartFromDeadSegments();
  }
  writer_->Wake();
}

}  // namespace embank
