// Rows on an SSD: a log of segments (docs/file_formats.md). Knows records and where they stand,
// never keys' homes.
//
//   stream, row class -> its open segment:  | written ............ | buffer being filled | free |
//
// A record can be read as soon as it is appended: from its buffer until that is written, from the
// file afterwards. Full buffers are written aside; who finds no buffer to fill writes one itself,
// so that the queue is bounded and nothing in it is ever dropped. A buffer that cannot be written
// stays, and its records with it; the log then takes no more. Thread-safe.
#ifndef EMBANK_TIERS_LOG_ROW_LOG_H_
#define EMBANK_TIERS_LOG_ROW_LOG_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/memory/aligned_buffer.h"
#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "tiers/log/log_buffer.h"
#include "tiers/log/log_read_list.h"
#include "tiers/log/log_report.h"
#include "tiers/log/row_log_options.h"
#include "tiers/log/told_owners.h"
#include "tiers/segment/log_segment.h"
#include "tiers/space/compaction_pace.h"
#include "tiers/space/log_memory.h"
#include "tiers/space/log_room.h"

namespace embank {

class RowLog {
 public:
  using Visit = FunctionRef<void(size_t, const Status&, std::span<const std::byte>)>;

  // Without a segment, whatever the directory has. files, source, budget and executor outlive it.
  // kInvalidArgument: ssd_bytes holds no segment. kResourceExhausted; statuses of the files.
  static StatusOr<std::unique_ptr<RowLog>> Create(FileSystem* files, MemorySource* source,
                                                  MemoryBudget* budget, Executor* executor,
                                                  RowLogOptions options);
  // Makes nothing durable. Waits for writes under way.
  ~RowLog();
  RowLog(const RowLog&) = delete;
  RowLog& operator=(const RowLog&) = delete;

  // Takes a copy of a row, which counts as live from now on; says where it is. May write a buffer.
  // kResourceExhausted: no space for a further segment (none where room was taken), or no memory;
  // other statuses are those of the files (base/files/file_system.h). Then nothing was changed.
  StatusOr<Location> Append(LogStream stream, const RowToLog& row);
  // As many of the rows, one after the other, as can be taken; how many, in *count, and where they
  // are. Not all: why.
  Status AppendAll(LogStream stream, std::span<const RowToLog> rows, std::span<Location> homes,
                   size_t* count);

  // Calls visit(i, status, record) for each of the locations, in order of place: the whole record,
  // or kDataLoss (it is damaged, or there is none) or kUnavailable (the device fails). Reads what
  // is not in buffers as few lists of transfers, sorted by place, equal blocks once, and with them
  // up to `bridged_bytes` that lie between two of them. ahead(i) comes some visits before visit(i),
  // for what its cache will miss. kResourceExhausted: no memory; none was visited.
  Status Read(
      std::span<const Location> locations, Visit visit, uint64_t bridged_bytes = 0,
      FunctionRef<void(size_t)> ahead = [](size_t) {});

  // Reads one record into `scratch`, for whoever holds locks: it waits for no other reader.
  // Statuses as those of Read's visits.
  StatusOr<std::span<const std::byte>> ReadOne(Location location, RecordScratch* scratch);

  // Whose the record at a location is, which cannot be read: as its segment says. Reads its footer
  // piece by piece into `scratch`, unless it was asked before. False: nobody knows.
  bool OwnerOf(Location location, RecordScratch* scratch, SlotOwner* owner);

  // Calls visit(location, table, key) for the records of a row class that were written before, dead
  // ones too where others of their segment live: whose they are, as segments say. The first
  // status of those that cannot be read, the others being visited; kResourceExhausted.
  using VisitOwner = FunctionRef<void(Location, TableId, Key)>;
  Status VisitOwners(uint32_t row_class, VisitOwner visit);

  // The segment of a location at which a row lives: while somebody has it, none takes its place.
  std::shared_ptr<const LogSegment> Hold(Location location) const;
  // Whose its slots are, in *memory, which `budget` pays for: as its footer says or its records do;
  // kNoTable: nobody knows. Statuses of the files, if nothing tells; kResourceExhausted.
  Status OwnersOf(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                  SegmentFooter* owners);

