// The part of a log that checkpoints keep: the rows of the checkpoint under way, and the segments
// that stay for older ones.
//
//   Freeze ... rows change, records are appended ... SyncFrozen ... Thaw ......... ReleaseOlderThan
//     | the rows of this moment are the checkpoint's | durable     | kept: its segments stay |
#ifndef EMBANK_TIERS_LOG_LOG_CHECKPOINTS_H_
#define EMBANK_TIERS_LOG_LOG_CHECKPOINTS_H_

#include <cstdint>
#include <vector>

#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "tiers/log/dead_segments.h"
#include "tiers/log/log_appender.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"

namespace embank {

// For one checkpoint at a time; their numbers grow. Its functions take the log's lock.
class LogCheckpoints {
 public:
  // All of them outlive it.
  LogCheckpoints(LogSegments& segments, DeadSegments& dead, LogWriter& writer,
                 LogAppender& appender)
      : segments_(segments), dead_(dead), writer_(writer), appender_(appender) {}

  // Freezes the log for a checkpoint. Living rows belong to it, and rows that are appended later
  // with the same or an earlier RowToLog::checkpoint.
  void Freeze(uint32_t checkpoint);
  // Makes all rows of the checkpoint durable and lists them, when nothing is appended for it any
  // more. The status that stopped the log; kResourceExhausted.
  StatusOr<std::vector<SegmentRows>> SyncFrozen();
  // Lists the rows of the checkpoint in a log that has stopped, of which a lower log has the rest.
  // *lost_rows: the number of rows of a lost log that are in no log any more. The status that
  // stopped the log: some rows are not durable.
  StatusOr<std::vector<SegmentRows>> ListDurable(uint64_t* lost_rows);
  // Ends the checkpoint. is_kept: its segments stay until ReleaseOlderThan a later one.
  void Thaw(bool is_kept);
  // Releases checkpoints older than this one: segments that only those had are dead.
  void ReleaseOlderThan(uint32_t oldest_kept);

 private:
  void AddFrozen(LogSegment* segment, std::vector<SegmentRows>* all) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());

  LogSegments& segments_;
  DeadSegments& dead_;
  LogWriter& writer_;
  LogAppender& appender_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_CHECKPOINTS_H_
