#include "store/placement/compacted_rows.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/table/table.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

// The bound of warm rows is set anew after so many rows.
constexpr uint32_t kSeenRows = 256;
// At most so many pinned rows are passed over to forget one.
constexpr size_t kPinnedMax = 8;

}  // namespace

CompactedRows::Logged CompactedRows::FindLogged(KeyIndex::Shard* shard, const RowId& id,
                                                Location from) const {
  Logged logged;
  store_.index->VisitMatches(shard, id, [&](const Match& candidate) {
    if (candidate.location() == from) logged.match = candidate;
    if (!candidate.location().IsInLog()) {
      logged.note = &rows_.NoteAt(candidate.location());
      logged.is_in_device = !candidate.location().IsInDram();
    }
    return logged.any();
  });
  const bool is_other = logged.note != nullptr && logged.note->logged != from.units;
  return is_other && !Seeded(SeededBug::kMovedWithoutLook) ? Logged{} : logged;
}

RowToLog CompactedRows::CopyOf(const RowId& id, std::span<const std::byte> record,
                               uint32_t heat) const {
  EMBANK_CHECK(record.size() == rows_.record_bytes());
  return {.row_class = rows_.slot_class(),
          .record_bytes = rows_.record_bytes(),
          .table = id.table,
          .key = id.key,
          .heat = heat,
          .checkpoint = store_.gate->checkpoint(),
          .payload = record.subspan(sizeof(RecordHeader))};
}

void CompactedRows::Replace(KeyIndex::Shard* shard, const RowId& id, Location from,
                            const Logged& logged, Location logged_at) {
  EMBANK_CHECK(from.IsInLog() && logged_at.IsInLog() && logged_at != from);
  if (logged.note != nullptr) {
    if (logged.is_in_device && Seeded(SeededBug::kPayloadNoteNotMoved))
      return store_.logs->MarkDead(from);
    logged.note->SetLogged(logged_at);
  } else {
    store_.index->Move(shard, id.hash, logged.match, logged_at);
  }
  store_.logs->MarkDead(from);
}

bool CompactedRows::WriteAnew(KeyIndex::Shard* shard, const RowId& id, Location from,
                              const Logged& logged, std::span<const std::byte> record,
                              uint32_t heat) {
  EMBANK_CHECK(logged.any());
  const StatusOr<Location> logged_at =
      store_.logs->Of(from).appender().Append(LogStream::kCompaction, CopyOf(id, record, heat));
  if (!logged_at.ok()) return false;
  Replace(shard, id, from, logged, *logged_at);
  return true;
}

bool CompactedRows::WriteBelow(KeyIndex::Shard* shard, const RowId& id, Location from,
                               const Logged& logged, std::span<const std::byte> record,
                               uint32_t heat) {
  EMBANK_CHECK(logged.any());
  if (rows_.Reserve(1) == 0) return false;
  RowToLog copy = CopyOf(id, record, heat);
  copy.was_dirty = true;  // it uses the reservation
  const StatusOr<Location> logged_at =
      store_.logs->lowest().appender().Append(LogStream::kUser, copy);
  if (!logged_at.ok()) {
    rows_.Release(1);
    return false;
  }
  EMBANK_CHECK(logged_at->tier() != from.tier());
  const uint64_t too_early = Seeded(SeededBug::kMovedBeforeAppend) ? 1 : 0;
  Replace(shard, id, from, logged, {logged_at->units + too_early});
  if (logged.note != nullptr) return true;
  const Table& table = *store_.tables->Get(id.table);
  rows_.CountInLog(table, from.tier(), -1);
  rows_.CountInLog(table, logged_at->tier(), 1);
  return true;
}

bool CompactedRows::Relocate(KeyIndex::Shard* shard, const RowId& id, Location from,
                             std::span<const std::byte> record) {
  const Logged logged = FindLogged(shard, id, from);
  return !logged.any() || WriteAnew(shard, id, from, logged, record, LoadRecordHeader(record).heat);
}

CompactedRows::Fate CompactedRows::ForgetOrSpare(KeyIndex::Shard* shard, const RowId& id,
                                                 Location from, std::span<const std::byte> record) {
  EMBANK_CHECK(forgets_);
  const Logged logged = FindLogged(shard, id, from);
  if (!logged.any()) return Fate::kElsewhere;
  if (logged.note != nullptr) {
    Spare(&forgetting_, shard, id, from, logged, record, LoadRecordHeader(record).heat);
    return Fate::kInMemory;
  }
  const bool is_warm = IsWarm(forgetting_, id.hash, record);
  forgetting_.CountSeen(is_warm);
  const uint32_t heat = log_rows_.HeatOfRecord(id.hash, record);
  // A row that is written anew has not been looked up since.
  store_.heat_sketch->Take(id.hash, store_.heat_clock->epochs());
  if (is_warm && Spare(&forgetting_, shard, id, from, logged, record, heat)) return Fate::kSpared;
  Table& table = *store_.tables->Get(id.table);
  store_.index->Erase(shard, id.hash, logged.match);
  rows_.OnErase(shard, table, from);
  table.CountForgotten();
  forgetting_.CountGone();
  return Fate::kForgotten;
}