  // The row at a location has another one, or is gone.
  void MarkDead(Location location);

  // ---- room: what is dirty can always be written (tiers/space/log_room.h) ----

  // Rows of a class may be dirty from now on. kResourceExhausted: dram_bytes has no memory for its
  // segments; nothing was changed. std::bad_alloc leaves it.
  Status AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets = false);
  uint64_t segment_bytes() const { return options_.segment_bytes; }
  // Bytes of dram_bytes that the log wants to find free. Thread-safe.
  uint64_t slack_bytes() const { return slack_bytes_.load(std::memory_order_relaxed); }
  // How many bytes of rows, in memory or not, are too many where a class forgets.
  uint64_t BytesToForget() const { return bytes_to_forget_.load(std::memory_order_relaxed); }
  // Whether it takes no more rows, after a write that failed.
  bool has_stopped() const { return has_stopped_.load(std::memory_order_relaxed); }
  // For up to `rows` rows that will be dirty; for how many there was room. GiveRoom: fewer are.
  uint64_t TakeRoom(uint32_t row_class, uint64_t rows);
  void GiveRoom(uint32_t row_class, uint64_t rows);
  // The row at a location will change in memory: takes room, the record is dead. False: no room.
  bool TakeRoomAndMarkDead(Location location);
  // Whether TakeRoom would give so much; cheap where there is plenty.
  bool HasRoom(uint32_t row_class, uint32_t record_bytes, uint64_t rows);
  bool IsNearFull() const;  // less than an eighth of ssd_bytes is spare; without a lock
  // Keeps so many bytes for manifests and heat, instead of what was kept. False: that is more, and
  // there is no room; nothing was changed, unless `must`.
  bool SetAside(uint64_t bytes, bool must);
  // Why rows may have been refused.
  std::string WhyRefused() const;

  // ---- compaction: by one thread at a time ----

  // Rows to be moved for each CompactionPace::kChangedRows that change.
  uint32_t pace() const { return pace_now_.load(std::memory_order_relaxed); }
  // The finished segment out of which rows are best moved, by benefit over cost (Rosenblum and
  // Ousterhout, LFS, section 3.5): (1 - u) * age / (1 + u), of u living; nullptr: none is worth
  // it. It stays until Release.
  // kSpace: whatever the pace, of those that no checkpoint has; kLaterSpace: of all, if space is
  // short, with what is else left to compaction. kForget: the oldest with rows that are forgotten.
  std::shared_ptr<LogSegment> PickVictim(CompactionAim aim);
  // Where records of it live from slot *slot on; how many, and *slot behind them. Fewer than fit:
  // these are the last.
  size_t LiveOf(const LogSegment& segment, uint32_t* slot, std::span<Location> live) const;
  // Of the victim records are damaged: it is not picked again; or the device does not read them:
  // not before the next checkpoint that is kept, but to forget, when the hand comes round earlier.
  void PassOver(LogSegment* segment, bool is_damaged);
  // is_done: all of it was looked at. What is left of one whose rows were to be forgotten has to
  // wait for the others' turn.
  void Release(std::shared_ptr<LogSegment> victim, bool is_done);

  // ---- checkpoints: one at a time; their numbers grow ----

  // What is live now belongs to a checkpoint, and rows that are appended later whose
  // RowToLog::checkpoint is no later.
  void Freeze(uint32_t checkpoint);
  // Makes all that belongs to it durable, and says what it is, when nothing is appended for it any
  // more. The status that stopped the log; kResourceExhausted.
  StatusOr<std::vector<SegmentRows>> SyncFrozen();
  // Ends it. Kept: its segments stay until Forget.
  void Thaw(bool is_kept);
  // Waits until a sweep can append without standing in others' way: half of the buffers are free,
  // or the log has stopped. Not under locks of shards.
  void WaitForCalm();
  // No checkpoint older than that is kept any more.
  void Forget(uint32_t oldest_kept);

