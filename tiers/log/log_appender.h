// The end of a log, where records are appended: an open segment for each stream and row class.
//
//   stream, row class -> its open segment:  | written ............ | buffer being filled | free |
//
// A record can be read as soon as it is appended: from its buffer until that is written, from the
// file afterwards.
#ifndef EMBANK_TIERS_LOG_LOG_APPENDER_H_
#define EMBANK_TIERS_LOG_LOG_APPENDER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "tiers/log/compaction_candidates.h"
#include "tiers/log/dead_segments.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"
#include "tiers/log/open_segment.h"
#include "tiers/log/row_log_options.h"

namespace embank {

// Thread-safe.
class LogAppender {
 public:
  // All of them outlive it.
  LogAppender(LogSegments& segments, DeadSegments& dead, LogWriter& writer,
              const CompactionCandidates& candidates, const RowLogOptions& options,
              RowLogCounters& counters);
  // kResourceExhausted.
  Status Init(MemorySource* source, MemoryBudget* budget);

  // Appends a copy of a row, which counts as living from now on; returns its location. May write a
  // buffer. After an error nothing was changed.
  // kResourceExhausted: there is no space for a further segment (never if space was reserved), or
  // no memory.
  // The statuses of files (base/files/file_system.h).
  StatusOr<Location> Append(LogStream stream, const RowToLog& row);
  // Appends as many of the rows as it can, one after the other: *count of them, to `locations`. If
  // these are not all, returns the status of the next.
  Status AppendAll(LogStream stream, std::span<const RowToLog> rows, std::span<Location> locations,
                   size_t* count);

  // Flush writes everything that was appended before; Sync also makes it durable. They return the
  // status that stopped the log, if one did. After an error of Sync it is unknown what is durable.
  Status Flush();
  Status Sync();

  // Sets the next number of records.
  uint64_t next_sequence() const;

 private:
  Status AppendLocked(LogStream stream, const RowToLog& row, Location* location)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  OpenSegment* OpenOf(LogStream stream, uint32_t row_class)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  Status MakeSlot(OpenSegment* open, const RowToLog& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool IsFull(LogStream stream) const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex());
  StatusOr<bool> BeginSegment(OpenSegment* open, const RowToLog& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  Status MakeOneFile(LogSegment* segment, uint64_t step_bytes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  Status MakeFile(LogSegment* segment, uint64_t step_bytes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool FreeMemory(const OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool TakeBuffers(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  LogBuffer* TakeFreeBuffer() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void BeginBuffer(OpenSegment* open, LogBuffer* buffer)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  Location Put(OpenSegment* open, const RowToLog& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  std::span<std::byte> WriteRecord(const OpenSegment& open, const RowToLog& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void NoteOpenSlots(const OpenSegment& open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void QueueBuffer(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void QueuePart(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void QueueFullest() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void SkipBlock(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void EndSegment(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());

  LogSegments& segments_;
  DeadSegments& dead_;
  LogWriter& writer_;
  const CompactionCandidates& candidates_;
  const RowLogOptions& options_;
  RowLogCounters& counters_;
  // One Sync runs after the other: a segment that one is about to sync must not count as durable
  // for the other. Taken before the log's lock.
  Mutex sync_mutex_;
  std::vector<std::unique_ptr<OpenSegment>> open_ EMBANK_GUARDED_BY(segments_.mutex());
  uint64_t next_sequence_ EMBANK_GUARDED_BY(segments_.mutex());
  AlignedBuffer header_block_ EMBANK_GUARDED_BY(segments_.mutex());
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_APPENDER_H_
