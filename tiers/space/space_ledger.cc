#include "tiers/space/space_ledger.h"

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

// The log wants this part of dram_bytes free for the bits of segments to come.
constexpr uint64_t kSlackPart = 64;

}  // namespace

SpaceLedger::SpaceLedger(MemorySource* source, MemoryBudget* budget, uint64_t ssd_bytes,
                         uint64_t segment_bytes, bool follows_rows, SpaceFigures* figures)
    : budget_(budget),
      segment_bytes_(segment_bytes),
      figures_(figures),
      memory_(source, budget),
      quota_(ssd_bytes, segment_bytes),
      pace_(ssd_bytes, segment_bytes, follows_rows) {
  Publish();
}

Status SpaceLedger::AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets,
                             bool is_written) {
  if (is_written) {
    EMBANK_RETURN_IF_ERROR(memory_.AddClass(SegmentGeometry::Of(record_bytes, segment_bytes_)));
  }
  quota_.AddClass(row_class, record_bytes, forgets);
  pace_.SetClasses(quota_.classes());
  if (!budget_->has_limit() || !is_written) return OkStatus();
  // Footers are read one at a time where tables are dropped; bits are reserved in steps.
  figures_->set_slack_bytes(memory_.largest_footer_bytes() + budget_->limit_bytes() / kSlackPart);
  return OkStatus();
}

uint64_t SpaceLedger::Reserve(uint32_t row_class, uint64_t rows, bool must) {
  const auto dirty = static_cast<int64_t>(rows);
  EMBANK_CHECK(dirty >= 0);
  quota_.AddDirty(row_class, dirty);
  const bool has_memory = memory_.ReserveBits(quota_.needed_bit_bytes());
  if (!has_memory && !must) quota_.AddDirty(row_class, -dirty);
  Publish();
  return has_memory || must ? rows : 0;
}

void SpaceLedger::Release(uint32_t row_class, uint64_t rows) {
  quota_.AddDirty(row_class, -static_cast<int64_t>(rows));
  Publish();
}

void SpaceLedger::SetOpenSlots(uint32_t row_class, uint64_t slots) {
  quota_.SetOpenSlots(row_class, slots);
  Publish();
}

void SpaceLedger::AddTaken(int64_t bytes) {
  EMBANK_CHECK(bytes >= 0 || quota_.taken_bytes() >= static_cast<uint64_t>(-bytes));
  quota_.AddTaken(bytes);
  Publish();
}

void SpaceLedger::AddLive(uint32_t row_class, int64_t bytes) {
  quota_.AddLive(row_class, bytes);
  figures_->set_bytes_to_forget(quota_.BytesToForget());
}

void SpaceLedger::AddFinished(int64_t bytes, int64_t live_bytes) {
  pace_.AddFinished(bytes, live_bytes);
  PublishPace();
}

void SpaceLedger::EndInterval() {
  pace_.EndInterval();
  PublishPace();
}

void SpaceLedger::Publish() {
  // Less is always possible.
  if (quota_.needed_bit_bytes() < memory_.reserved_bit_bytes()) {
    EMBANK_CHECK(memory_.ReserveBits(quota_.needed_bit_bytes()));
  }
  const int64_t spare = quota_.SpareSegments();
  figures_->set_spare_segments(spare);
  figures_->set_bytes_to_forget(quota_.BytesToForget());
  pace_.SetSpare(spare);
  PublishPace();
}

}  // namespace embank
