#include "tiers/log/log_segments.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tiers/space/segment_size.h"

namespace embank {

LogSegments::LogSegments(MemorySource* source, MemoryBudget* budget, const RowLogOptions& options)
    : options_(options),
      accounts_(source, budget,
                {.ssd_bytes = options.ssd_bytes,
                 .segment_bytes = options.segment_bytes,
                 .rows_bytes_max = options.rows_bytes_max,
                 .all_forget = !options.has_reservations,
                 .follows_rows = options.follows_rows()},
                &figures_),
      next_segment_id_(options.first_segment_id) {
  EMBANK_CHECK(options.segments_max <= kSegmentsMax);
}

// ---- all segments ----

std::shared_ptr<LogSegment> LogSegments::Find(Location location, RecordPlace* place) const {
  const uint32_t index = SegmentIndexOf(location);
  const uint64_t offset = SegmentOffsetOf(location);
  if (location.tier() != options_.tier || index >= segments_.size()) return nullptr;
  std::shared_ptr<LogSegment> segment = segments_[index];
  if (segment == nullptr || !segment->geometry.IsSlotAt(offset)) return nullptr;
  *place = {options_.store_id, segment->header.segment_id, segment->geometry.SlotAt(offset)};
  return segment;
}

std::shared_ptr<const LogSegment> LogSegments::Hold(Location location) const {
  ReaderMutexLock lock(&mutex_);
  EMBANK_CHECK(location.tier() == options_.tier && SegmentIndexOf(location) < segments_.size());
  return segments_[SegmentIndexOf(location)];
}

uint64_t LogSegments::NextSegmentBytes(uint32_t row_class, uint32_t record_bytes,
                                       uint64_t written_bytes) const {
  if (!options_.follows_rows()) return options_.segment_bytes;
  return SegmentBytesFor({options_.segment_bytes_min, options_.segment_bytes}, record_bytes,
                         written_bytes, accounts_.ClassBytes(row_class));
}

bool LogSegments::HasFewPlaces() const {
  return options_.follows_rows() && taken_places_ > options_.segments_max / 2;
}

StatusOr<std::shared_ptr<LogSegment>> LogSegments::Make(LogStream stream, uint32_t row_class,
                                                        uint32_t record_bytes,
                                                        uint64_t segment_bytes) {
  auto segment = std::make_shared<LogSegment>();
  segment->header = {.store_id = options_.store_id,
                     .segment_id = next_segment_id_,
                     .row_class = row_class,
                     .record_bytes = record_bytes,
                     .segment_bytes = segment_bytes};
  EMBANK_RETURN_IF_ERROR(Allocate(segment.get(), stream, true));
  ++next_segment_id_;
  return segment;
}

Status LogSegments::Allocate(LogSegment* segment, LogStream stream, bool with_owners) {
  segment->geometry =
      SegmentGeometry::Of(segment->header.record_bytes, segment->header.segment_bytes);
  EMBANK_CHECK(segment->geometry.slots > 0);
  if (with_owners) {
    EMBANK_ASSIGN_OR_RETURN(segment->slots, accounts_.memory().Owners(stream, segment->geometry));
  }
  EMBANK_ASSIGN_OR_RETURN(segment->bits, accounts_.memory().Bits(stream, segment->geometry));
  segment->name = SegmentName(segment->header.segment_id);
  segment->tier = options_.tier;
  return OkStatus();
}

StatusOr<uint32_t> LogSegments::FreePlace() {
  const auto free = std::find(segments_.begin(), segments_.end(), nullptr);
  const auto index = static_cast<uint32_t>(free - segments_.begin());
  if (index == options_.segments_max) return NoSpace();
  if (free == segments_.end()) segments_.push_back(nullptr);
  return index;
}

void LogSegments::Put(std::shared_ptr<LogSegment> segment) {
  EMBANK_CHECK(segment->index < segments_.size());
  EMBANK_CHECK(segments_[segment->index] == nullptr);
  const auto bytes = static_cast<int64_t>(segment->header.segment_bytes);
  segments_[segment->index] = std::move(segment);
  ++taken_places_;
  accounts_.AddTaken(bytes);
}

std::shared_ptr<LogSegment> LogSegments::Take(uint32_t index) {
  EMBANK_CHECK(index < segments_.size());
  EMBANK_CHECK(segments_[index] != nullptr && segments_[index]->index == index);
  EMBANK_CHECK(taken_places_ > 0);
  --taken_places_;
  return std::exchange(segments_[index], nullptr);
}

Status LogSegments::NoSpace() const {
  return NoThrowStatus(StatusCode::kResourceExhausted, [&]() EMBANK_NO_THREAD_SAFETY_ANALYSIS {
    uint64_t count = 0;
    uint64_t kept = 0;
    for (const auto& segment : segments_) {
      count += segment != nullptr;
      kept += segment != nullptr && segment->live_rows == 0;
    }
    return StrCat("the log has ", count, " segments, and no space for another of ",
                  options_.segment_bytes, " bytes; ", kept,
                  " of them only the last two checkpoints have: embank_checkpoint, where it ",
                  "has space, gives those of the older one back");
  });
}

// ---- living records ----

void LogSegments::AddRecord(LogSegment* segment, uint32_t slot, const RowToLog& row) {
  EMBANK_CHECK(slot < segment->used_slots && !segment->IsLive(slot));
  if (frozen_checkpoint_ != 0) {
    segment->FreezeFor(frozen_checkpoint_);
    const bool has = row.checkpoint <= frozen_checkpoint_ && !Seeded(SeededBug::kBitMissing);
    if (has || Seeded(SeededBug::kBitTooMany)) segment->AddFrozen(slot);
  }
  if (!row.lives) return;
  segment->SetLive(slot, true);
  accounts_.AddLive(row.row_class, row.record_bytes);
}

void LogSegments::MarkDead(Location location) {
  MutexLock lock(&mutex_);
  MarkDeadLocked(location);
}

void LogSegments::MarkDeadLocked(Location location) {
  EMBANK_CHECK(location.tier() == options_.tier && SegmentIndexOf(location) < segments_.size());
  EMBANK_CHECK(segments_[SegmentIndexOf(location)] != nullptr);
  LogSegment& segment = *segments_[SegmentIndexOf(location)];
  const uint64_t offset = SegmentOffsetOf(location);
  EMBANK_CHECK(segment.geometry.IsSlotAt(offset));
  const bool freeze = frozen_checkpoint_ != 0 && !Seeded(SeededBug::kFrozenLate);
  if (freeze) segment.FreezeFor(frozen_checkpoint_);
  EMBANK_CHECK(segment.SetLive(segment.geometry.SlotAt(offset), false));
  const int64_t record_bytes = segment.header.record_bytes;
  accounts_.AddLive(segment.header.row_class, -record_bytes);
  if (!segment.finished) return;
  const bool was_last = segment.live_rows == 0;
  const auto taken_bytes = static_cast<int64_t>(segment.taken_bytes);
  accounts_.AddFinished(was_last ? -taken_bytes : 0, -record_bytes);
}

void LogSegments::Finish(LogSegment* segment) {
  EMBANK_CHECK(segment->live_rows <= segment->used_slots && !segment->without_footer);
  segment->finished = true;
  // A file system that compresses may have less than the records.
  segment->taken_bytes = options_.follows_rows()
                             ? std::max(segment->taken_bytes, segment->LiveBytes())
                             : segment->header.segment_bytes;
  if (segment->live_rows == 0) return;
  accounts_.AddFinished(static_cast<int64_t>(segment->taken_bytes),
                        static_cast<int64_t>(segment->LiveBytes()));
}

bool LogSegments::IsDead(const LogSegment& segment) const {
  const bool has_ended = segment.finished || segment.without_footer;
  return has_ended && segment.live_rows == 0 && !IsKept(segment);
}

// ---- checkpoints ----

bool LogSegments::SetOldestKept(uint32_t checkpoint) {
  const bool is_later = checkpoint > oldest_kept_;
  oldest_kept_ = checkpoint;
  return is_later;
}

// The checkpoint under way has all living rows until the segment has been frozen for it.
bool LogSegments::IsKept(const LogSegment& segment) const {
  const bool is_frozen = segment.frozen_for == frozen_checkpoint_;
  const uint32_t rows = is_frozen ? segment.frozen_rows : segment.live_rows;
  const bool frozen = frozen_checkpoint_ != 0 && rows > 0;
  if (options_.tier == Tier::kPmem && Seeded(SeededBug::kPmemSegmentGivenUp)) return false;
  if (frozen && !Seeded(SeededBug::kFrozenSegmentGivenUp)) return true;
  if (Seeded(SeededBug::kKeptSegmentGivenUp)) return false;
  return segment.newest_checkpoint != 0 && segment.newest_checkpoint >= oldest_kept_;
}

// ---- counts ----

uint64_t LogSegments::next_segment_id() const {
  ReaderMutexLock lock(&mutex_);
  return next_segment_id_;
}

std::set<std::string> LogSegments::Names() const {
  ReaderMutexLock lock(&mutex_);
  std::set<std::string> names;
  for (const auto& segment : segments_) {
    if (segment != nullptr) names.insert(segment->name);
  }
  return names;
}

uint64_t LogSegments::live_rows() const {
  ReaderMutexLock lock(&mutex_);
  uint64_t rows = 0;
  for (const auto& segment : segments_) rows += segment == nullptr ? 0 : segment->live_rows;
  return rows;
}

}  // namespace embank
