// How a segment of the log is made: its memory, its place, its file.
#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "tiers/log/open_segment.h"
#include "tiers/log/row_log.h"

namespace embank {

// The memory of a segment, which has neither a file nor a place yet. kResourceExhausted.
StatusOr<std::shared_ptr<LogSegment>> RowLog::MakeSegment(LogStream stream, const RowToLog& row) {
  auto segment = std::make_shared<LogSegment>();
  segment->header = {.store_id = options_.store_id,
                     .segment_id = next_segment_id_,
                     .row_class = row.row_class,
                     .record_bytes = row.record_bytes,
                     .segment_bytes = options_.segment_bytes};
  EMBANK_RETURN_IF_ERROR(Outfit(segment.get(), stream, true));
  ++next_segment_id_;
  return segment;
}

// Brings memory back that finished segments give up with their footers; ends another segment of
// compaction's for that. False: there is none. Gives the lock up.
bool RowLog::FreeMemory(const OpenSegment* open) {
  if (WriteFooter()) return true;
  if (ends_under_way_ > 0) {
    buffer_written_.Wait(&mutex_);
    return true;
  }
  if (open->stream == LogStream::kUser) return false;
  for (const std::unique_ptr<OpenSegment>& other : open_) {
    if (other->stream == LogStream::kUser || other->segment == nullptr) continue;
    EndSegment(other.get());
    return true;
  }
  return false;
}

Status RowLog::AddSegment(OpenSegment* open, std::shared_ptr<LogSegment> segment) {
  EMBANK_ASSIGN_OR_RETURN(segment->index, FreeIndex());
  EMBANK_ASSIGN_OR_RETURN(
      segment->file,
      options_.directory->Open(segment->name, FileAccess::kCreate, FileCaching::kDirect));
  segment->file->MayRest();
  EncodeSegmentHeader(segment->header, {header_block_.data(), kBlockBytes});
  Status status = segment->file->Preallocate(options_.segment_bytes);
  // Where space cannot be taken ahead, it is taken as it is written.
  if (IsUnimplemented(status)) status = OkStatus();
  if (status.ok()) status = segment->Write(0, {header_block_.data(), kBlockBytes});
  if (!status.ok()) {
    options_.directory->Remove(segment->name).IgnoreError();
    return status;
  }
  segments_[segment->index] = segment;
  open->segment = std::move(segment);
  room_.AddTaken(static_cast<int64_t>(options_.segment_bytes));
  NoteOpenSlots(*open);
  NoteSpare();
  return OkStatus();
}

// A place for one more segment, and so much room behind that none fails to be put there.
StatusOr<RowLog::SegmentIndex> RowLog::FreeIndex() {
  const auto free = std::find(segments_.begin(), segments_.end(), nullptr);
  const auto index = static_cast<SegmentIndex>(free - segments_.begin());
  if (index == kSegmentsMax) return NoRoom();
  if (free == segments_.end()) segments_.push_back(nullptr);
  ended_.reserve(segments_.size());
  unsynced_.reserve(unsynced_.size() + segments_.size());
  dead_.reserve(dead_.size() + segments_.size());
  return index;
}

// What a segment needs that has a header: its slots while it has no footer.
Status RowLog::Outfit(LogSegment* segment, LogStream stream, bool with_slots) {
  segment->geometry =
      SegmentGeometry::Of(segment->header.record_bytes, segment->header.segment_bytes);
  EMBANK_CHECK(segment->geometry.slots > 0);
  if (with_slots) {
    EMBANK_ASSIGN_OR_RETURN(segment->slots, memory_.Owners(stream, segment->geometry));
  }
  EMBANK_ASSIGN_OR_RETURN(segment->bits, memory_.Bits(stream, segment->geometry));
  segment->name = SegmentName(segment->header.segment_id);
  return OkStatus();
}

}  // namespace embank
