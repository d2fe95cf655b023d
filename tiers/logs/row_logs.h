// The logs of a store, one for each medium, as one place of rows: a location names the log that has
// its record, and so no caller asks which medium that is.
//
//   a dirty row leaves DRAM  ->  PMem, while it has space to spare  ->  otherwise SSD
//   a cold row leaves PMem   ->  SSD
//
// Space is reserved in the lowest log alone: every dirty row can be written there, whatever the
// others have taken.
#ifndef EMBANK_TIERS_LOGS_ROW_LOGS_H_
#define EMBANK_TIERS_LOGS_ROW_LOGS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tiers/log/row_log.h"

namespace embank {

// Thread-safe.
class RowLogs {
 public:
  // The set of a store in memory only, which has no log: each call does what it does for each log.
  RowLogs() = default;
  // Takes the log of the SSD, and that of PMem; nullptr: there is no PMem.
  explicit RowLogs(std::unique_ptr<RowLog> ssd, std::unique_ptr<RowLog> pmem = nullptr);
  RowLogs(const RowLogs&) = delete;
  RowLogs& operator=(const RowLogs&) = delete;

  // All logs, the highest tier first.
  std::span<RowLog* const> all() const { return {all_.data(), count_}; }
  bool empty() const { return count_ == 0; }
  // The log of the lowest tier, which reserves space. The set is not empty.
  RowLog& lowest() const {
    EMBANK_CHECK(!empty());
    return *all_[count_ - 1];
  }
  // The log of a tier; nullptr: there is none.
  RowLog* OfTier(Tier tier) const { return by_tier_[tier]; }
  RowLog* pmem() const { return OfTier(Tier::kPmem); }
  // The log that has a location.
  RowLog& Of(Location location) const {
    RowLog* const log = OfTier(location.tier());
    EMBANK_CHECK(log != nullptr);
    return *log;
  }

  // Rows of a class may be dirty from now on. PMem demotes them where it is full, whether the class
  // forgets or not. A repeated call completes what failed. Throws std::bad_alloc.
  // kResourceExhausted: dram_bytes has no memory for its segments.
  Status AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets);

  // ---- space for rows that are dirty (tiers/log/space_reservations.h); all, without a log ----

  uint64_t Reserve(uint32_t row_class, uint64_t rows) {
    for (RowLog* const log : reserving()) rows = log->space().Reserve(row_class, rows);
    return rows;
  }
  void Release(uint32_t row_class, uint64_t rows) {
    for (RowLog* const log : reserving()) log->space().Release(row_class, rows);
  }

  // ---- records ----

  // Appends a row to the highest log that has space for it; returns where it is. A dirty row uses
  // its reservation. Statuses as LogAppender::Append's. kResourceExhausted: there is no log.
  StatusOr<Location> Append(const RowToLog& row);
  // Appends as many of the rows, one after the other, as can be taken: *count of them, to
  // locations. If these are not all, returns why.
  Status AppendAll(std::span<const RowToLog> rows, std::span<Location> locations, size_t* count);
  // The row of a class at a location changes in memory: reserves space for it, and its record is
  // dead. False: there is no space, and nothing was changed.
  bool ReserveAndMarkDead(uint32_t row_class, Location location);
  // The row at a location has another record, or is gone.
  void MarkDead(Location location) { Of(location).segments().MarkDead(location); }

  // Calls visit(i, status, record) for each of the locations, each log's in one list. Arguments and
  // statuses as LogReader::Read's, but after an error the locations of one log may be visited.
  Status Read(
      std::span<const Location> locations, LogReader::Visit visit, uint64_t bridged_bytes = 0,
      FunctionRef<void(size_t)> ahead = [](size_t) {});
  // Reads one record into `scratch`. Statuses as LogReader::ReadOne's.
  StatusOr<std::span<const std::byte>> ReadOne(Location location, RecordScratch* scratch) {
    return Of(location).reader().ReadOne(location, scratch);
  }
  // The segment of a location at which a row lives: while somebody has it, none takes its place.
  std::shared_ptr<const LogSegment> Hold(Location location) const {
    return Of(location).segments().Hold(location);
  }
  // The owner of one record that cannot be read. False: nobody knows.
  bool OwnerOf(Location location, RecordScratch* scratch, SlotOwner* owner) {
    return Of(location).owners().OwnerOf(location, scratch, owner);
  }
  // Calls visit for the records of a row class in all logs. Statuses as LogOwners::VisitOwners'.
  Status VisitOwners(uint32_t row_class, LogOwners::Visit visit);

  // ---- checkpoints (tiers/log/log_checkpoints.h) ----

  // Begins a checkpoint: the rows that live now are its.
  void Freeze(uint32_t checkpoint);
  // The rows of the checkpoint in the segments of all logs, durable. The status that stopped a log,
  // unless all of its rows were durable before; kResourceExhausted. *lost_rows: the number of rows
  // that no log can make durable, because the files of theirs are gone.
  StatusOr<std::vector<SegmentRows>> SyncFrozen(uint64_t* lost_rows);
  // Makes all that was appended before durable. The status that stopped a log.
  Status Sync();
  // Ends the checkpoint. If it is kept, its segments stay until ReleaseOlderThan a later one.
  void Thaw(bool is_kept);
  // Segments that only checkpoints older than this one have are dead.
  void ReleaseOlderThan(uint32_t oldest_kept);
  // Waits until a flush pass can append without standing in others' way.
  void WaitForFreeBuffers();

  // ---- figures ----

  // Bytes of dram_bytes that the logs want to find free. Without a lock.
  uint64_t slack_bytes() const;

 private:
  // The log that reserves space, if there is one.
  std::span<RowLog* const> reserving() const { return {reserving_.data(), reserving_count_}; }
  bool MayAskPmem(size_t rows);
  void AppendToPmem(std::span<const RowToLog> rows, std::span<Location> locations, size_t* count);
  void ReleaseReservations(std::span<const RowToLog> rows);

  std::array<std::unique_ptr<RowLog>, 2> owned_;
  ByTier<RowLog*> by_tier_;
  std::array<RowLog*, kTiers> all_ = {};
  size_t count_ = 0;
  std::array<RowLog*, 1> reserving_ = {};
  size_t reserving_count_ = 0;
  // The number of dead segments of PMem, and one, when it refused a row; 0: it did not.
  std::atomic<uint64_t> pmem_full_at_{0};
  std::atomic<uint64_t> rows_not_asked_{0};  // since PMem refused a row
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOGS_ROW_LOGS_H_
