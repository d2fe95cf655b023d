#include "tiers/logs/row_logs.h"

#include <utility>

#include "base/check.h"
#include "base/memory/scratch.h"
#include "base/status_macros.h"

namespace embank {

RowLogs::RowLogs(std::unique_ptr<RowLog> ssd) {
  EMBANK_CHECK(ssd != nullptr);
  owned_[0] = std::move(ssd);
  for (const auto& log : owned_) {
    if (log == nullptr) continue;
    all_[count_++] = log.get();
    by_tier_[static_cast<uint32_t>(log->options().tier)] = log.get();
  }
}

Status RowLogs::AddRowClass(uint32_t row_class, uint32_t record_bytes, bool forgets) {
  return lowest().space().AddRowClass(row_class, record_bytes, forgets);
}

// ---- records ----

StatusOr<Location> RowLogs::Append(const RowToLog& row) {
  Location home;
  size_t count = 0;
  EMBANK_RETURN_IF_ERROR(AppendAll({&row, 1}, {&home, 1}, &count));
  return home;
}

Status RowLogs::AppendAll(std::span<const RowToLog> rows, std::span<Location> homes,
                          size_t* count) {
  return lowest().appender().AppendAll(LogStream::kUser, rows, homes, count);
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
  }
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

StatusOr<std::vector<SegmentRows>> RowLogs::SyncFrozen() {
  std::vector<SegmentRows> rows;
  for (RowLog* const log : all()) {
    EMBANK_ASSIGN_OR_RETURN(std::vector<SegmentRows> more, log->checkpoints().SyncFrozen());
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

void RowLogs::WaitForCalm() {
  for (RowLog* const log : all()) log->writer().WaitForCalm();
}

// ---- figures ----

uint64_t RowLogs::slack_bytes() const {
  uint64_t bytes = 0;
  for (const RowLog* const log : all()) bytes += log->space().slack_bytes();
  return bytes;
}

}  // namespace embank
