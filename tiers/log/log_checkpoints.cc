#include "tiers/log/log_checkpoints.h"

#include <memory>
#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"

namespace embank {

void LogCheckpoints::Freeze(uint32_t checkpoint) {
  MutexLock lock(segments_.mutex());
  EMBANK_CHECK(checkpoint != 0 && segments_.frozen_checkpoint() == 0);
  segments_.SetFrozenCheckpoint(checkpoint);
}

StatusOr<std::vector<SegmentRows>> LogCheckpoints::SyncFrozen() {
  // First the records in buffers: a segment with a footer must have its records in its file.
  EMBANK_RETURN_IF_ERROR(appender_.Flush());
  std::vector<SegmentRows> all;
  size_t end = 0;
  for (size_t i = 0; i == 0 || i < end; ++i) {
    MutexLock lock(segments_.mutex());
    end = segments_.all().size();
    if (i < end && segments_.all()[i] != nullptr) AddFrozen(segments_.all()[i].get(), &all);
  }
  if (Seeded(SeededBug::kManifestBeforeSegments)) return all;
  EMBANK_RETURN_IF_ERROR(appender_.Sync());
  return all;
}

StatusOr<std::vector<SegmentRows>> LogCheckpoints::ListDurable(uint64_t* lost_rows) {
  std::vector<SegmentRows> all;
  MutexLock lock(segments_.mutex());
  writer_.AssertHeld();
  EMBANK_CHECK(!writer_.failure().ok());
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (segment == nullptr) continue;
    const size_t count = all.size();
    AddFrozen(segment.get(), &all);
    if (all.size() == count || writer_.IsDurable(*segment)) continue;
    // The rows of a lost log that are still there could not be read.
    const bool are_lost = segment->passed_over || Seeded(SeededBug::kEvacuationLeftOut);
    if (!writer_.is_lost() || !are_lost) return writer_.failure();
    *lost_rows += segment->frozen_rows;
    all.pop_back();
  }
  return all;
}

void LogCheckpoints::AddFrozen(LogSegment* segment, std::vector<SegmentRows>* all) const {
  segment->FreezeFor(segments_.frozen_checkpoint());
  if (segment->frozen_rows == 0) return;
  EMBANK_CHECK(segment->frozen_rows <= segment->used_slots);
  SegmentRows rows = {.header = segment->header,
                      .tier = segment->tier,
                      .used_slots = segment->used_slots,
                      .bits = {},
                      .keys = {},
                      .tables = {}};
  if (!segment->finished) {
    const SegmentFooter owners = segment->Owners();
    rows.keys.assign(owners.keys.begin(), owners.keys.end());
    rows.tables.assign(owners.tables.begin(), owners.tables.end());
  }
  rows.bits.assign(segment->frozen(), segment->frozen() + RoundUp(rows.used_slots, 64) / 64);
  all->push_back(std::move(rows));
}

void LogCheckpoints::Thaw(bool is_kept) {
  MutexLock lock(segments_.mutex());
  const uint32_t checkpoint = segments_.frozen_checkpoint();
  EMBANK_CHECK(checkpoint != 0);
  for (const std::shared_ptr<LogSegment>& segment : segments_.all()) {
    if (!is_kept || segment == nullptr) continue;
    segment->FreezeFor(checkpoint);
    if (segment->frozen_rows > 0) segment->newest_checkpoint = checkpoint;
    segment->unread = false;
  }
  segments_.SetFrozenCheckpoint(0);
}

void LogCheckpoints::ReleaseOlderThan(uint32_t oldest_kept) {
  {
    MutexLock lock(segments_.mutex());
    if (segments_.SetOldestKept(oldest_kept)) segments_.mutable_accounts().EndInterval();
    dead_.AssertHeld();
    dead_.Collect();
  }
  writer_.Wake();
}

}  // namespace embank
