#include "tiers/log/compaction_candidates.h"

#include <iterator>
#include <utility>

#include "base/check.h"

namespace embank {
namespace {

// To free space, compaction empties segments from a sixteenth dead on: 16 writes for each.
constexpr double kSpaceDeadPart = 16;

// For its size alone, a log is not worth moves of rows that mostly live.
constexpr double kSizeLivingMax = 0.8;

// Small segments that have space in a new one, at least.
constexpr uint64_t kJoinedMin = 2;
// Small segments that one walk finds.
constexpr size_t kSmallestMax = 64;

// Whether the hand that goes round the oldest segments chooses them.
bool IsByAge(CompactionAim aim) {
  return aim == CompactionAim::kForget || aim == CompactionAim::kDemote;
}

}  // namespace

std::shared_ptr<LogSegment> CompactionCandidates::PickVictim(CompactionAim aim) {
  MutexLock lock(segments_.mutex());
  EMBANK_CHECK(victim_ == nullptr);
  victim_aim_ = aim;
  std::shared_ptr<LogSegment> victim = IsByAge(aim)                      ? OldestToLeave(aim)
                                       : aim == CompactionAim::kEvacuate ? AnyNotDurable()
                                                                         : BestToMove(aim);
  if (victim == nullptr && aim == CompactionAim::kSize) victim = SmallestToJoin();
  victim_ = victim.get();
  if (aim == CompactionAim::kPace && victim != nullptr) segments_.mutable_accounts().NoteWork();
  return victim;
}

std::shared_ptr<LogSegment> CompactionCandidates::BestToMove(CompactionAim aim) const {
  const bool for_pace = aim == CompactionAim::kPace;
  if (for_pace && pace() == 0) return nullptr;
  const bool for_later = aim == CompactionAim::kLaterSpace;
  if (for_later && segments_.accounts().SpareSegments() > 0) return nullptr;
  const bool for_size = aim == CompactionAim::kSize;
  if (for_size && !segments_.accounts().pace().HasWaste(/*is_begun=*/true)) return nullptr;
  const bool unkept_only = aim == CompactionAim::kSpace;
  std::shared_ptr<LogSegment> best;
  double best_score = 0;
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment == nullptr || !segment->finished) continue;
    if (segment->passed_over || segment->unread) continue;
    if (segment->live_rows == 0) continue;
    if (unkept_only && segments_.IsKept(*segment)) continue;
    const double living = segment->LivingPart();
    if (living == 1 || (for_size && living > kSizeLivingMax)) continue;
    if (!for_pace && (1 - living) * kSpaceDeadPart < 1) continue;
    const auto age =
        static_cast<double>(segments_.next_segment_id_locked() - segment->header.segment_id);
    // By age, what a session has left would wait for segments that are nearly full.
    const double score = (1 - living) * (for_size ? 1 : age) / (1 + living);
    if (score <= best_score) continue;
    best_score = score;
    best = segment;
  }
  return best;
}

// Sessions that only add rows leave small segments of which all rows live. A segment that
// compaction begins has the rows of some of them.
std::shared_ptr<LogSegment> CompactionCandidates::SmallestToJoin() {
  if (!segments_.HasFewPlaces()) return nullptr;
  while (true) {
    if (smallest_.empty()) FindSmallest();
    if (smallest_.empty()) return nullptr;
    std::shared_ptr<LogSegment> segment = smallest_.extract(smallest_.begin()).mapped().lock();
    if (segment != nullptr && IsSmall(*segment)) return segment;
  }
}

// Each walk over tens of thousands of segments finds some dozens. The only small segment of its
// class would be written again for nothing.
void CompactionCandidates::FindSmallest() {
  std::map<uint32_t, uint32_t> small_by_class;
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment != nullptr && IsSmall(*segment)) ++small_by_class[segment->header.row_class];
  }
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment == nullptr || !IsSmall(*segment)) continue;
    if (small_by_class.at(segment->header.row_class) < kJoinedMin) continue;
    const uint64_t bytes = segment->LiveBytes();
    const bool is_full = smallest_.size() == kSmallestMax;
    if (is_full && bytes >= smallest_.rbegin()->first) continue;
    smallest_.emplace(bytes, segment);
    if (is_full) smallest_.erase(std::prev(smallest_.end()));
  }
}

