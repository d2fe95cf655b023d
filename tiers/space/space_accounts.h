// The accounts of a log: its space on the medium, its memory, and the pace of compaction. Every
// change is entered here once, and the figures that others read without a lock follow.
//
//   ssd_bytes:  | segments | manifests, heat | dirty rows' records | compaction's | for changes |
//
//   rows become dirty -> Reserve ...... UseReservation <- a record of one is written
//   rows stay clean   -> Release        SetOpenSlots   <- a segment gives and loses slots
//
// One checkpoint can always be made: writing a dirty row turns its reservation into used space.
// Reservations are whole segments: as many as a class needs beyond the free slots of its open
// segment. So evictions and flush passes never need new space. Calls that make rows dirty, or write
// other records, do. The caller guards it.
#ifndef EMBANK_TIERS_SPACE_SPACE_ACCOUNTS_H_
#define EMBANK_TIERS_SPACE_SPACE_ACCOUNTS_H_

#include <cstdint>
#include <vector>

#include "base/memory/memory.h"
#include "base/status.h"
#include "tiers/space/compaction_pace.h"
#include "tiers/space/log_memory.h"
#include "tiers/space/space_figures.h"

namespace embank {

// The purpose of a further segment. Compaction that frees space may use the space that is reserved
// for it.
enum class SegmentPurpose { kDirtyRows, kCompaction, kCompactionThatFrees };

struct SpaceLimits {
  uint64_t ssd_bytes = 0;  // 0: no limit
  uint64_t segment_bytes = 0;
  // Bytes of rows of classes that forget beyond which some are too many; 0: a part of ssd_bytes.
  uint64_t rows_bytes_max = 0;
  bool all_forget = false;    // rows of all classes are too many beyond that
  bool follows_rows = false;  // as CompactionPace's
};

class SpaceAccounts {
 public:
  // source, budget and figures outlive it.
  SpaceAccounts(MemorySource* source, MemoryBudget* budget, const SpaceLimits& limits,
                SpaceFigures* figures);

  // The least size of a log: a segment to write, one for compaction, and one for reserved space.
  static constexpr uint64_t kSegmentsMin = 3;

  // Rows of tables that forget, together with all others, take at most this part of ssd_bytes.
  // Emptied segments that are kept for two checkpoints need as much (decision 0023).
  static constexpr uint64_t kRowsPart = 2;

  // Lets rows of a class be dirty; without `is_written` the log writes none of them. A repeated
  // call changes nothing. kResourceExhausted: the budget has no memory for its segments; nothing
  // was changed. Throws std::bad_alloc.
  Status AddClass(uint32_t row_class, uint32_t record_bytes, bool forgets, bool is_written);

  // ---- dirty rows ----

  // How many of `rows` more rows of a class may be dirty.
  uint64_t Admits(uint32_t row_class, uint64_t rows) const;
  // Reserves space and memory for the records of `rows` rows, which Admits; returns how many: all
  // or none. `must`: reserves the space even without the memory.
  uint64_t Reserve(uint32_t row_class, uint64_t rows, bool must);
  // Releases the reservation of `rows` rows that were not written.
  void Release(uint32_t row_class, uint64_t rows);
  // Uses the reservation of a dirty row whose record is written. The figures follow with the next
  // SetOpenSlots.
  void UseReservation(uint32_t row_class) { AddDirty(row_class, -1); }
  // Sets the number of free slots in the open segment for dirty rows of a class. Does nothing for a
  // class that was not added.
  void SetOpenSlots(uint32_t row_class, uint64_t slots);
  // Reserves `bytes` for manifests and heat, instead of the former reservation. Always succeeds if
  // they are no more than before, or with `must`. False: there is no space, and the former
  // reservation stays.
  bool ReserveMetadata(uint64_t bytes, bool must);
  // Reserves bits again for a segment that was not made after all, if there is memory.
  void RestoreBits() { static_cast<void>(memory_.ReserveBits(needed_bit_bytes_)); }

  // ---- segments and their records; an argument may be negative ----

  // Adds to the bytes of segments.
  void AddTaken(int64_t bytes);
  // Adds to the bytes of a class's living records.
  void AddLive(uint32_t row_class, int64_t bytes);
  // Adds to the bytes of finished segments with living rows, and to the bytes of these rows.
  void AddFinished(int64_t bytes, int64_t live_bytes);
  // Notes that a segment was chosen to be emptied for the pace; that a checkpoint has ended
  // (CompactionPace).
  void NoteWork() { pace_.NoteWork(); }
  void EndInterval();

  // ---- balances ----

  // Whether the log forgets rows of the class.
  bool Forgets(uint32_t row_class) const {
    const Class* const of = Find(row_class);
    return of != nullptr && of->forgets;
  }
  // The bytes of a class's records, living or still to be written; 0 if it was not added.
  uint64_t ClassBytes(uint32_t row_class) const;
  // Whole segments that are neither used nor reserved; negative: a part of the reservation is
  // missing.
  int64_t SpareSegments() const;
  // Whether there is a further segment.
  bool HasSegment(SegmentPurpose purpose) const;

  uint64_t taken_bytes() const { return taken_bytes_; }
  uint64_t dirty_bytes() const { return dirty_bytes_; }
  // The part of the budget that is reserved for a checkpoint; 0 without a limit.
  uint64_t reserved_bytes() const;
  const CompactionPace& pace() const { return pace_; }
  // Bytes of memory for the bits of the segments that dirty rows will need
  // (tiers/space/log_memory.h).
  uint64_t needed_bit_bytes() const { return needed_bit_bytes_; }
  LogMemory& memory() { return memory_; }

 private:
  struct Class {
    uint32_t record_bytes = 0;  // 0: it was not added
    bool forgets = false;
    int64_t slots = 1;
    int64_t left_out_slots = 0;  // at most, until the flush pass after the next one has ended
    int64_t dirty_rows = 0;
    int64_t live_bytes = 0;
    int64_t open_slots = 0;
    int64_t needed_segments = 0;
    int64_t needed_bit_bytes = 0;
    int64_t bit_bytes = 0;        // of one of its segments
    int64_t first_bit_bytes = 0;  // once more where segments may be smaller
  };

  // nullptr: it was not added.
  const Class* Find(uint32_t row_class) const {
    const bool is_added = row_class < classes_.size() && classes_[row_class].record_bytes != 0;
    return is_added ? &classes_[row_class] : nullptr;
  }
  void AddDirty(uint32_t row_class, int64_t rows);
  void Recount(Class* row_class);
  int64_t FreeSegments() const;
  uint64_t BytesToForget() const;
  void Publish();

  MemoryBudget* const budget_;
  const SpaceLimits limits_;
  SpaceFigures* const figures_;
  LogMemory memory_;
  CompactionPace pace_;
  std::vector<Class> classes_;
  uint64_t added_classes_ = 0;
  bool any_forgets_;
  uint64_t taken_bytes_ = 0;
  uint64_t metadata_bytes_ = 0;
  uint64_t dirty_bytes_ = 0;
  uint64_t live_bytes_ = 0;
  int64_t needed_segments_ = 0;  // of all classes
  uint64_t needed_bit_bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_SPACE_SPACE_ACCOUNTS_H_