  // Takes a segment over that the store had before, for a kept checkpoint: what it has of it is
  // live, if `visit` is given, and visited as VisitOwners does. Of a segment that was taken over
  // before only the checkpoint counts. What a damaged footer said its records tell. kDataLoss: the
  // segment is not there, not itself, or damaged so that this does not help, with its name;
  // kFailedPrecondition: it is of a newer format; kResourceExhausted; statuses of the files: then
  // it is not taken over. Thread-safe, before anything else.
  Status Adopt(const SegmentRows& rows, uint32_t checkpoint, const VisitOwner* visit);

  // Where names of segments and of records go on; the name of a segment's file.
  uint64_t next_segment_id() const;
  uint64_t next_sequence() const;
  static std::string SegmentName(uint64_t segment_id);

  // Writes all that was appended before; Sync also makes it durable. The status that stopped the
  // log, if one did; after an error of Sync nobody knows what is durable.
  Status Flush();
  Status Sync();

  // Records that live; segments that have any or are kept.
  uint64_t live_rows() const;
  uint64_t segment_count() const;
  LogSpace Space() const;
  const RowLogCounters& counters() const { return counters_; }

 private:
  struct OpenSegment;
  using SegmentIndex = uint32_t;
  static SegmentIndex IndexOf(Location location) { return SegmentIndexOf(location); }
  static uint64_t OffsetOf(Location location) { return SegmentOffsetOf(location); }
  static Location LocationOf(const LogSegment& segment, uint32_t slot) {
    return LocationInSegment(segment.index, segment.geometry.OffsetOf(slot));
  }
  RowLog(FileSystem* files, MemorySource* source, MemoryBudget* budget, RowLogOptions options);
  Status Init(Executor* executor);

