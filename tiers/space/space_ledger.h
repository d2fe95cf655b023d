// The ledger of a log. Every change of its space, of its memory and of compaction's pace is entered
// here once. The figures that others read without a lock follow.
//
//   rows become dirty -> Reserve ...... UseReservation <- a record of one is written
//   rows stay clean   -> Release        SetOpenSlots   <- a segment gives and loses slots
//
// The caller guards it.
#ifndef EMBANK_TIERS_SPACE_SPACE_LEDGER_H_
#define EMBANK_TIERS_SPACE_SPACE_LEDGER_H_

#include <cstdint>

#include "base/memory/memory.h"
#include "base/status.h"
#include "tiers/space/compaction_pace.h"
#include "tiers/space/log_memory.h"
#include "tiers/space/log_quota.h"
#include "tiers/space/space_figures.h"

namespace embank {

class SpaceLedger {
 public:
  // source, budget and figures outlive it. ssd_bytes == 0: there is no limit. follows_rows: as
  // CompactionPace's.
  SpaceLedger(MemorySource* source, MemoryBudget* budget, uint64_t ssd_bytes,
              uint64_t segment_bytes, bool follows_rows, SpaceFigures* figures);

  // Lets rows of a class be dirty; without `is_written` the log writes none of them.
  // kResourceExhausted: the budget has no memory for its segments; nothing was changed. Throws
  // std::bad_alloc.
  Status AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets, bool is_written);

  // Rows of classes that forget are too many beyond so many bytes of rows.
  void LimitRows(uint64_t bytes) { quota_.LimitRows(bytes); }
  // Rows of all classes are too many beyond that.
  void LimitRowsOfAllClasses() { quota_.LimitRowsOfAllClasses(); }

  // Reserves space and memory for the records of so many rows, which quota() admits; returns how
  // many: all or none. `must`: reserves the space even without the memory.
  uint64_t Reserve(uint32_t row_class, uint64_t rows, bool must);
  // Releases the reservation of so many rows that were not written.
  void Release(uint32_t row_class, uint64_t rows);
  // Uses the reservation of a dirty row whose record is written. The figures follow with the next
  // SetOpenSlots.
  void UseReservation(uint32_t row_class) { quota_.AddDirty(row_class, -1); }
  // Reserves so many bytes for manifests and heat. The figures follow with Publish.
  void ReserveMetadata(uint64_t bytes) { quota_.ReserveMetadata(bytes); }

  // Sets the number of free slots in the open segment for dirty rows of a class.
  void SetOpenSlots(uint32_t row_class, uint64_t slots);
  // Adds to the bytes of segments; may be negative.
  void AddTaken(int64_t bytes);
  // Adds to the bytes of a class's living records; may be negative.
  void AddLive(uint32_t row_class, int64_t bytes);
  // Adds to the bytes of finished segments with living rows, and to the bytes of these rows; both
  // may be negative.
  void AddFinished(int64_t bytes, int64_t live_bytes);
  // Notes that a segment was chosen to be emptied for the pace; that a checkpoint has ended
  // (CompactionPace).
  void NoteWork() { pace_.NoteWork(); }
  void EndInterval();

  // Reserves bits again for a segment that was not made after all, if there is memory.
  void RestoreBits() { static_cast<void>(memory_.ReserveBits(quota_.needed_bit_bytes())); }
  // Writes the figures.
  void Publish();

  const LogQuota& quota() const { return quota_; }
  const CompactionPace& pace() const { return pace_; }
  LogMemory& memory() { return memory_; }

 private:
  void PublishPace() {
    pace_.SetDirty(quota_.dirty_bytes());
    figures_->set_pace(pace_.pace());
  }

  MemoryBudget* const budget_;
  const uint64_t segment_bytes_;
  SpaceFigures* const figures_;
  LogMemory memory_;
  LogQuota quota_;
  CompactionPace pace_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_SPACE_LEDGER_H_
