// Reads records of a log: from the buffers that have them, else from the device, in lists of
// transfers.
#ifndef EMBANK_TIERS_LOG_LOG_READER_H_
#define EMBANK_TIERS_LOG_LOG_READER_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "tiers/log/log_report.h"
#include "tiers/log/log_segments.h"
#include "tiers/log/log_writer.h"
#include "tiers/segment/log_read_list.h"

namespace embank {

// Thread-safe.
class LogReader {
 public:
  using Visit = FunctionRef<void(size_t, const Status&, std::span<const std::byte>)>;

  // All of them outlive it.
  LogReader(const LogSegments& segments, const LogWriter& writer, FileSystem* files,
            RowLogCounters& counters)
      : segments_(segments), writer_(writer), files_(files), counters_(counters) {}
  // Makes so many lists of so many bytes: the number of threads that can read at once.
  // kResourceExhausted.
  Status Init(MemorySource* source, MemoryBudget* budget, uint32_t lists, uint64_t list_bytes);

  // Calls visit(i, status, record) for each of the locations, in order of place. The record is
  // whole, or the status is kDataLoss (it is damaged, or there is none), kUnavailable (the device
  // fails) or kResourceExhausted (there is no descriptor for it now). Reads records that are not in
  // buffers in as few lists of transfers as possible, sorted by place, each block once, and with up
  // to `bridged_bytes` between two of them. Calls ahead(i) some visits before visit(i), to prefetch
  // the memory that the visit will touch. kResourceExhausted: no memory; none was visited.
  Status Read(
      std::span<const Location> locations, Visit visit, uint64_t bridged_bytes = 0,
      FunctionRef<void(size_t)> ahead = [](size_t) {});

  // Reads one record into `scratch`, for callers that hold locks: it waits for no other reader. The
  // statuses of Read's visits.
  StatusOr<std::span<const std::byte>> ReadOne(Location location, RecordScratch* scratch);

 private:
  size_t Plan(std::span<const ReadOrder> order, uint64_t bridged_bytes, LogReadList* list);
  static void AddFromFile(const LogReadItem& item, const std::shared_ptr<LogSegment>& segment,
                          uint64_t offset, uint64_t bridged_bytes, LogReadList* list);
  std::unique_ptr<LogReadList> TakeList();
  void Return(std::unique_ptr<LogReadList> list);

  const LogSegments& segments_;
  const LogWriter& writer_;
  FileSystem* const files_;
  RowLogCounters& counters_;
  Mutex lists_mutex_;
  ConditionVariable list_free_;
  std::vector<std::unique_ptr<LogReadList>> idle_lists_ EMBANK_GUARDED_BY(lists_mutex_);
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_LOG_READER_H_