  Status AppendLocked(LogStream stream, const RowToLog& row, Location* home)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  OpenSegment* OpenOf(LogStream stream, uint32_t row_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status MakeRoom(OpenSegment* open, const RowToLog& row) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Location Put(OpenSegment* open, const RowToLog& row) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<std::shared_ptr<LogSegment>> MakeSegment(LogStream stream, const RowToLog& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status AddSegment(OpenSegment* open, std::shared_ptr<LogSegment> segment)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool FreeMemory(const OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  StatusOr<SegmentIndex> FreeIndex() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status Outfit(LogSegment* segment, LogStream stream, bool with_slots)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t CountSegments() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  Status NoRoom() const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<LogSegment> OldestToForget() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsFull(LogStream stream) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsKept(const LogSegment& segment) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  bool FreeMore() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t TakeRoomLocked(uint32_t row_class, uint64_t rows)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteOpenSlots(const OpenSegment& open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MarkDeadLocked(Location location) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteSpare() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NoteRows(int64_t live_bytes) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void BeginBuffer(OpenSegment* open, LogBuffer* buffer) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LeaveBlock(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool MayWrite(const LogBuffer& buffer) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  bool IsDead(const LogSegment& segment) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  void PartFromDeadSegments() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool RemoveOne() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOver(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverPart(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void HandOverFullest() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndSegment(OpenSegment* open) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  LogBuffer* TakeFreeBuffer() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool IsAnyBuffer(LogBuffer::State state) const EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  bool WriteOne() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool WriteFooter() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool SyncOne() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fail(const Status& status) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  size_t Plan(std::span<const ReadOrder> order, uint64_t bridged_bytes, LogReadList* list);
  const std::byte* FindBuffered(const LogSegment* segment, uint64_t offset, uint32_t bytes) const
      EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  std::shared_ptr<LogSegment> Locate(Location location, LogReadItem* item) const
      EMBANK_SHARED_LOCKS_REQUIRED(mutex_);
  Status ReadFooter(const LogSegment& segment, MemoryBudget* budget, AlignedBuffer* memory,
                    SegmentFooter* footer);
  Status OwnersOfRecords(const LogSegment& segment, AlignedBuffer* memory, SegmentFooter* footer);
  StatusOr<std::shared_ptr<LogSegment>> TakeIn(const SegmentRows& rows, uint32_t checkpoint);
  Status AdoptSegment(LogSegment* segment, const SegmentRows& rows, const VisitOwner* visit);
  Status CheckFile(LogSegment* segment);
  Status AdoptOwners(LogSegment* segment, const SegmentRows& rows, AlignedBuffer* memory,
                     SegmentFooter* owners);
  void Finish(LogSegment* segment) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountDead(const LogSegment& segment) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void NotePace() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void SayFrozen(LogSegment* segment, std::vector<SegmentRows>* all)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::unique_ptr<LogReadList> TakeReadList();
  void GiveBack(std::unique_ptr<LogReadList> list);
  FileSystem* const files_;
  MemorySource* const source_;
  MemoryBudget* const budget_;
  const RowLogOptions options_;
  RowLogCounters counters_;
  // One Sync after the other: what one is about to sync the other must not take for durable.
  Mutex sync_mutex_;  // taken before mutex_
  mutable Mutex mutex_;
  ConditionVariable buffer_written_;
  ConditionVariable segment_removed_;
  LogMemory memory_ EMBANK_GUARDED_BY(mutex_);  // before what gives memory back to it
  std::atomic<uint64_t> slack_bytes_{0};
  std::vector<std::shared_ptr<LogSegment>> segments_ EMBANK_GUARDED_BY(mutex_);  // nullptr: free
  uint64_t next_segment_id_ EMBANK_GUARDED_BY(mutex_);
  uint64_t next_sequence_ EMBANK_GUARDED_BY(mutex_);
  uint32_t frozen_checkpoint_ EMBANK_GUARDED_BY(mutex_) = 0;  // 0: none is under way
  uint32_t oldest_kept_ EMBANK_GUARDED_BY(mutex_) = 1;
  std::vector<std::unique_ptr<OpenSegment>> open_ EMBANK_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<LogBuffer>> buffers_ EMBANK_GUARDED_BY(mutex_);  // all of them
  std::vector<std::shared_ptr<LogSegment>> ended_
      EMBANK_GUARDED_BY(mutex_);  // footers to be written
  std::vector<std::shared_ptr<LogSegment>> dead_ EMBANK_GUARDED_BY(mutex_);  // files to be removed
  uint64_t removals_under_way_ EMBANK_GUARDED_BY(mutex_) = 0;
  LogRoom room_ EMBANK_GUARDED_BY(mutex_);  // segments take space until their files are gone
  std::atomic<int64_t> spare_segments_;     // as room_ has it
  std::atomic<uint64_t> bytes_to_forget_{0};
  std::atomic<bool> has_stopped_{false};
  const LogSegment* victim_ EMBANK_GUARDED_BY(mutex_) = nullptr;
  CompactionAim victim_aim_ EMBANK_GUARDED_BY(mutex_) = CompactionAim::kPace;
  uint64_t forget_hand_ EMBANK_GUARDED_BY(mutex_) = 0;  // the last segment that was done with
  uint64_t turns_since_unread_ EMBANK_GUARDED_BY(mutex_) = 0;  // 0: the hand has left none unread
  uint32_t ends_under_way_ EMBANK_GUARDED_BY(mutex_) = 0;      // footers written, and synced
  std::vector<std::weak_ptr<LogSegment>> unsynced_ EMBANK_GUARDED_BY(mutex_);  // and finished
  CompactionPace pace_ EMBANK_GUARDED_BY(mutex_);
  std::atomic<uint32_t> pace_now_{0};  // as pace_ has it
  uint64_t next_turn_ EMBANK_GUARDED_BY(mutex_) = 1;
  AlignedBuffer header_block_ EMBANK_GUARDED_BY(mutex_);
  Status failure_ EMBANK_GUARDED_BY(mutex_);  // what stopped the log
  ToldOwners told_owners_;
  Mutex read_mutex_;
  ConditionVariable read_list_free_;
  std::vector<std::unique_ptr<LogReadList>> idle_read_lists_ EMBANK_GUARDED_BY(read_mutex_);
  std::unique_ptr<BackgroundTask> writer_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_ROW_LOG_H_