CompactedRows::Fate CompactedRows::DemoteOrSpare(KeyIndex::Shard* shard, const RowId& id,
                                                 Location from, std::span<const std::byte> record) {
  const Logged logged = FindLogged(shard, id, from);
  if (!logged.any()) return Fate::kElsewhere;
  const bool is_warm = logged.note != nullptr || IsWarm(demoting_, id.hash, record);
  demoting_.CountSeen(is_warm);
  const uint32_t heat = log_rows_.HeatOfRecord(id.hash, record);
  const bool is_spared = is_warm && Spare(&demoting_, shard, id, from, logged, record, heat);
  if (!is_spared && Seeded(SeededBug::kDemotionForgets) && logged.note == nullptr) {
    store_.index->Erase(shard, id.hash, logged.match);
    rows_.OnErase(shard, *store_.tables->Get(id.table), from);
    return Fate::kDemoted;
  }
  if (!is_spared && !WriteBelow(shard, id, from, logged, record, heat)) return Fate::kStuck;
  // A row that is written anew has not been looked up since.
  if (logged.note == nullptr) store_.heat_sketch->Take(id.hash, store_.heat_clock->epochs());
  if (is_spared) return Fate::kSpared;
  demoting_.CountGone();
  return Fate::kDemoted;
}

bool CompactedRows::Spare(Sparing* sparing, KeyIndex::Shard* shard, const RowId& id, Location from,
                          const Logged& logged, std::span<const std::byte> record, uint32_t heat) {
  if (sparing->left == 0 || !WriteAnew(shard, id, from, logged, record, heat)) return false;
  --sparing->left;
  return true;
}

bool CompactedRows::IsWarm(const Sparing& sparing, KeyHash hash,
                           std::span<const std::byte> record) const {
  if (!by_heat_) return store_.heat_sketch->Get(hash, store_.heat_clock->epochs()) > 0;
  const uint32_t heat = log_rows_.HeatOfRecord(hash, record);
  return static_cast<uint32_t>(std::bit_width(heat)) > sparing.warm_bits;
}

// The bound rises where more than three quarters of the rows seen are warm, and falls where fewer
// than a quarter are.
void CompactedRows::Sparing::CountSeen(bool is_warm) {
  warm_rows += is_warm ? 1 : 0;
  EMBANK_CHECK(warm_rows <= seen_rows + 1 && seen_rows < kSeenRows);
  if (++seen_rows < kSeenRows) return;
  if (warm_rows > kSeenRows - kSeenRows / 4) {
    ++warm_bits;
  } else if (warm_rows < kSeenRows / 4 && warm_bits > 0) {
    --warm_bits;
  }
  seen_rows = 0;
  warm_rows = 0;
}

bool CompactedRows::ForgetColdest(KeyIndex::Shard* shard) {
  SlotOrders::Order& order = rows_.orders().Of(shard);
  // Shards would drift apart if they took turns.
  if (order.count() * KeyIndex::kShardCount < rows_.rows_in_memory()) return false;
  const auto is_pinned = [&](uint32_t slot) {
    return rows_.pins().IsPinned(rows_.notes().LocationOf(slot));
  };
  size_t count = 0;
  uint32_t victim = order.Victim();
  for (; victim != kNoVictim && is_pinned(victim) && count < kPinnedMax; victim = order.Victim()) {
    order.PutAside(victim);
    ++count;
  }
  const bool found = victim != kNoVictim && !is_pinned(victim);
  if (found) ForgetSlot(shard, rows_.notes().LocationOf(victim));
  // If there are too many, others would never have a turn: then they count as just used.
  while (!found && count > 0) {
    order.Add(order.RemoveAside());
    --count;
  }
  order.PutBack();
  return found;
}

void CompactedRows::ForgetSlot(KeyIndex::Shard* shard, Location slot) {
  RowHeader* const header = rows_.HeaderAt(slot);
  Table& table = TableAt(rows_, slot);
  const Key key = LoadKey(header);
  const RowId id = table.IdOf(key, table.HashOf(key));
  const Match match = store_.index->MatchAt(shard, id, slot);
  EMBANK_CHECK(match.any());
  store_.index->Erase(shard, id.hash, match);
  rows_.pins().CountIfUnused(slot);
  rows_.OnErase(shard, table, slot);
  RetireRow(header);
  store_.tier->Free(rows_.slot_class(), {&slot, 1});
  table.CountForgotten();
}

}  // namespace embank
