#include "tiers/space/space_accounts.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "base/status_macros.h"
#include "tiers/segment/segment_format.h"

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
// The log wants this part of dram_bytes free for the bits of segments to come.
constexpr uint64_t kSlackPart = 64;

int64_t CompactionSegments(const SpaceLimits& limits) {
  const uint64_t segments = limits.ssd_bytes / limits.segment_bytes;
  if (segments < kCompactionSegmentsMin * kTwoSegmentsPart) return 1;
  return static_cast<int64_t>(
      std::clamp(segments / kCompactionPart, kCompactionSegmentsMin, kCompactionSegmentsMax));
}

}  // namespace

SpaceAccounts::SpaceAccounts(MemorySource* source, MemoryBudget* budget, const SpaceLimits& limits,
                             SpaceFigures* figures)
    : budget_(budget),
      limits_(limits),
      figures_(figures),
      memory_(source, budget),
      pace_(limits.ssd_bytes, limits.segment_bytes, limits.follows_rows),
      any_forgets_(limits.all_forget) {
  Publish();
}

Status SpaceAccounts::AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets,
                               bool is_written) {
  if (row_class >= classes_.size()) classes_.resize(row_class + 1);
  Class& added = classes_[row_class];
  EMBANK_CHECK(added.record_bytes == 0 || added.record_bytes == record_bytes);
  if (added.record_bytes != 0) return OkStatus();
  const SegmentGeometry geometry = SegmentGeometry::Of(record_bytes, limits_.segment_bytes);
  EMBANK_CHECK(geometry.slots > 0);
  if (is_written) EMBANK_RETURN_IF_ERROR(memory_.AddClass(geometry));
  added = {.record_bytes = record_bytes,
           .forgets = forgets,
           .slots = geometry.slots,
           // The slots that begin before the first block after a slot's end (SlotInFreshBlock).
           .left_out_slots = kFlushes * static_cast<int64_t>(kBlockBytes / record_bytes + 1),
           .bit_bytes = static_cast<int64_t>(LogMemory::BitBytes(geometry))};
  // Where sizes of segments follow what is written, the first ones are small, and the last one may
  // be much too large (tiers/space/segment_size.h).
  if (limits_.ssd_bytes == 0) {
    added.first_bit_bytes =
        added.bit_bytes + LogMemory::kSmallSegmentsMax * LogMemory::kSegmentFixedBytes;
  }
  any_forgets_ = any_forgets_ || forgets;
  pace_.SetClasses(++added_classes_);
  if (!budget_->has_limit() || !is_written) return OkStatus();
  // Footers are read one at a time where tables are dropped; bits are reserved in steps.
  figures_->set_slack_bytes(memory_.largest_footer_bytes() + budget_->limit_bytes() / kSlackPart);
  return OkStatus();
}

// ---- dirty rows ----

uint64_t SpaceAccounts::Admits(uint32_t row_class, uint64_t rows) const {
  if (limits_.ssd_bytes == 0) return rows;
  const Class& of = classes_[row_class];
  const int64_t segments = SpareSegments() + of.needed_segments;
  if (segments < 0) return 0;
  const int64_t admitted = of.open_slots + segments * of.slots - of.left_out_slots - of.dirty_rows;
  return std::min(rows, static_cast<uint64_t>(std::max<int64_t>(admitted, 0)));
}

uint64_t SpaceAccounts::Reserve(uint32_t row_class, uint64_t rows, bool must) {
  const auto dirty = static_cast<int64_t>(rows);
  EMBANK_CHECK(dirty >= 0);
  AddDirty(row_class, dirty);
  const bool has_memory = memory_.ReserveBits(needed_bit_bytes_);
  if (!has_memory && !must) AddDirty(row_class, -dirty);
  Publish();
  return has_memory || must ? rows : 0;
}

void SpaceAccounts::Release(uint32_t row_class, uint64_t rows) {
  AddDirty(row_class, -static_cast<int64_t>(rows));
  Publish();
}

void SpaceAccounts::SetOpenSlots(uint32_t row_class, uint64_t slots) {
  if (Find(row_class) == nullptr) return;
  Class& of = classes_[row_class];
  EMBANK_CHECK(static_cast<int64_t>(slots) <= of.slots);
  of.open_slots = static_cast<int64_t>(slots);
  Recount(&of);
  Publish();
}

