#include "store/placement/class_rows.h"

#include <array>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/table/table.h"

namespace embank {
namespace {

// Called before the heat of a row is read for its record: a lookup that adds to the heat from here
// on sets the flag.
void ClearGained(RowHeader* header) {
  std::atomic_ref(header->usage).fetch_and(~kGainedFlag, std::memory_order_relaxed);
}

std::span<const std::byte> PayloadInSlot(const RowHeader* header, uint32_t slot_bytes) {
  return {reinterpret_cast<const std::byte*>(header + 1), slot_bytes - sizeof(RowHeader)};
}

// The row changes next. The checkpoint gets it as it was, or fails, and the change goes on.
void AppendPreImage(const ClassRows& rows, Location slot, uint32_t checkpoint) {
  const StatusOr<Location> image = rows.AppendSlot(slot, checkpoint, false);
  if (image.ok()) return;
  rows.store().gate->Fail(image.status());
  rows.store().logs->Release(rows.slot_class(), 1);
}

}  // namespace

ClassRows::ClassRows(const StoreContext& store, SlotClass slot_class, const RowClass& row_class,
                     bool has_notes)
    : store_(store),
      slot_class_(slot_class),
      slot_bytes_(row_class.slot_bytes),
      has_log_(!store.logs->empty()),
      has_notes_(has_notes),
      orders_(*store.tier, *store.heat_clock, row_class.slot_bytes, row_class.eviction, has_notes),
      notes_(orders_.notes()),
      pins_(*store.tier, *store.tables, notes_),
      header_notes_(*store.tier, DramTier::kHeaderSlotBytes) {
  EMBANK_CHECK(has_notes_ || !has_log_);
}

void ClassRows::Add(KeyIndex::Shard* shard, Location slot, const SlotNote* former) {
  EMBANK_CHECK(slot.IsInDram());
  const uint32_t number = notes_.NumberOf(slot);
  SlotNote& note = notes_.Of(number);
  note.logged = store_.gate->checkpoint();
  if (former != nullptr) note.logged = former->logged;
  note.pin = Pins::kNone;
  note.untouched = 0;
  Mark(slot, note.IsDirty());
  orders_.Add(shard, number);
  rows_in_memory_.fetch_add(1, std::memory_order_relaxed);
}

// Sets the dirty bit of a slot, or clears it.
void ClassRows::Mark(Location location, bool is_dirty) const {
  if (!has_log_) return;
  const SlotNotes& notes = location.IsInDram() ? notes_ : header_notes_;
  const uint32_t number = notes.NumberOf(DramSlotOf(location));
  if (!is_dirty) return notes.MarkClean(number);
  if (!Seeded(SeededBug::kDirtySlotNotMarked)) notes.MarkDirty(number);
}

bool ClassRows::MakeDirty(Location slot) {
  SlotNote& note = NoteAt(slot);
  const bool was_dirty = note.IsDirty();
  if (Seeded(SeededBug::kChangedRowStaysClean)) return true;
  const bool is_in_pmem = Location{note.logged}.tier() == Tier::kPmem;
  if (is_in_pmem && Seeded(SeededBug::kStalePmemRecord)) return true;
  if (!was_dirty) {
    const bool admitted = Seeded(SeededBug::kRecordOutlivesChange)
                              ? Reserve(1) > 0
                              : store_.logs->ReserveAndMarkDead(slot_class_, {note.logged});
    if (!admitted) return false;
  } else if (store_.gate->IsFlushPending(note.checkpoint())) {
    EMBANK_CHECK(slot.IsInDram());
    // The row's reservation is used for the checkpoint.
    if (Reserve(1) == 0) return false;
    if (Seeded(SeededBug::kNoPreImage)) {
      Release(1);
    } else {
      AppendPreImage(*this, slot, note.checkpoint());
    }
  }
  note.logged = store_.gate->checkpoint();
  if (!was_dirty) Mark(slot, true);
  note.untouched = 0;
  if (note.pin != Pins::kNone) pins_.Unpin(slot);
  return true;
}

void ClassRows::OnErase(KeyIndex::Shard* shard, const Table& table, Location location) {
  if (!has_notes_) return;
  if (location.IsInLog()) {
    store_.logs->MarkDead(location);
    CountInLog(table, location.tier(), -1);
    return;
  }
  const SlotNote& note = NoteAt(location);
  if (!note.IsDirty()) {
    store_.logs->MarkDead({note.logged});
  } else if (store_.gate->IsFlushPending(note.checkpoint())) {
    EMBANK_CHECK(location.IsInDram());
    AppendPreImage(*this, location, note.checkpoint());
  } else {
    Release(1);
  }
  if (note.IsDirty()) Mark(location, false);
  if (note.pin != Pins::kNone) pins_.Unpin(location);
  if (!location.IsInDram()) return;
  orders_.Of(shard).Remove(notes_.NumberOf(location));
  CountEvicted();
}

RowToLog ClassRows::RowOf(Location location, std::span<const std::byte> payload,
                          uint32_t checkpoint, bool lives) const {
  EMBANK_CHECK(payload.size() == slot_bytes_ - sizeof(RowHeader));
  const RowHeader* const header = HeaderAt(location);
  const RowMark mark = LoadMark(header);
  return {.row_class = slot_class_,
          .record_bytes = record_bytes(),
          .table = TableOf(mark.identity),
          .key = LoadKey(header),
          .heat = HeatOf(mark.usage, store_.heat_clock->now()),
          .checkpoint = checkpoint,
          .payload = payload,
          .lives = lives,
          .was_dirty = true};
}

StatusOr<Location> ClassRows::AppendSlot(Location slot, uint32_t checkpoint, bool lives) const {
  EMBANK_CHECK(IsDirty(slot));
  ClearGained(HeaderAt(slot));
  return store_.logs->Append(
      RowOf(slot, PayloadInSlot(HeaderAt(slot), slot_bytes_), checkpoint, lives));
}

StatusOr<Location> ClassRows::AppendPayload(Location location,
                                            std::span<const std::byte> payload) const {
  EMBANK_CHECK(IsDirty(location) && !location.IsInDram());
  ClearGained(HeaderAt(location));
  return store_.logs->Append(RowOf(location, payload, NoteAt(location).checkpoint(), true));
}

Status ClassRows::FlushPending(Location location, std::span<const std::byte> payload) {
  // A checkpoint that fails meanwhile needs it no more.
  if (!IsFlushPending(location)) return OkStatus();
  EMBANK_ASSIGN_OR_RETURN(const Location logged_at, AppendPayload(location, payload));
  EMBANK_CHECK(logged_at.IsInLog());
  NoteAt(location).SetLogged(logged_at);
  Mark(location, false);
  return OkStatus();
}

void ClassRows::OnRaise(KeyIndex::Shard* shard, Location slot, Location to) {
  EMBANK_CHECK(slot.IsInDram() && to.HasDevicePayload());
  if (!has_notes_) return;
  EMBANK_CHECK(!IsFlushPending(slot));
  NoteAt(to).logged = NoteAt(slot).logged;
  Mark(to, NoteAt(to).IsDirty());
  Mark(slot, false);
  pins_.CountIfUnused(slot);
  if (NoteAt(slot).pin != Pins::kNone) pins_.Unpin(slot);
  orders_.Of(shard).Remove(notes_.NumberOf(slot));
  CountEvicted();
}

Status ClassRows::FlushPending(KeyIndex::Shard* shard, std::span<const RowInSlot> rows,
                               std::atomic<uint64_t>* flushed) {
  constexpr uint32_t kLineBytes = 64;
  EMBANK_CHECK(rows.size() <= kFlushedAtOnce);
  for (const RowInSlot& row : rows) {
    __builtin_prefetch(store_.index->ProbeOf(row.id.hash).bucket);
  }
  std::array<Location, kFlushedAtOnce> slots;
  size_t count = 0;
  for (const RowInSlot& row : rows) {
    // Slots of other shards, and their notes, are guarded by other locks.
    if (!store_.index->MatchAt(shard, row.id, row.slot).any()) continue;
    const SlotNote& note = NoteAt(row.slot);
    if (!note.IsDirty() || !store_.gate->IsFlushPending(note.checkpoint())) continue;
    slots[count++] = row.slot;
    const std::byte* const line = store_.tier->Row(row.slot);
    for (uint32_t i = 0; i < slot_bytes_; i += kLineBytes) __builtin_prefetch(line + i);
  }
  if (count == 0) return OkStatus();
  std::array<RowToLog, kFlushedAtOnce> images;
  for (size_t i = 0; i < count; ++i) {
    ClearGained(HeaderAt(slots[i]));
    images[i] = RowOf(slots[i], PayloadInSlot(HeaderAt(slots[i]), slot_bytes_),
                      NoteAt(slots[i]).checkpoint(), true);
  }
  std::array<Location, kFlushedAtOnce> locations;
  size_t saved = 0;
  Status status = store_.logs->AppendAll(std::span(images).first(count), locations, &saved);
  EMBANK_CHECK(saved <= count);
  EMBANK_CHECK(saved == count || !status.ok());
  for (size_t i = 0; i < saved; ++i) {
    NoteAt(slots[i]).SetLogged(locations[i]);
    Mark(slots[i], false);
  }
  if (flushed != nullptr) flushed->fetch_add(saved, std::memory_order_relaxed);
  return status;
}

void ClassRows::CountInLog(const Table& table, Tier tier, int64_t change) {
  EMBANK_CHECK(LocationIn(tier, 0).IsInLog());
  table.AddRowsIn(tier, change);
  const uint64_t before =
      rows_in_log_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
  EMBANK_CHECK(change >= 0 || before >= static_cast<uint64_t>(-change));
}

void ClassRows::CountEvicted() {
  const uint64_t before = rows_in_memory_.fetch_sub(1, std::memory_order_relaxed);
  EMBANK_CHECK(before > 0);
}

Table& TableAt(const ClassRows& rows, Location slot) {
  Table* const table = rows.store().tables->Get(TableOf(LoadIdentity(rows.HeaderAt(slot))));
  EMBANK_CHECK(table != nullptr);
  return *table;
}

void KeepHeat(const ClassRows& rows, KeyHash hash, Location location) {
  const StoreContext& store = rows.store();
  const uint32_t usage = LoadMark(rows.HeaderAt(location)).usage;
  if ((usage & kGainedFlag) == 0) return;
  const uint64_t now = store.heat_clock->epochs();
  store.heat_sketch->Put(hash, HeatOf(usage, static_cast<HeatEpoch>(now)), now);
}

}  // namespace embank
