// What of the log is kept so that what is dirty can always be written.
#include <new>
#include <utility>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "tiers/log/row_log.h"

namespace embank {
namespace {

// Of dram_bytes the log wants a part free for bits of segments to come.
constexpr uint64_t kSlackPart = 64;

// Nothing to be told of is worth more memory than there is.
void TellOf(const Status& status) noexcept {
  try {
    Log(LogLevel::kWarning, StrCat("a dead segment takes space: ", status.ToString()));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace

Status RowLog::AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets) {
  MutexLock lock(&mutex_);
  // A log that is only read writes no segment.
  if (!options_.read_only) {
    EMBANK_RETURN_IF_ERROR(
        memory_.AddClass(SegmentGeometry::Of(record_bytes, options_.segment_bytes)));
  }
  room_.AddClass(row_class, record_bytes, forgets);
  if (!budget_->has_limit() || options_.read_only) return OkStatus();
  // Footers are read one at a time where tables are dropped; bits are reserved in steps.
  slack_bytes_ = memory_.largest_footer_bytes() + budget_->limit_bytes() / kSlackPart;
  return OkStatus();
}

uint64_t RowLog::TakeRoom(uint32_t row_class, uint64_t rows) {
  MutexLock lock(&mutex_);
  return TakeRoomLocked(row_class, rows);
}

uint64_t RowLog::TakeRoomLocked(uint32_t row_class, uint64_t rows) {
  // A log that has stopped makes no checkpoint: what is in memory may change.
  uint64_t admitted = rows;
  while (failure_.ok()) {
    admitted = room_.Admits(row_class, rows);
    if (admitted == rows || !FreeMore()) break;
  }
  if (!failure_.ok()) admitted = rows;
  room_.AddDirty(row_class, static_cast<int64_t>(admitted));
  if (!memory_.ReserveBits(room_.needed_bit_bytes()) && failure_.ok()) {
    room_.AddDirty(row_class, -static_cast<int64_t>(admitted));
    admitted = 0;
  }
  NoteSpare();
  return admitted;
}

void RowLog::GiveRoom(uint32_t row_class, uint64_t rows) {
  if (rows == 0) return;
  MutexLock lock(&mutex_);
  room_.AddDirty(row_class, -static_cast<int64_t>(rows));
  NoteSpare();
}

bool RowLog::TakeRoomAndMarkDead(Location location) {
  MutexLock lock(&mutex_);
  LogSegment& segment = *segments_[IndexOf(location)];
  if (TakeRoomLocked(segment.header.row_class, 1) == 0) return false;
  MarkDeadLocked(location);
  return true;
}

bool RowLog::HasRoom(uint32_t row_class, uint32_t record_bytes, uint64_t rows) {
  // One segment may be begun, and what is left out at their ends may be another; with a footer and
  // what is left of a segment a record takes less than half as much again.
  const int64_t spare = spare_segments_.load(std::memory_order_relaxed) - 2;
  const uint64_t needed = rows * record_bytes * 3 / 2 / options_.segment_bytes;
  if (spare > 0 && needed < static_cast<uint64_t>(spare)) return true;
  MutexLock lock(&mutex_);
  while (failure_.ok() && room_.Admits(row_class, rows) < rows) {
    if (!FreeMore()) return false;
  }
  return true;
}

bool RowLog::IsNearFull() const {
  const uint64_t segments = options_.ssd_bytes / options_.segment_bytes;
  return spare_segments_.load(std::memory_order_relaxed) < static_cast<int64_t>(segments / 8);
}

bool RowLog::SetAside(uint64_t bytes, bool must) {
  MutexLock lock(&mutex_);
  const uint64_t before = room_.aside_bytes();
  room_.SetAside(bytes);
  bool fits = bytes <= before || room_.SpareSegments() >= 0;
  while (!fits && !must) {
    // What is not granted is nobody's while others look: FreeMore may give the lock up.
    room_.SetAside(before);
    if (!failure_.ok() || !FreeMore()) break;
    room_.SetAside(bytes);
    fits = room_.SpareSegments() >= 0;
  }
  NoteSpare();
  return fits || must;
}

// Brings space of dead segments back. False: there are none. May give the lock up.
bool RowLog::FreeMore() {
  PartFromDeadSegments();
  if (RemoveOne()) return true;
  if (removals_under_way_ > 0) {
    segment_removed_.Wait(&mutex_);
    return true;
  }
  // What has no footer yet does not die.
  if (failure_.ok() && WriteFooter()) return true;
  if (!failure_.ok() || ends_under_way_ == 0) return false;
  buffer_written_.Wait(&mutex_);
  return true;
}

Status RowLog::NoRoom() const {
  return StatusWithRoom(StatusCode::kResourceExhausted, [&]() EMBANK_NO_THREAD_SAFETY_ANALYSIS {
    uint64_t kept = 0;
    for (const auto& segment : segments_) kept += segment != nullptr && segment->live_rows == 0;
    return StrCat("the log has ", CountSegments(), " segments, and no room for another of ",
                  options_.segment_bytes, " bytes; ", kept,
                  " of them only the last two checkpoints have: embank_checkpoint, where it ",
                  "has room, gives those of the older one back");
  });
}

// Compaction leaves others what is theirs, and itself what it needs to bring space back.
bool RowLog::IsFull(LogStream stream) const {
  if (stream == LogStream::kUser) return !room_.HasSegment();
  const bool brings_space =
      victim_ == nullptr || victim_aim_ == CompactionAim::kLaterSpace || !IsKept(*victim_);
  return !room_.HasSegmentForCompaction(brings_space);
}

// A checkpoint has rows of it: that under way, before it has been told, those that live.
bool RowLog::IsKept(const LogSegment& segment) const {
  const bool is_frozen = segment.frozen_for == frozen_checkpoint_;
  const uint32_t rows = is_frozen ? segment.frozen_rows : segment.live_rows;
  const bool frozen = frozen_checkpoint_ != 0 && rows > 0;
  if (frozen && !Seeded(SeededBug::kFrozenSegmentGivenUp)) return true;
  if (Seeded(SeededBug::kKeptSegmentGivenUp)) return false;
  return segment.newest_checkpoint != 0 && segment.newest_checkpoint >= oldest_kept_;
}

bool RowLog::IsDead(const LogSegment& segment) const {
  return segment.finished && segment.live_rows == 0 && !IsKept(segment);
}

// Their indices are free for others, but while somebody reads from them: a record in the same place
// would be taken for the one that was there.
void RowLog::PartFromDeadSegments() {
  for (std::shared_ptr<LogSegment>& segment : segments_) {
    if (segment == nullptr || !IsDead(*segment) || segment.use_count() > 1) continue;
    dead_.push_back(std::move(segment));
    segment = nullptr;
    ++counters_.dead_segments;
    ++next_turn_;
  }
}

// Removes the file of a dead segment. Gives the lock up meanwhile.
bool RowLog::RemoveOne() {
  if (dead_.empty()) return false;
  std::shared_ptr<LogSegment> segment = std::move(dead_.back());
  dead_.pop_back();
  ++removals_under_way_;  // it takes its space until it is gone, and closed
  mutex_.Unlock();
  const auto bytes = static_cast<int64_t>(segment->header.segment_bytes);
  const Status status = options_.directory->Remove(segment->name);
  if (!status.ok()) TellOf(status);
  segment.reset();
  mutex_.Lock();
  --removals_under_way_;
  if (status.ok()) room_.AddTaken(-bytes);
  NoteSpare();
  segment_removed_.NotifyAll();
  return true;
}

std::string RowLog::WhyRefused() const {
  ReaderMutexLock lock(&mutex_);
  if (!failure_.ok()) return StrCat("the log takes no more rows: ", failure_.ToString());
  if (room_.SpareSegments() > 0) {
    return "the disk, the machine's memory, the process's descriptors, or what dram_bytes leaves "
           "to the log is used up, as the log sink was told";
  }
  return StrCat("ssd_bytes is ", options_.ssd_bytes, ", of which segments take ",
                room_.taken_bytes(), " and ", room_.kept_bytes(),
                " are kept for the next checkpoint: nothing more can change until "
                "embank_checkpoint, which gives back what only older ones have; where that ",
                "is nothing, until rows are erased or ssd_bytes is larger");
}

// Records in which rows live have so many bytes more.
void RowLog::NoteRows(int64_t live_bytes) {
  room_.AddLive(live_bytes);
  const uint64_t too_many = room_.BytesToForget();
  if (too_many != BytesToForget()) bytes_to_forget_.store(too_many, std::memory_order_relaxed);
}

void RowLog::NoteSpare() {
  // Less is always possible.
  if (room_.needed_bit_bytes() < memory_.reserved_bit_bytes()) {
    memory_.ReserveBits(room_.needed_bit_bytes());
  }
  const int64_t spare = room_.SpareSegments();
  if (spare != spare_segments_.load(std::memory_order_relaxed)) {
    spare_segments_.store(spare, std::memory_order_relaxed);
  }
  NoteRows(0);
  pace_.SetSpare(spare);
  NotePace();
}

}  // namespace embank
