#include "store/placement/compacted_rows.h"

#include <algorithm>
#include <array>
#include <bit>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/table/table.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

// Rows that are seen before the bound of warm rows is set anew.
constexpr uint32_t kSeenRows = 256;
// Pinned rows that are passed over for one that is forgotten.
constexpr size_t kPinnedMax = 8;

}  // namespace

CompactedRows::Logged CompactedRows::FindLogged(KeyIndex::Shard* shard, const RowId& id,
                                                Location from) const {
  Logged logged;
  parts_.index->VisitMatches(shard, id, [&](const Match& candidate) {
    if (candidate.location() == from) logged.match = candidate;
    if (!candidate.location().IsInLog()) {
      logged.note = &rows_.NoteAt(candidate.location());
    }
    return logged.any();
  });
  const bool is_other = logged.note != nullptr && logged.note->logged != from.units;
  return is_other && !Seeded(SeededBug::kMovedWithoutLook) ? Logged{} : logged;
}

bool CompactedRows::WriteAnew(KeyIndex::Shard* shard, const RowId& id, Location from,
                              const Logged& logged, std::span<const std::byte> record,
                              uint32_t heat) {
  EMBANK_CHECK(logged.any());
  const StatusOr<Location> home = parts_.logs->Of(from).appender().Append(
      LogStream::kCompaction, {.row_class = rows_.slot_class(),
                               .record_bytes = rows_.record_bytes(),
                               .table = id.table,
                               .key = id.key,
                               .heat = heat,
                               .checkpoint = parts_.gate->checkpoint(),
                               .payload = record.subspan(sizeof(RecordHeader))});
  if (!home.ok()) return false;
  if (logged.note != nullptr) {
    logged.note->SetLogged(*home);
  } else {
    parts_.index->Move(shard, id.hash, logged.match, *home);
  }
  parts_.logs->MarkDead(from);
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
    Spare(shard, id, from, logged, record, LoadRecordHeader(record).heat);
    return Fate::kInMemory;
  }
  const bool is_warm = IsWarm(id.hash, record);
  CountSeen(is_warm);
  const uint32_t heat = log_rows_.HeatOfRecord(id.hash, record);
  // A row that is written anew has not been looked up since.
  parts_.heat_sketch->Take(id.hash, parts_.heat_clock->epochs());
  if (is_warm && Spare(shard, id, from, logged, record, heat)) return Fate::kSpared;
  Table& table = *parts_.tables->Get(id.table);
  parts_.index->Erase(shard, id.hash, logged.match);
  rows_.OnErase(shard, table, from);
  table.CountForgotten();
  sparings_ = std::min(sparings_ + 1, kSparingsMax);
  return Fate::kForgotten;
}

bool CompactedRows::Spare(KeyIndex::Shard* shard, const RowId& id, Location from,
                          const Logged& logged, std::span<const std::byte> record, uint32_t heat) {
  if (sparings_ == 0 || !WriteAnew(shard, id, from, logged, record, heat)) return false;
  --sparings_;
  return true;
}

bool CompactedRows::IsWarm(KeyHash hash, std::span<const std::byte> record) const {
  if (!by_heat_) return parts_.heat_sketch->Get(hash, parts_.heat_clock->epochs()) > 0;
  return static_cast<uint32_t>(std::bit_width(log_rows_.HeatOfRecord(hash, record))) > warm_bits_;
}

// The bound rises where more than three quarters of the rows seen are warm, and falls where fewer
// than a quarter are.
void CompactedRows::CountSeen(bool is_warm) {
  warm_rows_ += is_warm ? 1 : 0;
  if (++seen_rows_ < kSeenRows) return;
  if (warm_rows_ > kSeenRows - kSeenRows / 4) {
    ++warm_bits_;
  } else if (warm_rows_ < kSeenRows / 4 && warm_bits_ > 0) {
    --warm_bits_;
  }
  seen_rows_ = 0;
  warm_rows_ = 0;
}

bool CompactedRows::ForgetColdest(KeyIndex::Shard* shard) {
  SlotOrders::Order& order = rows_.OrderOf(shard);
  // Shards would drift apart if they took turns.
  if (order.count() * KeyIndex::kShardCount < rows_.rows_in_memory()) return false;
  const auto is_pinned = [&](uint32_t slot) {
    return rows_.IsPinned(rows_.notes().LocationOf(slot));
  };
  // Under LFU a row that is passed over would be next again.
  std::array<uint32_t, kPinnedMax> pinned;
  size_t count = 0;
  uint32_t victim = order.Victim();
  for (; victim != kNoVictim && is_pinned(victim) && count < pinned.size();
       victim = order.Victim()) {
    order.Remove(victim);
    pinned[count++] = victim;
  }
  const bool found = victim != kNoVictim && !is_pinned(victim);
  if (found) ForgetSlot(shard, rows_.notes().LocationOf(victim));
  for (size_t i = 0; i < count; ++i) order.Add(pinned[i]);
  return found;
}

void CompactedRows::ForgetSlot(KeyIndex::Shard* shard, Location slot) {
  RowHeader* const header = rows_.HeaderAt(slot);
  Table& table = rows_.TableAt(slot);
  const Key key = LoadKey(header);
  const RowId id = table.IdOf(key, table.HashOf(key));
  const Match match = rows_.MatchAt(shard, id, slot);
  EMBANK_CHECK(match.any());
  parts_.index->Erase(shard, id.hash, match);
  rows_.CountIfUnused(slot);
  rows_.OnErase(shard, table, slot);
  RetireRow(header);
  parts_.tier->Free(rows_.slot_class(), {&slot, 1});
  table.CountForgotten();
}

}  // namespace embank
