// The writes of a log that are under way: buffers and footers to be written, finished segments to
// be made durable, files of dead segments to be removed.
//
// A background task writes full buffers. A thread that finds no buffer to fill writes one itself,
// so that the queue is bounded and nothing in it is ever dropped. A buffer that cannot be written
// stays, and its records with it; the log then takes no more rows. In PMem a segment whose footer
// cannot be written keeps its owners in memory, and the log goes on.
#ifndef EMBANK_TIERS_LOG_LOG_WRITER_H_
#define EMBANK_TIERS_LOG_LOG_WRITER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/files/file_system.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "tiers/log/dead_segments.h"
#include "tiers/log/log_buffers.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/row_log_options.h"

namespace embank {

// Functions that require the log's lock, and whose contract says that they write or wait, release
// it meanwhile.
class LogWriter {
 public:
  // All of them outlive it. A read-only log has stopped from the beginning.
  LogWriter(LogSegments& segments, DeadSegments& dead, FileSystem* files,
            const RowLogOptions& options, RowLogCounters& counters);

  // Makes the buffers, and the task that writes. kResourceExhausted.
  Status Init(MemorySource* source, MemoryBudget* budget, Executor* executor);
  // Ends the task. Waits for writes under way, and removes the files of dead segments: nothing else
  // does before the next opening.
  void Stop();
  // Wakes the task: there is work. Not under the log's lock.
  void Wake() { task_->Wake(); }
  // For clang, which does not see that the parts of a log share one lock.
  void AssertHeld() const EMBANK_ASSERT_EXCLUSIVE_LOCK(segments_.mutex()) {
    segments_.mutex()->AssertHeld();
  }
  void AssertReaderHeld() const EMBANK_ASSERT_SHARED_LOCK(segments_.mutex()) {
    segments_.mutex()->AssertReaderHeld();
  }

  // The files of the log are gone, though rows in them can still be read: it takes no more rows,
  // and none of its rows counts as durable. Takes the log's lock.
  void Lose(const Status& why);
  // Whether Lose was called. Thread-safe.
  bool is_lost() const { return is_lost_.load(std::memory_order_relaxed); }
  // Whether a write has failed, so that the log takes no more rows. Thread-safe.
  bool has_stopped() const { return has_stopped_.load(std::memory_order_relaxed); }
  // The status with which the log stopped; OK: it has not.
  const Status& failure() const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex()) { return failure_; }

  // Its buffers, which appenders fill.
  LogBuffers& buffers() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex()) { return buffers_; }
  const LogBuffers& buffers() const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex()) {
    return buffers_;
  }
  // Queues the footer of a segment that takes no more records. It takes a turn of the buffers.
  void QueueFooter(std::shared_ptr<LogSegment> segment)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  // Makes sure that no footer fails to be queued in a log with so many places. Throws
  // std::bad_alloc.
  void ReserveLists(size_t places) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());

  // Whether all rows of a segment are durable in a checkpoint, and its name: a later failure of the
  // log costs none of them.
  bool IsDurable(const LogSegment& segment) const EMBANK_SHARED_LOCKS_REQUIRED(segments_.mutex()) {
    return !is_lost() && !segment.unsynced && segment.newest_checkpoint != 0 &&
           !buffers_.HasPartOf(&segment);
  }

  // ---- writing ----

  // Writes one buffer or footer, or waits for a buffer that is being written. False: all buffers
  // are being filled, or the log has stopped.
  bool WriteOneOrWait() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  // Writes one footer, or waits for one. False: there is none, there is no memory for one, or the
  // log has stopped.
  bool WriteFooterOrWait() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  // Writes everything that was queued before. The status that stopped the log; kResourceExhausted.
  Status WriteAll() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  // Makes everything that was written before durable. The status that stopped the log; after an
  // error it is unknown what is durable. Takes the log's lock. One call at a time.
  Status SyncWritten();
  // Waits until a checkpoint's flush pass can append without delaying batches: half of the buffers
  // are free, or the log has stopped. Takes the log's lock; not under locks of shards.
  void WaitForFreeBuffers();

 private:
  bool WriteOne() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void WriteBuffer(LogBuffer* buffer) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool WriteFooter() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  bool SyncOne() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());
  void Fail(const Status& status) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(segments_.mutex());

  LogSegments& segments_;
  DeadSegments& dead_;
  FileSystem* const files_;
  const RowLogOptions& options_;
  RowLogCounters& counters_;
  ConditionVariable written_;  // a buffer or footer is written, a segment is durable
  LogBuffers buffers_ EMBANK_GUARDED_BY(segments_.mutex());
  std::vector<std::shared_ptr<LogSegment>> footers_ EMBANK_GUARDED_BY(segments_.mutex());
  std::vector<std::weak_ptr<LogSegment>> unsynced_
      EMBANK_GUARDED_BY(segments_.mutex());                           // and finished
  uint32_t ends_under_way_ EMBANK_GUARDED_BY(segments_.mutex()) = 0;  // footers written, and synced
  Status failure_ EMBANK_GUARDED_BY(segments_.mutex());
  std::atomic<bool> has_stopped_{false};
  std::atomic<bool> is_lost_{false};
  std::unique_ptr<BackgroundTask> task_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_WRITER_H_
