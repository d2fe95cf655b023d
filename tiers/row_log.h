// Rows on an SSD: a log of segments (docs/file_formats.md). Knows records and where they stand,
// never keys' homes.
//
//   stream, row class -> its open segment:  | written ............ | buffer being filled | free |
//
// A record can be read as soon as it is appended: from its buffer until that is written, from the
// file afterwards. Full buffers are written aside; who finds no buffer to fill writes one itself,
// so that the queue is bounded and nothing in it is ever dropped. A buffer that cannot be written
// stays, and its records with it; the log then takes no more.
#ifndef EMBANK_TIERS_ROW_LOG_H_
#define EMBANK_TIERS_ROW_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/aligned_buffer.h"
#include "base/executor.h"
#include "base/file_system.h"
#include "base/mutex.h"
#include "tiers/location.h"
#include "tiers/log_buffer.h"
#include "tiers/log_read_list.h"
#include "tiers/log_record.h"
#include "tiers/log_segment.h"

namespace embank {

// Records that will live about equally long share segments.
enum class LogStream : uint32_t { kUser, kCompaction };

struct RowLogOptions {
  std::string directory;  // exists
  uint64_t store_id = 0;
  uint64_t segment_bytes = uint64_t{64} << 20;  // whole blocks, at most 64 MiB
  uint64_t buffer_bytes = uint64_t{1} << 20;    // whole blocks, no less than a record
  uint32_t buffers = 16;                        // at least 2
  uint64_t read_bytes = uint64_t{4} << 20;      // of one list of reads
  uint32_t read_lists = 8;                      // threads that can read at once
  uint64_t ssd_bytes = 0;                       // all segments together; 0: no limit
};

// A row on its way into the log.
struct RowToLog {
  uint16_t row_class;
  uint32_t record_bytes;
  TableId table;
  Key key;
  uint32_t heat;
  uint32_t checkpoint;
  std::span<const std::byte> payload;  // vector and state; may end before the record does
};

// Monotonic.
struct RowLogCounters {
  std::atomic<uint64_t> appended_rows{0};
  std::atomic<uint64_t> written_bytes{0};
  std::atomic<uint64_t> reads{0};  // transfers from the device
  std::atomic<uint64_t> read_bytes{0};
  std::atomic<uint64_t> buffered_reads{0};  // records that were not on the device yet
  std::atomic<uint64_t> dead_segments{0};   // given up: their places may be others' now
};

// Room for any record as it is read: whole blocks, aligned to them.
inline constexpr uint64_t kRecordScratchBytes = RoundUp(kRecordBytesMax, kBlockBytes) + kBlockBytes;
struct RecordScratch {
  alignas(kBlockBytes) std::byte bytes[kRecordScratchBytes];
};

// Thread-safe.
class RowLog {
 public:
  using Visit = absl::FunctionRef<void(size_t, const absl::Status&, std::span<const std::byte>)>;

  // files, source, budget and executor must outlive it. kInvalidArgument: ssd_bytes holds no
  // segment. kFailedPrecondition: the directory has segments. kResourceExhausted; and the statuses
  // of the files.
  static absl::StatusOr<std::unique_ptr<RowLog>> Create(FileSystem* files, MemorySource* source,
                                                        MemoryBudget* budget, Executor* executor,
                                                        RowLogOptions options);
  // Makes nothing durable. Waits for writes under way.
  ~RowLog();
  RowLog(const RowLog&) = delete;
  RowLog& operator=(const RowLog&) = delete;

  // Takes a copy of a row, which counts as live from now on; says where it is. May write a buffer.
  // kResourceExhausted: no space for a further segment, or no memory; other statuses are those of
  // the files (base/file_system.h). Then nothing was changed.
  absl::StatusOr<Location> Append(LogStream stream, const RowToLog& row);

  // Calls visit(i, status, record) for each of the locations, in any order: the whole record, or
  // kDataLoss (it is damaged, or there is none) or kUnavailable (the device fails). Reads what is
  // not in buffers as few lists of transfers, sorted by place, equal blocks once.
  // kResourceExhausted: no memory; some may have been visited.
  absl::Status Read(std::span<const Location> locations, Visit visit);

