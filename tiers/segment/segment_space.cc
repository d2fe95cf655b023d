#include "tiers/segment/segment_space.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

Status Take(const LogSegment& segment, uint64_t begin, uint64_t end) {
  EMBANK_CHECK(begin < end && end <= segment.header.segment_bytes);
  const Status taken = begin == 0 ? segment.file->Preallocate(end)
                                  : segment.file->PreallocateRange(begin, end - begin);
  return IsUnimplemented(taken) && segment.tier != Tier::kPmem ? OkStatus() : taken;
}

void Note(LogSegment* segment, uint64_t space_end) {
  segment->space_end = space_end;
  segment->taken_bytes = space_end + segment->geometry.footer_bytes;
}

}  // namespace

Status TakeFirstSpace(LogSegment* segment, uint64_t step_bytes, bool is_whole) {
  const SegmentGeometry& geometry = segment->geometry;
  const uint64_t space_end = kBlockBytes + step_bytes;
  if (is_whole || space_end >= geometry.footer_offset) {
    EMBANK_RETURN_IF_ERROR(Take(*segment, 0, segment->header.segment_bytes));
    Note(segment, geometry.footer_offset);
    return OkStatus();
  }
  EMBANK_CHECK(segment->tier != Tier::kPmem);
  EMBANK_RETURN_IF_ERROR(Take(*segment, 0, space_end));
  EMBANK_RETURN_IF_ERROR(Take(*segment, geometry.footer_offset, segment->header.segment_bytes));
  Note(segment, space_end);
  return OkStatus();
}

Status TakeSpaceForNext(LogSegment* segment, uint64_t step_bytes) {
  const SegmentGeometry& geometry = segment->geometry;
  EMBANK_CHECK(segment->used_slots < geometry.slots);
  const uint64_t end = RoundUp(geometry.OffsetOf(segment->used_slots + 1), kBlockBytes);
  if (end <= segment->space_end) return OkStatus();
  const uint64_t wanted = std::max(end, segment->space_end + step_bytes);
  const uint64_t space_end = std::min(wanted, geometry.footer_offset);
  EMBANK_RETURN_IF_ERROR(Take(*segment, segment->space_end, space_end));
  Note(segment, space_end);
  return OkStatus();
}

}  // namespace embank
