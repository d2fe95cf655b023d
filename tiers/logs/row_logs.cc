#include "tiers/logs/row_logs.h"

#include <utility>

#include "base/memory/scratch.h"
#include "base/status_macros.h"

namespace embank {

RowLogs::RowLogs(std::unique_ptr<RowLog> ssd, std::unique_ptr<RowLog> pmem)
    : owned_{std::move(pmem), std::move(ssd)} {
  EMBANK_CHECK(owned_.back() != nullptr);
  reserving_[reserving_count_++] = owned_.back().get();
  for (const auto& log : owned_) {
    if (log == nullptr) continue;
    EMBANK_CHECK(log->options().has_reservations == (log == owned_.back()));
    all_[count_++] = log.get();
    EMBANK_CHECK(OfTier(log->options().tier) == nullptr);
    by_tier_[log->options().tier] = log.get();
  }
}

Status RowLogs::AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets) {
  for (RowLog* const log : all()) {
    EMBANK_RETURN_IF_ERROR(log->space().AddRowClass(row_class, record_bytes, forgets));
  }
  return OkStatus();
}

// ---- records ----

StatusOr<Location> RowLogs::Append(const RowToLog& row) {
  Location location;
  size_t count = 0;
  EMBANK_RETURN_IF_ERROR(AppendAll({&row, 1}, {&location, 1}, &count));
  return location;
}

Status RowLogs::AppendAll(std::span<const RowToLog> rows, std::span<Location> locations,
                          size_t* count) {
  EMBANK_CHECK(locations.size() >= rows.size());
  *count = 0;
  if (pmem() != nullptr) AppendToPmem(rows, locations, count);
  EMBANK_CHECK(*count <= rows.size());
  if (*count == rows.size()) return OkStatus();
  Status status = NoMemory();
  for (RowLog* const log : reserving()) {
    size_t more = 0;
    status = log->appender().AppendAll(LogStream::kUser, rows.subspan(*count),
                                       locations.subspan(*count), &more);
    *count += more;
  }
  return status;
}

// PMem without space is asked again when a segment of it has died, and from time to time: it may
// have lacked memory alone.
bool RowLogs::MayAskPmem(size_t rows) {
  constexpr uint64_t kRowsBetweenAsking = 4096;
  const uint64_t dead_segments = pmem()->counters().dead_segments;
  if (pmem_full_at_.load(std::memory_order_relaxed) != dead_segments + 1) return true;
  const uint64_t before = rows_not_asked_.fetch_add(rows, std::memory_order_relaxed);
  return before / kRowsBetweenAsking != (before + rows) / kRowsBetweenAsking;
}

void RowLogs::AppendToPmem(std::span<const RowToLog> rows, std::span<Location> locations,
                           size_t* count) {
  if (!MayAskPmem(rows.size())) return;
  const uint64_t dead_segments = pmem()->counters().dead_segments;
  const Status status = pmem()->appender().AppendAll(LogStream::kUser, rows, locations, count);
  // The SSD takes the rows that PMem does not take, for whatever reason.
  if (!status.ok()) pmem_full_at_.store(dead_segments + 1, std::memory_order_relaxed);
  ReleaseReservations(rows.first(*count));
}

// Rows that were written to PMem need their reservations no more.
void RowLogs::ReleaseReservations(std::span<const RowToLog> rows) {
  for (size_t begin = 0; begin < rows.size();) {
    size_t end = begin;
    uint64_t dirty = 0;
    for (; end < rows.size() && rows[end].row_class == rows[begin].row_class; ++end) {
      dirty += rows[end].was_dirty ? 1 : 0;
    }
    lowest().space().Release(rows[begin].row_class, dirty);
    begin = end;
  }
}

bool RowLogs::ReserveAndMarkDead(uint32_t row_class, Location location) {
  RowLog& log = Of(location);
  // The space of a record in the same log is given back and reserved at once.
  if (&log == &lowest()) return log.space().ReserveAndMarkDead(location);
  if (lowest().space().Reserve(row_class, 1) == 0) return false;
  log.segments().MarkDead(location);
  return true;
}

Status RowLogs::Read(std::span<const Location> locations, LogReader::Visit visit,
                     uint64_t bridged_bytes, FunctionRef<void(size_t)> ahead) {
  if (count_ == 1) return lowest().reader().Read(locations, visit, bridged_bytes, ahead);
  Scratch<Location, 64> places_memory;
  Scratch<size_t, 64> numbers_memory;
  EMBANK_RETURN_IF_ERROR(places_memory.Allocate(locations.size()));
  EMBANK_RETURN_IF_ERROR(numbers_memory.Allocate(locations.size()));
  const std::span<Location> places = places_memory.values();
  const std::span<size_t> numbers = numbers_memory.values();
  size_t read = 0;
  for (RowLog* const log : all()) {
    size_t count = 0;
    for (size_t i = 0; i < locations.size(); ++i) {
      if (locations[i].tier() != log->options().tier) continue;
      places[count] = locations[i];
      numbers[count++] = i;
    }
    if (count == 0) continue;
    EMBANK_RETURN_IF_ERROR(log->reader().Read(
        places.first(count),
        [&](size_t i, const Status& status, std::span<const std::byte> record) {
          visit(numbers[i], status, record);
        },
        bridged_bytes, [&](size_t i) { ahead(numbers[i]); }));
    read += count;
  }
  EMBANK_CHECK(read == locations.size());
  return OkStatus();
}

Status RowLogs::VisitOwners(uint32_t row_class, LogOwners::Visit visit) {
  Status status;
  for (RowLog* const log : all()) status.Update(log->owners().VisitOwners(row_class, visit));
  return status;
}

// ---- checkpoints ----

void RowLogs::Freeze(uint32_t checkpoint) {
  for (RowLog* const log : all()) log->checkpoints().Freeze(checkpoint);
}

StatusOr<std::vector<SegmentRows>> RowLogs::SyncFrozen(uint64_t* lost_rows) {
  *lost_rows = 0;
  std::vector<SegmentRows> rows;
  for (RowLog* const log : all()) {
    const bool is_lost = log != &lowest() && log->writer().has_stopped();
    EMBANK_ASSIGN_OR_RETURN(
        std::vector<SegmentRows> more,
        is_lost ? log->checkpoints().ListDurable(lost_rows) : log->checkpoints().SyncFrozen());
    for (SegmentRows& one : more) rows.push_back(std::move(one));
  }
  return rows;
}

Status RowLogs::Sync() {
  Status status;
  for (RowLog* const log : all()) status.Update(log->appender().Sync());
  return status;
}

void RowLogs::Thaw(bool is_kept) {
  for (RowLog* const log : all()) log->checkpoints().Thaw(is_kept);
}

void RowLogs::ReleaseOlderThan(uint32_t oldest_kept) {
  for (RowLog* const log : all()) log->checkpoints().ReleaseOlderThan(oldest_kept);
}

void RowLogs::WaitForFreeBuffers() {
  for (RowLog* const log : all()) log->writer().WaitForFreeBuffers();
}

// ---- figures ----

uint64_t RowLogs::slack_bytes() const {
  uint64_t bytes = 0;
  for (const RowLog* const log : all()) bytes += log->space().slack_bytes();
  return bytes;
}

}  // namespace embank