bool SpaceAccounts::ReserveMetadata(uint64_t bytes, bool must) {
  const uint64_t before = metadata_bytes_;
  metadata_bytes_ = bytes;
  const bool fits = bytes <= before || SpareSegments() >= 0 || must;
  if (!fits) metadata_bytes_ = before;
  Publish();
  return fits;
}

void SpaceAccounts::AddDirty(uint32_t row_class, int64_t rows) {
  EMBANK_CHECK(Find(row_class) != nullptr);
  Class& of = classes_[row_class];
  of.dirty_rows += rows;
  EMBANK_CHECK(of.dirty_rows >= 0);
  EMBANK_CHECK(rows >= 0 || dirty_bytes_ >= static_cast<uint64_t>(-rows * of.record_bytes));
  dirty_bytes_ += static_cast<uint64_t>(rows * of.record_bytes);
  Recount(&of);
}

void SpaceAccounts::Recount(Class* row_class) {
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

// ---- segments and their records ----

void SpaceAccounts::AddTaken(int64_t bytes) {
  EMBANK_CHECK(bytes >= 0 || taken_bytes_ >= static_cast<uint64_t>(-bytes));
  taken_bytes_ += static_cast<uint64_t>(bytes);
  Publish();
}

void SpaceAccounts::AddLive(uint32_t row_class, int64_t bytes) {
  live_bytes_ += static_cast<uint64_t>(bytes);
  if (Find(row_class) != nullptr) classes_[row_class].live_bytes += bytes;
  figures_->set_bytes_to_forget(BytesToForget());
}

void SpaceAccounts::AddFinished(int64_t bytes, int64_t live_bytes) {
  pace_.AddFinished(bytes, live_bytes);
  figures_->set_pace(pace_.pace());
}

void SpaceAccounts::EndInterval() {
  pace_.EndInterval();
  figures_->set_pace(pace_.pace());
}

// ---- balances ----

uint64_t SpaceAccounts::ClassBytes(uint32_t row_class) const {
  const Class* const of = Find(row_class);
  if (of == nullptr) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(of->live_bytes, 0) +
                               of->dirty_rows * of->record_bytes);
}

int64_t SpaceAccounts::SpareSegments() const {
  if (limits_.ssd_bytes == 0) return std::numeric_limits<int64_t>::max();
  return FreeSegments() - needed_segments_ - CompactionSegments(limits_);
}

bool SpaceAccounts::HasSegment(SegmentPurpose purpose) const {
  const int64_t kept = (purpose == SegmentPurpose::kDirtyRows ? 0 : needed_segments_) +
                       (purpose == SegmentPurpose::kCompaction ? CompactionSegments(limits_) : 0);
  return FreeSegments() > kept;
}

int64_t SpaceAccounts::FreeSegments() const {
  if (limits_.ssd_bytes == 0) return std::numeric_limits<int64_t>::max();
  const uint64_t used_bytes = std::min(taken_bytes_ + metadata_bytes_, limits_.ssd_bytes);
  return static_cast<int64_t>((limits_.ssd_bytes - used_bytes) / limits_.segment_bytes);
}

// The bytes of rows to forget; 0 if no class forgets.
uint64_t SpaceAccounts::BytesToForget() const {
  if (!any_forgets_ || limits_.ssd_bytes == 0) return 0;
  const uint64_t most =
      limits_.rows_bytes_max != 0 ? limits_.rows_bytes_max : limits_.ssd_bytes / kRowsPart;
  // A dirty row has no record that lives.
  const uint64_t bytes = live_bytes_ + dirty_bytes_;
  return bytes - std::min(bytes, most);
}

uint64_t SpaceAccounts::reserved_bytes() const {
  if (limits_.ssd_bytes == 0) return 0;
  return static_cast<uint64_t>(needed_segments_) * limits_.segment_bytes + metadata_bytes_;
}

void SpaceAccounts::Publish() {
  // Less is always possible.
  if (needed_bit_bytes_ < memory_.reserved_bit_bytes()) {
    EMBANK_CHECK(memory_.ReserveBits(needed_bit_bytes_));
  }
  const int64_t spare = SpareSegments();
  figures_->set_spare_segments(spare);
  figures_->set_bytes_to_forget(BytesToForget());
  pace_.SetSpare(spare);
  pace_.SetDirty(dirty_bytes_);
  figures_->set_pace(pace_.pace());
}

}  // namespace embank
