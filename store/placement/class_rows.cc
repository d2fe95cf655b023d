#include "store/placement/class_rows.h"

#include <array>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/table/table.h"

namespace embank {
namespace {

// Called before the heat of a row is read for its record: a lookup that adds to the heat from here
// on sets the flag.
void ClearGained(RowHeader* header) {
  std::atomic_ref(header->usage).fetch_and(~kGainedFlag, std::memory_order_relaxed);
}

}  // namespace

ClassRows::ClassRows(const PlacementParts& parts, SlotClass slot_class, const RowClass& row_class)
    : parts_(parts),
      slot_class_(slot_class),
      slot_bytes_(row_class.slot_bytes),
      orders_(*parts.tier, *parts.heat_clock, row_class.slot_bytes, row_class.eviction),
      notes_(orders_.notes()) {
  EMBANK_CHECK(parts_.logs != nullptr);
}

Table& ClassRows::TableAt(Location slot) const {
  Table* const table = parts_.tables->Get(TableOf(LoadIdentity(HeaderAt(slot))));
  EMBANK_CHECK(table != nullptr);
  return *table;
}

Match ClassRows::MatchAt(KeyIndex::Shard* shard, const RowId& id, Location location) const {
  Match match = {};
  parts_.index->VisitMatches(shard, id, [&](const Match& candidate) {
    if (candidate.location() == location) match = candidate;
    return match.any();
  });
  return match;
}

void ClassRows::OnInsert(KeyIndex::Shard* shard, Location slot) {
  const uint32_t number = notes_.NumberOf(slot);
  SlotNote& note = notes_.Of(number);
  note.logged = parts_.gate->checkpoint();
  note.pin = Pins::kNone;
  note.untouched = 0;
  orders_.Of(shard).Add(number);
  rows_in_memory_.fetch_add(1, std::memory_order_relaxed);
}

bool ClassRows::BeforeUpdate(Location slot) {
  SlotNote& note = NoteAt(slot);
  if (Seeded(SeededBug::kChangedRowStaysClean)) return true;
  const bool is_in_pmem = Location{note.logged}.tier() == Tier::kPmem;
  if (is_in_pmem && Seeded(SeededBug::kStalePmemRecord)) return true;
  if (!note.IsDirty()) {
    const bool admitted = Seeded(SeededBug::kRecordOutlivesChange)
                              ? Reserve(1) > 0
                              : parts_.logs->ReserveAndMarkDead(slot_class_, {note.logged});
    if (!admitted) return false;
  } else if (parts_.gate->IsFlushPending(note.checkpoint())) {
    // The row's reservation is used for the checkpoint.
    if (Reserve(1) == 0) return false;
    if (Seeded(SeededBug::kNoPreImage)) {
      Release(1);
    } else {
      AppendPreImage(slot, note.checkpoint());
    }
  }
  note.logged = parts_.gate->checkpoint();
  note.untouched = 0;
  if (note.pin != Pins::kNone) Unpin(slot);
  return true;
}

// The row changes next. The checkpoint gets it as it was, or fails, and the change goes on.
void ClassRows::AppendPreImage(Location slot, uint32_t checkpoint) const {
  const StatusOr<Location> image = AppendSlot(slot, checkpoint, false);
  if (image.ok()) return;
  parts_.gate->Fail(image.status());
  parts_.logs->lowest().space().Release(slot_class_, 1);
}

void ClassRows::OnErase(KeyIndex::Shard* shard, const Table& table, Location home) {
  if (home.IsInLog()) {
    parts_.logs->MarkDead(home);
    CountInLog(table, home.tier(), -1);
    return;
  }
  const SlotNote& note = NoteAt(home);
  if (!note.IsDirty()) {
    parts_.logs->MarkDead({note.logged});
  } else if (parts_.gate->IsFlushPending(note.checkpoint())) {
    AppendPreImage(home, note.checkpoint());
  } else {
    Release(1);
  }
  if (note.pin != Pins::kNone) Unpin(home);
  orders_.Of(shard).Remove(notes_.NumberOf(home));
  CountEvicted();
}

RowToLog ClassRows::RowOf(Location slot, uint32_t checkpoint, bool lives) const {
  const RowHeader* const header = HeaderAt(slot);
  const RowMark mark = LoadMark(header);
  const std::byte* const payload = reinterpret_cast<const std::byte*>(header + 1);
  return {.row_class = slot_class_,
          .record_bytes = record_bytes(),
          .table = TableOf(mark.identity),
          .key = LoadKey(header),
          .heat = HeatOf(mark.usage, parts_.heat_clock->now()),
          .checkpoint = checkpoint,
          .payload = {payload, slot_bytes_ - sizeof(RowHeader)},
          .lives = lives,
          .was_dirty = true};
}

StatusOr<Location> ClassRows::AppendSlot(Location slot, uint32_t checkpoint, bool lives) const {
  EMBANK_CHECK(IsDirty(slot));
  ClearGained(HeaderAt(slot));
  return parts_.logs->Append(RowOf(slot, checkpoint, lives));
}

Status ClassRows::FlushPending(KeyIndex::Shard* shard, std::span<const RowInSlot> rows) {
  constexpr uint32_t kLineBytes = 64;
  EMBANK_CHECK(rows.size() <= kFlushedAtOnce);
  for (const RowInSlot& row : rows) {
    __builtin_prefetch(parts_.index->ProbeOf(row.id.hash).bucket);
  }
  std::array<Location, kFlushedAtOnce> slots;
  size_t count = 0;
  for (const RowInSlot& row : rows) {
    // Slots of other shards, and their notes, are guarded by other locks.
    if (!MatchAt(shard, row.id, row.slot).any()) continue;
    const SlotNote& note = NoteAt(row.slot);
    if (!note.IsDirty() || !parts_.gate->IsFlushPending(note.checkpoint())) continue;
    slots[count++] = row.slot;
    const std::byte* const line = parts_.tier->Row(row.slot);
    for (uint32_t i = 0; i < slot_bytes_; i += kLineBytes) __builtin_prefetch(line + i);
  }
  if (count == 0) return OkStatus();
  std::array<RowToLog, kFlushedAtOnce> images;
  for (size_t i = 0; i < count; ++i) {
    ClearGained(HeaderAt(slots[i]));
    images[i] = RowOf(slots[i], NoteAt(slots[i]).checkpoint(), true);
  }
  std::array<Location, kFlushedAtOnce> homes;
  size_t saved = 0;
  Status status = parts_.logs->AppendAll(std::span(images).first(count), homes, &saved);
  EMBANK_CHECK(saved <= count);
  for (size_t i = 0; i < saved; ++i) NoteAt(slots[i]).SetLogged(homes[i]);
  return status;
}

void ClassRows::Pin(Location slot) {
  SlotNote& note = NoteAt(slot);
  note.pin = TableAt(slot).pins().Renew(static_cast<Pins::Mark>(note.pin));
}

void ClassRows::Unpin(Location slot) {
  SlotNote& note = NoteAt(slot);
  TableAt(slot).pins().Release(static_cast<Pins::Mark>(note.pin));
  note.pin = Pins::kNone;
}

bool ClassRows::IsPinned(Location slot) const {
  SlotNote& note = NoteAt(slot);
  const auto pin = static_cast<Pins::Mark>(note.pin);
  if (pin == Pins::kNone) return false;
  if (TableAt(slot).pins().IsCurrent(pin)) return true;
  note.pin = Pins::kNone;
  return false;
}

void ClassRows::CountIfUnused(Location slot) const {
  const bool untouched = NoteAt(slot).untouched != 0;
  const uint32_t usage = LoadMark(HeaderAt(slot)).usage;
  if (untouched && (usage & kReferencedFlag) == 0) TableAt(slot).CountUnusedPrefetch();
}

void ClassRows::CountInLog(const Table& table, Tier tier, int64_t change) {
  table.AddRowsIn(tier, change);
  rows_in_log_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
}

}  // namespace embank
