// The segments of a log, their living records, and the segments that kept checkpoints have. Its
// lock guards all parts of the log.
//
//   place 0    1         2         3             every location of a row names a place
//     | free | segment | segment | adopted | ...
//
// A segment is finished when its footer is written, and dead when no row lives in it and no
// checkpoint has it. Functions that take the lock themselves are thread-safe.
#ifndef EMBANK_TIERS_LOG_LOG_SEGMENTS_H_
#define EMBANK_TIERS_LOG_LOG_SEGMENTS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "tiers/log/row_log_options.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/log_segment.h"
#include "tiers/space/space_accounts.h"
#include "tiers/space/space_figures.h"

namespace embank {

class LogSegments {
 public:
  // All of them outlive it.
  LogSegments(MemorySource* source, MemoryBudget* budget, const RowLogOptions& options);

  // The log's lock.
  Mutex* mutex() const EMBANK_LOCK_RETURNED(mutex_) { return &mutex_; }
  const SpaceFigures& figures() const { return figures_; }
  const SpaceAccounts& accounts() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_) { return accounts_; }
  SpaceAccounts& mutable_accounts() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return accounts_; }

  // ---- all segments ----

  // All segments by place; nullptr: the place is free.
  std::span<const std::shared_ptr<LogSegment>> all() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_) {
    return segments_;
  }
  // Returns the segment of a location, and the names of the slot there; nullptr: there is no such
  // slot.
  std::shared_ptr<LogSegment> Find(Location location, RecordPlace* place) const
      EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  // Returns the segment of a location at which a row lives. While the caller keeps it, no other
  // takes its place. Takes the lock.
  std::shared_ptr<const LogSegment> Hold(Location location) const;

  // Returns the size of the next segment for rows of a class, after `written_bytes` were written to
  // segments like it since the log was opened.
  uint64_t NextSegmentBytes(uint32_t row_class, uint32_t record_bytes, uint64_t written_bytes) const
      EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  // Whether more than half of the places are taken, in a log whose segments may be small.
  bool HasFewPlaces() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  // Makes a segment of `segment_bytes` with the next number for rows of a class, with its memory,
  // but without a file or a place. kResourceExhausted: no memory.
  StatusOr<std::shared_ptr<LogSegment>> Make(LogStream stream, uint32_t row_class,
                                             uint32_t record_bytes, uint64_t segment_bytes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a segment with a header its geometry, name and bits. with_owners: also the owners of its
  // slots, which it needs until its footer is written. kResourceExhausted.
  Status Allocate(LogSegment* segment, LogStream stream, bool with_owners)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns a free place. kResourceExhausted: there is none. Throws std::bad_alloc.
  StatusOr<uint32_t> FreePlace() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Puts a segment into the free place `segment->index`; it takes space from now on.
  void Put(std::shared_ptr<LogSegment> segment) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Frees the segment's place and returns the segment. Its file still takes space.
  std::shared_ptr<LogSegment> Take(uint32_t index) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // kResourceExhausted: the message says how full the log is.
  Status NoSpace() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);

  // ---- living records ----

  // Adds a row that was written to a slot; a checkpoint under way may have it.
  void AddRecord(LogSegment* segment, uint32_t slot, const RowToLog& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Marks the record at a location dead: its row has another one, or is gone. MarkDead takes the
  // lock.
  void MarkDead(Location location);
  void MarkDeadLocked(Location location) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Notes that the segment's footer is written. Its taken_bytes do not change any more.
  void Finish(LogSegment* segment) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsDead(const LogSegment& segment) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);

  // ---- checkpoints ----

  // The checkpoint under way; 0: there is none.
  uint32_t frozen_checkpoint() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_) {
    return frozen_checkpoint_;
  }
  void SetFrozenCheckpoint(uint32_t checkpoint) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    frozen_checkpoint_ = checkpoint;
  }
  // Notes that no older checkpoint is kept any more. Returns whether the oldest kept one has
  // changed.
  bool SetOldestKept(uint32_t checkpoint) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether a kept checkpoint, or the one under way, has rows of the segment.
  bool IsKept(const LogSegment& segment) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);

  // ---- counts ----

  // Sets the next number of segments. next_segment_id takes the lock.
  uint64_t next_segment_id() const;
  uint64_t next_segment_id_locked() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_) {
    return next_segment_id_;
  }
  // The names of all segments that have a place. Takes the lock. Throws std::bad_alloc.
  std::set<std::string> Names() const;
  // The number of living records. Takes the lock.
  uint64_t live_rows() const;

 private:
  const RowLogOptions& options_;
  mutable Mutex mutex_;
  SpaceFigures figures_;
  // Declared before the parts that return memory to it. Segments take space until their files are
  // gone.
  SpaceAccounts accounts_ EMBANK_GUARDED_BY(mutex_);
  std::vector<std::shared_ptr<LogSegment>> segments_ EMBANK_GUARDED_BY(mutex_);
  uint32_t taken_places_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t next_segment_id_ EMBANK_GUARDED_BY(mutex_);
  uint32_t frozen_checkpoint_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint32_t oldest_kept_ EMBANK_GUARDED_BY(mutex_) = 1;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_SEGMENTS_H_