  // Reads one record into `scratch`, for whoever holds locks: it waits for no other reader.
  // Statuses as those of Read's visits.
  absl::StatusOr<std::span<const std::byte>> ReadOne(Location location, RecordScratch* scratch);

  // The row at a location has another one, or is gone.
  void MarkDead(Location location);

  // Writes all that was appended before. The status that stopped the log, if one did.
  absl::Status Flush();
  // Flushes, and makes it durable. After an error nobody knows what is.
  absl::Status Sync();

  // Records that are not dead, and segments that take space.
  uint64_t live_rows() const;
  uint64_t segment_count() const;
  const RowLogCounters& counters() const { return counters_; }

 private:
  struct OpenSegment;
  using SegmentIndex = uint32_t;
  // 2^16 segments of at most 2^22 units of 16 bytes.
  static constexpr uint32_t kOffsetBits = 22;
  static constexpr uint32_t kSegmentsMax = 1u << (kLocationBits - kOffsetBits);

  static SegmentIndex IndexOf(Location location) {
    return static_cast<SegmentIndex>(location.units >> kOffsetBits) % kSegmentsMax;
  }
  static uint64_t OffsetOf(Location location) {
    return (location.units & ((1u << kOffsetBits) - 1)) * kLocationUnitBytes;
  }

  RowLog(FileSystem* files, MemorySource* source, MemoryBudget* budget, RowLogOptions options);
  absl::Status Init(Executor* executor);

  absl::StatusOr<Location> AppendLocked(LogStream stream, const RowToLog& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  OpenSegment* OpenOf(LogStream stream, uint32_t row_class) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status MakeRoom(OpenSegment* open, const RowToLog& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Location Put(OpenSegment* open, const RowToLog& row) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status AddSegment(OpenSegment* open, const RowToLog& row)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t CountSegments() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsFull() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  void PartFromDeadSegments() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RemoveOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOver(OpenSegment* open) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverPart(OpenSegment* open) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverFullest() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSegment(OpenSegment* open) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LogBuffer* TakeFreeBuffer() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAnyBuffer(LogBuffer::State state) const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  bool WriteOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteFooter() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  struct ReadOrder {
    uint64_t units;
    size_t i;
  };
  size_t Plan(std::span<const ReadOrder> order, LogReadList* list);
  const std::byte* FindBuffered(const LogSegment* segment, uint64_t offset, uint32_t bytes) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<LogSegment> Locate(Location location, LogReadItem* item) const
      ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<LogReadList> TakeReadList();
  void GiveBack(std::unique_ptr<LogReadList> list);

  FileSystem* const files_;
  MemorySource* const source_;
  MemoryBudget* const budget_;
  const RowLogOptions options_;
  RowLogCounters counters_;

  mutable Mutex mutex_;
  ConditionVariable buffer_written_;
  std::vector<std::shared_ptr<LogSegment>> segments_
      ABSL_GUARDED_BY(mutex_);  // nullptr: a free index
  uint64_t next_segment_id_ ABSL_GUARDED_BY(mutex_) = 1;
  uint64_t next_sequence_ ABSL_GUARDED_BY(mutex_) = 1;
  std::vector<std::unique_ptr<OpenSegment>> open_ ABSL_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<LogBuffer>> buffers_ ABSL_GUARDED_BY(mutex_);  // all of them
  std::vector<std::shared_ptr<LogSegment>> ended_ ABSL_GUARDED_BY(mutex_);  // footers to be written
  std::vector<std::shared_ptr<LogSegment>> dead_ ABSL_GUARDED_BY(mutex_);   // files to be removed
  // Whose files are being removed, or cannot be.
  uint64_t removed_segments_ ABSL_GUARDED_BY(mutex_) = 0;
  uint32_t footers_under_way_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_turn_ ABSL_GUARDED_BY(mutex_) = 1;
  AlignedBuffer header_block_ ABSL_GUARDED_BY(mutex_);
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // what stopped the log

  Mutex read_mutex_;
  ConditionVariable read_list_free_;
  std::vector<std::unique_ptr<LogReadList>> idle_read_lists_ ABSL_GUARDED_BY(read_mutex_);

  std::unique_ptr<BackgroundTask> writer_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_LOG_H_
