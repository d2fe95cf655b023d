#include "store/batch/logged_rows.h"

#include <optional>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/batch/row_group.h"
#include "store/payload/payload_rows.h"
#include "store/payload/staged_rows.h"
#include "store/placement/row_mover.h"
#include "store/table/row_memory.h"

namespace embank {

Status LoggedRows::Allocate(const Batch& batch) {
  const size_t rows_max = batch.table().mover()->InLogMax(batch.keys().size());
  EMBANK_RETURN_IF_ERROR(positions_.Allocate(rows_max));
  return locations_.Allocate(rows_max);
}

void LoggedRows::Part::Read(LoggedRowUse use, Visit visit) {
  if (count_ == 0) return;
  const Table& table = batch_.table();
  const auto id_of = [&](uint32_t position) {
    const Key key = batch_.keys()[position];
    return table.IdOf(key, table.HashOf(key));
  };
  const std::span<Location> locations = locations_.first(count_);
  const auto prefetch = [&](size_t i) {
    if (use.promoted != PromotedRows::kNone)
      table.mover()->promotion().Prefetch(table.HashOf(batch_.keys()[positions_[i]]));
  };
  // A list that fails leaves its rows unvisited, and each of them is read alone below.
  const Status status = table.mover()->logs().Read(
      locations,
      [&](size_t i, const Status& read, std::span<const std::byte> record) {
        const RowId id = id_of(positions_[i]);
        const bool is_row = read.ok() && IsRecordOf(id, record);
        if (!is_row && !(read.ok() && Seeded(SeededBug::kAnyRecord))) return;
        uint32_t heat = 0;
        if (use.tells_heat && !UpdateHeat(id, locations[i], record, &heat)) return;
        visit(positions_[i], {Outcome::kFound, RowIn(record), heat, locations[i].tier()});
        if (use.promoted != PromotedRows::kNone) {
          Promote(id, locations[i], record, OfPosition(use, positions_[i]));
        }
        locations[i] = kNoLocation;
      },
      /*bridged_bytes=*/0, prefetch);
  static_cast<void>(status);
  for (size_t i = 0; i < count_; ++i) {
    if (locations[i] == kNoLocation) continue;
    ReadAlone(id_of(positions_[i]), positions_[i], OfPosition(use, positions_[i]), visit);
  }
}

// False: the row has moved since, and its heat may have moved with it.
bool LoggedRows::Part::UpdateHeat(const RowId& id, Location from, std::span<const std::byte> record,
                                  uint32_t* heat) const {
  const Table& table = batch_.table();
  KeyIndex::Shard* const shard = table.store().index->shard(KeyIndex::ShardOf(id.hash));
  ReaderMutexLock lock(&shard->mutex);
  const Match match = table.store().index->Find(id);
  if (!match.any() || match.location() != from) return false;
  *heat = table.mover()->log_rows().HeatOfRecord(id.hash, record);
  return true;
}

void LoggedRows::Part::Promote(const RowId& id, Location from, std::span<const std::byte> record,
                               LoggedRowUse use) {
  KeyIndex* const index = batch_.table().store().index;
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
  MutexLock lock(&shard->mutex);
  const Match match = index->Find(id);
  if (!match.any()) return;
  if (match.location() == from || Seeded(SeededBug::kOldRecordPromoted)) {
    Promotion& promotion = batch_.table().mover()->promotion();
    if (use.promoted == PromotedRows::kAll) {
      promotion.Promote(shard, id, match, record, use.touches);
    } else {
      promotion.PromoteIfHotter(shard, id, match, record, use.touches);
    }
  } else if (!match.location().IsInLog()) {
    // For another position of the batch, or by another thread.
    auto* const header =
        reinterpret_cast<RowHeader*>(batch_.table().store().tier->Row(match.location()));
    TouchHeat(header, LoadMark(header), batch_.table().store().heat_clock->now(), use.touches);
    if (use.touches > 0) batch_.table().mover()->TouchOrder(shard, match.location());
  }
}

// The row has moved, or its entry was another's, or its record is damaged.
void LoggedRows::Part::ReadAlone(const RowId& id, uint32_t position, LoggedRowUse use,
                                 Visit visit) {
  const Table& table = batch_.table();
  LogRows& log_rows = table.mover()->log_rows();
  BorrowedRowMemory memory(table.store().read_memory);
  KeyIndex::Shard* const shard = table.store().index->shard(KeyIndex::ShardOf(id.hash));
  uint32_t heat = 0;
  Location location = kNoLocation;
  std::optional<uint64_t> in_device;  // where its payload is
  const auto tell = [&](const FoundRow& found) {
    if (found.outcome != Outcome::kFound) return visit(position, {found.outcome, nullptr, 0});
    location = found.match.location();
    if (!location.IsInLog()) {
      std::byte* const row = table.store().tier->Row(location);
      RowHeader* const header = table.layout().Header(row);
      const HeatEpoch now = table.store().heat_clock->now();
      TouchHeat(header, LoadMark(header), now, use.touches);
      if (use.touches > 0) table.mover()->TouchOrder(shard, location);
      heat = HeatOf(LoadMark(header).usage, now);
      if (location.IsInDram()) return visit(position, {Outcome::kFound, row, heat, Tier::kDram});
      in_device = table.store().payloads->PayloadOf(location);
      return;
    }
    log_rows.Touch(id.hash, found.record, use.touches);
    if (use.tells_heat) heat = log_rows.HeatOfRecord(id.hash, found.record);
    visit(position, {Outcome::kFound, RowIn(found.record), heat, location.tier()});
  };
  log_rows.Find(shard, id, &memory.get()->record, tell);
  if (!in_device.has_value()) return;
  // Only an entry of the log that looked like the row's leads here.
  StagedRows staged(&table.store().payloads->memory(), PayloadBytesOf(table));
  const std::byte* const payload = staged.Add(*in_device);
  staged.Gather(0);
  const bool is_read = staged.Wait().ok();
  visit(position, {is_read ? Outcome::kFound : Outcome::kDataLoss, payload - sizeof(RowHeader),
                   heat, location.tier()});
}

void PromoteRows(const Batch& batch) {
  const Table& table = batch.table();
  if (table.mover()->rows().rows_in_log() == 0) return;
  LoggedRows logged;
  if (!logged.Allocate(batch).ok()) return;
  batch.ForEachPart([&](uint32_t begin, uint32_t end) {
    LoggedRows::Part part(&logged, batch, begin);
    {
      const EpochTable::Guard guard(table.store().epochs);
      ReadRows(
          table, RowLayout::kVectorOffsetBytes, batch.keys(), begin, end,
          [](uint32_t, const RowWatch& watch) { return watch.IsCurrent(); },
          [&](uint32_t position, const RowSeen& row, const Match& match) {
            if (row.header == nullptr && match.any()) part.Add(position, match.location());
          });
    }
    part.Read({.touches = 0, .promoted = PromotedRows::kAll}, [](uint32_t, const LoggedRow&) {});
  });
}

}  // namespace embank
