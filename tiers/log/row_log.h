// The log of a medium (docs/file_formats.md): the composition root of tiers/log. It makes the parts
// of the log and hands them out; it does nothing by itself. The medium is a directory of files.
//
//   checkpoints    recovery
//        |            |
//     appender      owners
//        |            |
//    candidates     reader     space
//            \        |        /
//             `---- writer ---'
//                     |
//               dead segments
//                     |
//                 segments        with the lock of all parts
#ifndef EMBANK_TIERS_LOG_ROW_LOG_H_
#define EMBANK_TIERS_LOG_ROW_LOG_H_

#include <memory>

#include "base/files/file_system.h"
#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/executor.h"
#include "tiers/log/compaction_candidates.h"
#include "tiers/log/dead_segments.h"
#include "tiers/log/log_appender.h"
#include "tiers/log/log_checkpoints.h"
#include "tiers/log/log_owners.h"
#include "tiers/log/log_reader.h"
#include "tiers/log/log_recovery.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"
#include "tiers/log/row_log_options.h"
#include "tiers/log/space_reservations.h"

namespace embank {

class RowLog {
 public:
  // Makes a log without segments, whatever the directory has. files, source, budget and executor
  // outlive it. kInvalidArgument: ssd_bytes holds no segment. kResourceExhausted; statuses of the
  // files.
  static StatusOr<std::unique_ptr<RowLog>> Create(FileSystem* files, MemorySource* source,
                                                  MemoryBudget* budget, Executor* executor,
                                                  RowLogOptions options);
  // Makes nothing durable. Waits for writes under way.
  ~RowLog();
  RowLog(const RowLog&) = delete;
  RowLog& operator=(const RowLog&) = delete;

  const RowLogOptions& options() const { return options_; }
  const RowLogCounters& counters() const { return counters_; }

  LogSegments& segments() { return segments_; }
  const LogSegments& segments() const { return segments_; }
  LogWriter& writer() { return writer_; }
  LogAppender& appender() { return appender_; }
  LogReader& reader() { return reader_; }
  LogOwners& owners() { return owners_; }
  SpaceReservations& space() { return space_; }
  const SpaceReservations& space() const { return space_; }
  CompactionCandidates& candidates() { return candidates_; }
  LogCheckpoints& checkpoints() { return checkpoints_; }
  LogRecovery& recovery() { return recovery_; }

 private:
  RowLog(FileSystem* files, MemorySource* source, MemoryBudget* budget, RowLogOptions options);

  const RowLogOptions options_;
  RowLogCounters counters_;
  LogSegments segments_;
  DeadSegments dead_;
  LogWriter writer_;
  CompactionCandidates candidates_;
  LogAppender appender_;
  LogReader reader_;
  LogOwners owners_;
  SpaceReservations space_;
  LogCheckpoints checkpoints_;
  LogRecovery recovery_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_ROW_LOG_H_