// Whether two like it have space in a new segment.
bool CompactionCandidates::IsSmall(const LogSegment& segment) const {
  if (!segment.finished || segment.live_rows == 0) return false;
  if (segment.passed_over || segment.unread) return false;
  const SegmentHeader& header = segment.header;
  const uint64_t next_bytes =
      segments_.NextSegmentBytes(header.row_class, header.record_bytes, /*written_bytes=*/0);
  return segment.LiveBytes() * kJoinedMin <= next_bytes;
}

// Rows are written when they leave memory, so that the oldest records are of rows that left it
// first. The hand goes round in the older half. It meets rows again that it left because they were
// in memory, before it reaches the end of the log, which advances as fast. It returns to a segment
// that the device did not read after as many other segments.
std::shared_ptr<LogSegment> CompactionCandidates::OldestToLeave(CompactionAim aim) {
  const bool demotes = aim == CompactionAim::kDemote;
  std::shared_ptr<LogSegment> oldest;
  std::shared_ptr<LogSegment> next;
  size_t count = 0;
  size_t passed = 0;
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment == nullptr || !segment->finished || segment->passed_over) continue;
    if (segment->live_rows == 0) continue;
    if (!demotes && !segments_.accounts().Forgets(segment->header.row_class)) continue;
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

std::shared_ptr<LogSegment> CompactionCandidates::AnyNotDurable() const {
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment == nullptr || segment->passed_over || segment->unread) continue;
    writer_.AssertReaderHeld();
    if (segment->live_rows > 0 && !writer_.IsDurable(*segment)) return segment;
  }
  return nullptr;
}

size_t CompactionCandidates::LiveOf(const LogSegment& segment, uint32_t* slot,
                                    std::span<Location> live) const {
  ReaderMutexLock lock(segments_.mutex());
  EMBANK_CHECK(&segment == victim_ && *slot <= segment.geometry.slots);
  size_t count = 0;
  for (; *slot < segment.geometry.slots && count < live.size(); ++*slot) {
    if (segment.IsLive(*slot)) live[count++] = segment.LocationOf(*slot);
  }
  return count;
}

void CompactionCandidates::Exclude(LogSegment* segment, bool is_damaged) {
  MutexLock lock(segments_.mutex());
  EMBANK_CHECK(segment == victim_);
  // A checkpoint gives up the rows of the segments that the evacuation passes over.
  if (writer_.is_lost() && victim_aim_ != CompactionAim::kEvacuate) return;
  if (is_damaged) {
    segment->passed_over = true;
  } else if (!IsByAge(victim_aim_)) {
    segment->unread = true;
  } else if (turns_since_unread_ == 0) {
    turns_since_unread_ = 1;
  }
}

void CompactionCandidates::Release(std::shared_ptr<LogSegment> victim, bool is_done) {
  {
    MutexLock lock(segments_.mutex());
    EMBANK_CHECK(victim.get() == victim_);
    if (is_done && IsByAge(victim_aim_)) {
      forget_hand_ = victim->header.segment_id;
      turns_since_unread_ += turns_since_unread_ > 0 ? 1 : 0;
    }
    // The rest of its rows, which the other log did not take, are to be moved later.
    if (!is_done && victim_aim_ == CompactionAim::kEvacuate) victim->passed_over = false;
    victim_ = nullptr;
    victim.reset();
    dead_.AssertHeld();
    dead_.Collect();
  }
  writer_.Wake();
}

bool CompactionCandidates::BringsSpace() const {
  return victim_ == nullptr || victim_aim_ == CompactionAim::kLaterSpace ||
         !segments_.IsKept(*victim_);
}

}  // namespace embank
