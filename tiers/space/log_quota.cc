#include "tiers/space/log_quota.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "tiers/segment/segment_format.h"
#include "tiers/space/log_memory.h"

namespace embank {
namespace {

// A checkpoint writes what is in buffers twice, and each time the rest of a block is left out.
constexpr int64_t kFlushes = 2;
// Compaction begins segments before those that it empties are gone; of what only kept checkpoints
// hold so much can be had back at once: a part of the log, two where that is no more than an
// eighth, and no more than are soon filled.
constexpr uint64_t kCompactionPart = 32;
constexpr uint64_t kTwoSegmentsPart = 8;
constexpr uint64_t kCompactionSegmentsMin = 2;
constexpr uint64_t kCompactionSegmentsMax = 64;

}  // namespace

void LogQuota::AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets) {
  if (row_class >= classes_.size()) classes_.resize(row_class + 1);
  Class& added = classes_[row_class];
  if (added.record_bytes == record_bytes) return;
  EMBANK_CHECK(added.record_bytes == 0);
  added.record_bytes = record_bytes;
  ++counted_classes_;
  added.forgets = forgets;
  any_forgets_ = any_forgets_ || forgets;
  const SegmentGeometry geometry = SegmentGeometry::Of(record_bytes, segment_bytes_);
  added.slots = geometry.slots;
  added.bit_bytes = static_cast<int64_t>(LogMemory::BitBytes(geometry));
  // Where sizes of segments follow what is written, the first ones are small, and the last one may
  // be much too large (tiers/space/segment_size.h).
  if (ssd_bytes_ == 0) {
    added.first_bit_bytes =
        added.bit_bytes + LogMemory::kSmallSegmentsMax * LogMemory::kSegmentFixedBytes;
  }
  EMBANK_CHECK(added.slots > 0);
  // The slots that begin before the first block behind a slot's end (SlotInFreshBlock).
  added.left_out_slots = kFlushes * static_cast<int64_t>(kBlockBytes / record_bytes + 1);
}

void LogQuota::SetOpenSlots(uint32_t row_class, uint64_t slots) {
  if (!IsCounted(row_class)) return;
  EMBANK_CHECK(static_cast<int64_t>(slots) <= classes_[row_class].slots);
  classes_[row_class].open_slots = static_cast<int64_t>(slots);
  Recount(&classes_[row_class]);
}

void LogQuota::AddLive(uint32_t row_class, int64_t bytes) {
  live_bytes_ += static_cast<uint64_t>(bytes);
  if (IsCounted(row_class)) classes_[row_class].live_bytes += bytes;
}

uint64_t LogQuota::ClassBytes(uint32_t row_class) const {
  if (!IsCounted(row_class)) return 0;
  const Class& of = classes_[row_class];
  return static_cast<uint64_t>(std::max<int64_t>(of.live_bytes, 0) +
                               of.dirty_rows * of.record_bytes);
}

void LogQuota::AddDirty(uint32_t row_class, int64_t rows) {
  EMBANK_CHECK(IsCounted(row_class));
  Class& of = classes_[row_class];
  of.dirty_rows += rows;
  EMBANK_CHECK(of.dirty_rows >= 0);
  EMBANK_CHECK(rows >= 0 || dirty_bytes_ >= static_cast<uint64_t>(-rows * of.record_bytes));
  dirty_bytes_ += static_cast<uint64_t>(rows * of.record_bytes);
  Recount(&of);
}

void LogQuota::Recount(Class* row_class) {
  const int64_t rows = row_class->dirty_rows + row_class->left_out_slots - row_class->open_slots;
  const bool needs = row_class->dirty_rows > 0 && rows > 0;
  const int64_t needed = needs ? (rows + row_class->slots - 1) / row_class->slots : 0;
  needed_segments_ += needed - row_class->needed_segments;
  const int64_t bit_bytes =
      needed * row_class->bit_bytes + (needed > 0 ? row_class->first_bit_bytes : 0);
  needed_bit_bytes_ += static_cast<uint64_t>(bit_bytes - row_class->needed_bit_bytes);
  row_class->needed_segments = needed;
  row_class->needed_bit_bytes = bit_bytes;
  EMBANK_CHECK(needed_segments_ >= needed);
}

uint64_t LogQuota::Admits(uint32_t row_class, uint64_t rows) const {
  if (ssd_bytes_ == 0) return rows;
  const Class& of = classes_[row_class];
  const int64_t segments = SpareSegments() + of.needed_segments;
  if (segments < 0) return 0;
  const int64_t admitted = of.open_slots + segments * of.slots - of.left_out_slots - of.dirty_rows;
  return std::min(rows, static_cast<uint64_t>(std::max<int64_t>(admitted, 0)));
}

uint64_t LogQuota::BytesToForget() const {
  if (!any_forgets_ || ssd_bytes_ == 0) return 0;
  // A dirty row has no record that lives.
  const uint64_t bytes = live_bytes_ + dirty_bytes_;
  return bytes - std::min(bytes, rows_bytes_max_);
}

int64_t LogQuota::SpareSegments() const {
  if (ssd_bytes_ == 0) return std::numeric_limits<int64_t>::max();
  return FreeSegments() - needed_segments_ - CompactionSegments();
}

int64_t LogQuota::FreeSegments() const {
  if (ssd_bytes_ == 0) return std::numeric_limits<int64_t>::max();
  const uint64_t used_bytes = std::min(taken_bytes_ + metadata_bytes_, ssd_bytes_);
  return static_cast<int64_t>((ssd_bytes_ - used_bytes) / segment_bytes_);
}

int64_t LogQuota::CompactionSegments() const {
  const uint64_t segments = ssd_bytes_ / segment_bytes_;
  if (segments < kCompactionSegmentsMin * kTwoSegmentsPart) return 1;
  return static_cast<int64_t>(
      std::clamp(segments / kCompactionPart, kCompactionSegmentsMin, kCompactionSegmentsMax));
}

uint64_t LogQuota::reserved_bytes() const {
  if (ssd_bytes_ == 0) return 0;
  return static_cast<uint64_t>(needed_segments_) * segment_bytes_ + metadata_bytes_;
}

}  // namespace embank
