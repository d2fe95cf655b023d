#include "tiers/log/space_reservations.h"

#include "base/check.h"
#include "base/str_cat.h"

namespace embank {

Status SpaceReservations::AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets) {
  MutexLock lock(segments_.mutex());
  // A read-only log writes no segment.
  return segments_.mutable_accounts().AddClass(row_class, record_bytes, forgets,
                                               !options_.read_only);
}

uint64_t SpaceReservations::Reserve(uint32_t row_class, uint64_t rows) {
  MutexLock lock(segments_.mutex());
  return ReserveLocked(row_class, rows);
}

uint64_t SpaceReservations::ReserveLocked(uint32_t row_class, uint64_t rows) {
  writer_.AssertHeld();
  uint64_t admitted = rows;
  while (writer_.failure().ok()) {
    admitted = segments_.accounts().Admits(row_class, rows);
    if (admitted == rows || !FreeMore()) break;
  }
  EMBANK_CHECK(admitted <= rows);
  // A log that has stopped makes no checkpoint: rows in memory may change.
  const bool must = !writer_.failure().ok();
  return segments_.mutable_accounts().Reserve(row_class, must ? rows : admitted, must);
}

void SpaceReservations::Release(uint32_t row_class, uint64_t rows) {
  if (rows == 0) return;
  MutexLock lock(segments_.mutex());
  segments_.mutable_accounts().Release(row_class, rows);
}

bool SpaceReservations::ReserveAndMarkDead(Location location) {
  MutexLock lock(segments_.mutex());
  EMBANK_CHECK(SegmentIndexOf(location) < segments_.all().size());
  EMBANK_CHECK(segments_.all()[SegmentIndexOf(location)] != nullptr);
  const LogSegment& segment = *segments_.all()[SegmentIndexOf(location)];
  if (ReserveLocked(segment.header.row_class, 1) == 0) return false;
  segments_.MarkDeadLocked(location);
  return true;
}

bool SpaceReservations::CanReserve(uint32_t row_class, uint32_t record_bytes, uint64_t rows) {
  // One segment may be begun, and the left-out ends may be another. With a footer and the rest of a
  // segment, a record takes less than half as much again.
  const int64_t spare = segments_.figures().spare_segments() - 2;
  const uint64_t needed = rows * record_bytes * 3 / 2 / options_.segment_bytes;
  if (spare > 0 && needed < static_cast<uint64_t>(spare)) return true;
  MutexLock lock(segments_.mutex());
  writer_.AssertHeld();
  while (writer_.failure().ok() && segments_.accounts().Admits(row_class, rows) < rows) {
    if (!FreeMore()) return false;
  }
  return true;
}

bool SpaceReservations::ReserveMetadata(uint64_t bytes, bool must) {
  MutexLock lock(segments_.mutex());
  writer_.AssertHeld();
  while (!segments_.mutable_accounts().ReserveMetadata(bytes, must)) {
    // FreeMore may release the lock.
    if (!writer_.failure().ok() || !FreeMore()) return false;
  }
  return true;
}

bool SpaceReservations::IsNearFull() const {
  const uint64_t segments = options_.ssd_bytes / options_.segment_bytes;
  return segments_.figures().spare_segments() < static_cast<int64_t>(segments / 8);
}

// Frees the space of dead segments. False: there are none. May release the lock.
bool SpaceReservations::FreeMore() {
  dead_.AssertHeld();
  dead_.Collect();
  if (dead_.RemoveOneOrWait()) return true;
  // A segment without a footer does not die.
  writer_.AssertHeld();
  return writer_.WriteFooterOrWait();
}

std::string SpaceReservations::RefusalReason() const {
  ReaderMutexLock lock(segments_.mutex());
  writer_.AssertReaderHeld();
  if (!writer_.failure().ok()) {
    return StrCat("the log takes no more rows: ", writer_.failure().ToString());
  }
  const SpaceAccounts& accounts = segments_.accounts();
  if (accounts.SpareSegments() > 0) {
    return "the disk, the machine's memory, the process's descriptors, or what dram_bytes leaves "
           "to the log is used up, as the log sink was told";
  }
  return StrCat("ssd_bytes is ", options_.ssd_bytes, ", of which segments take ",
                accounts.taken_bytes(), " and ", accounts.reserved_bytes(),
                " are kept for the next checkpoint: nothing more can change until "
                "embank_checkpoint, which gives back what only older ones have; where that ",
                "is nothing, until rows are erased or ssd_bytes is larger");
}

LogSpace SpaceReservations::Report() const {
  ReaderMutexLock lock(segments_.mutex());
  const SpaceAccounts& accounts = segments_.accounts();
  LogSpace space = {options_.ssd_bytes, accounts.taken_bytes(), 0, accounts.dirty_bytes(),
                    accounts.reserved_bytes()};
  for (const auto& segment : segments_.all()) {
    if (segment != nullptr) space.live_bytes += segment->LiveBytes();
  }
  return space;
}

}  // namespace embank
