#include "store/placement/row_mover.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "store/table/table.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

constexpr uint32_t kLineBytes = 64;
// Of a slot that will be filled; what follows the processor fetches by itself.
constexpr uint32_t kSlotBytesAhead = 16 * kLineBytes;
// Rows that are seen before what counts as warm is set anew.
constexpr uint32_t kSeenRows = 256;
// Pinned rows that are passed over for one that is forgotten.
constexpr size_t kPinnedMax = 8;

}  // namespace

RowMover::RowMover(const MoverParts& parts, SlotClass slot_class, const RowClass& row_class)
    : parts_(parts),
      slot_class_(slot_class),
      slot_bytes_(row_class.slot_bytes),
      forgets_(row_class.on_full == OnFull::kForget),
      by_heat_(row_class.eviction == EvictionPolicy::kLfu),
      orders_(*parts.tier, *parts.heat_clock, row_class.slot_bytes, row_class.eviction),
      notes_(orders_.notes()) {}

void RowMover::NoteMade(KeyIndex::Shard* shard, Location slot) {
  const uint32_t number = notes_.NumberOf(slot);
  SlotNote& note = notes_.Of(number);
  note.logged = parts_.gate->checkpoint();
  note.pin = Pins::kNone;
  note.untouched = 0;
  OrderOf(shard).Add(number);
  rows_in_memory_.fetch_add(1, std::memory_order_relaxed);
}

bool RowMover::NoteChanging(Location slot) {
  SlotNote& note = notes_.Of(notes_.NumberOf(slot));
  if (Seeded(SeededBug::kChangedRowStaysClean)) return true;
  if (!note.IsDirty()) {
    const bool admitted = Seeded(SeededBug::kRecordOutlivesChange)
                              ? TakeRoom(1) > 0
                              : parts_.log->space().ReserveAndMarkDead({note.logged});
    if (!admitted) return false;
  } else if (parts_.gate->IsOwed(note.checkpoint())) {
    // What was kept for the row goes to the checkpoint.
    if (TakeRoom(1) == 0) return false;
    if (Seeded(SeededBug::kNoPreImage)) {
      GiveRoom(1);
    } else {
      LeavePreImage(slot, note.checkpoint());
    }
  }
  note.logged = parts_.gate->checkpoint();
  note.untouched = 0;
  if (note.pin != Pins::kNone) Unpin(slot);
  return true;
}

// An owed row is about to change: the checkpoint gets it as it was, or fails, and the change goes
// on.
void RowMover::LeavePreImage(Location slot, uint32_t checkpoint) const {
  const StatusOr<Location> image = LogSlot(slot, checkpoint, false);
  if (image.ok()) return;
  parts_.gate->Fail(image.status());
  parts_.log->space().Release(slot_class_, 1);
}

Status RowMover::SaveOwed(KeyIndex::Shard* shard, std::span<const RowInSlot> rows) {
  EMBANK_CHECK(rows.size() <= kOwedAtOnce);
  for (const RowInSlot& row : rows) {
    __builtin_prefetch(parts_.index->ProbeOf(row.id.hash).bucket);
  }
  std::array<Location, kOwedAtOnce> slots;
  size_t count = 0;
  for (const RowInSlot& row : rows) {
    // Others' slots, and their notes, are not this shard's to look at; they may be gone.
    if (!MatchAt(shard, row.id, row.slot).any()) continue;
    const SlotNote& note = notes_.Of(notes_.NumberOf(row.slot));
    if (!note.IsDirty() || !parts_.gate->IsOwed(note.checkpoint())) continue;
    slots[count++] = row.slot;
    const std::byte* const line = parts_.tier->Row(row.slot);
    for (uint32_t i = 0; i < slot_bytes_; i += kLineBytes) __builtin_prefetch(line + i);
  }
  if (count == 0) return OkStatus();
  std::array<RowToLog, kOwedAtOnce> images;
  for (size_t i = 0; i < count; ++i) {
    ForgetGained(slots[i]);
    images[i] = RowOf(slots[i], notes_.Of(notes_.NumberOf(slots[i])).checkpoint(), true);
  }
  std::array<Location, kOwedAtOnce> homes;
  size_t saved = 0;
  Status status = parts_.log->appender().AppendAll(LogStream::kUser, std::span(images).first(count),
                                                   homes, &saved);
  for (size_t i = 0; i < saved; ++i) notes_.Of(notes_.NumberOf(slots[i])).SetLogged(homes[i]);
  return status;
}

void RowMover::NoteGone(KeyIndex::Shard* shard, const Table& table, Location home) {
  if (home.tier() == Tier::kDram) {
    const SlotNote& note = notes_.Of(notes_.NumberOf(home));
    if (!note.IsDirty()) {
      parts_.log->segments().MarkDead({note.logged});
    } else if (parts_.gate->IsOwed(note.checkpoint())) {
      LeavePreImage(home, note.checkpoint());
    } else {
      GiveRoom(1);
    }
    if (note.pin != Pins::kNone) Unpin(home);
    OrderOf(shard).Remove(notes_.NumberOf(home));
    rows_in_memory_.fetch_sub(1, std::memory_order_relaxed);
  } else {
    parts_.log->segments().MarkDead(home);
    CountInLog(table, -1);
  }
}

size_t RowMover::TakeSlots(KeyIndex::Shard* shard, std::span<Location> slots) {
  const size_t count = parts_.tier->Allocate(slot_class_, slots);
  if (count > 0) return count;
  slots_wanted_.fetch_add(slots.size(), std::memory_order_relaxed);
  return EmptySlots(shard, slots);
}

// Slots of rows that leave memory; how many.
size_t RowMover::EmptySlots(KeyIndex::Shard* shard, std::span<Location> slots) {
  // A log that has refused one row is not asked for others in this call: clean rows can leave all
  // the same.
  bool log_takes = true;
  size_t count = 0;
  // A shard that has much less than its part of memory gets it from the others.
  const uint64_t part = rows_in_memory_.load(std::memory_order_relaxed) / KeyIndex::kShardCount;
  if (OrderOf(shard).count() <= part / 2) count = TakeFromAnother(shard, slots, &log_takes);
  if (count == 0) count = Evict(shard, slots, &log_takes);
  return count;
}

size_t RowMover::Evict(KeyIndex::Shard* shard, std::span<Location> slots, bool* log_takes) {
  size_t count = 0;
  while (count < slots.size() && (EvictOne(shard, /*pinned_too=*/false, &slots[count], log_takes) ||
                                  EvictOne(shard, /*pinned_too=*/true, &slots[count], log_takes))) {
    ++count;
  }
  return count;
}

// Asks the cache for what the shard's next two evictions, some tens of rows on each, will need:
// header and note for the second; for the first, whose header that has brought, its entry and heat,
// and the slot, which another row will fill. It loads, too, so that g++ 12 keeps calls of it.
void RowMover::AskForNext(uint32_t victim) const {
  const uint32_t next = notes_.Of(victim).links.previous;
  if (next >= kEvictionSlotsMax) return;
  const uint32_t then = notes_.Of(next).links.previous;
  if (then < kEvictionSlotsMax) {
    __builtin_prefetch(&notes_.Of(then), 1);
    __builtin_prefetch(HeaderAt(notes_.LocationOf(then)), 1);
  }
  const Location slot = notes_.LocationOf(next);
  AskFor(TableAt(slot).HashOf(LoadKey(HeaderAt(slot))));
  const std::byte* const row = parts_.tier->Row(slot);
  const uint32_t bytes = std::min(slot_bytes_, kSlotBytesAhead);
  for (uint32_t i = kLineBytes; i < bytes; i += kLineBytes) __builtin_prefetch(row + i, 1);
}

// Rows that it passes over are out of the order meanwhile: under LFU they would be next again.
bool RowMover::EvictOne(KeyIndex::Shard* shard, bool pinned_too, Location* slot, bool* log_takes) {
  std::array<uint32_t, kPassedOverMax / 2> passed_over;
  size_t count = 0;
  bool left = false;
  while (!left && count < passed_over.size()) {
    const uint32_t victim = OrderOf(shard).Victim();
    if (victim == kNoVictim) break;
    *slot = notes_.LocationOf(victim);
    AskForNext(victim);
    OrderOf(shard).Remove(victim);
    const bool pinned = !pinned_too && IsPinned(*slot);
    const bool dirty = notes_.Of(victim).IsDirty();
    left = !pinned && (*log_takes || !dirty) && Leave(shard, *slot);
    if (left) break;
    if (!pinned) *log_takes = false;
    passed_over[count++] = victim;
  }
  for (size_t i = 0; i < count; ++i) OrderOf(shard).Add(passed_over[i]);
  return left;
}

// Forgets a pin that has lapsed.
bool RowMover::IsPinned(Location slot) const {
  SlotNote& note = notes_.Of(notes_.NumberOf(slot));
  const auto pin = static_cast<Pins::Mark>(note.pin);
  if (pin == Pins::kNone) return false;
  if (TableAt(slot).pins().Stands(pin)) return true;
  note.pin = Pins::kNone;
  return false;
}

// False: the log takes nothing, the row stays.
bool RowMover::Leave(KeyIndex::Shard* shard, Location slot) {
  RowHeader* const header = HeaderAt(slot);
  const RowMark mark = LoadMark(header);
  const Key key = LoadKey(header);
  const SlotNote& note = notes_.Of(notes_.NumberOf(slot));
  StatusOr<Location> home = Location{note.logged};
  if (note.IsDirty()) home = LogSlot(slot, note.checkpoint(), true);
  if (!home.ok()) return false;
  Table& table = *parts_.tables->Get(TableOf(mark.identity));
  const RowId id = table.IdOf(key, table.HashOf(key));
  const Match match = MatchAt(shard, id, slot);
  EMBANK_CHECK(match.any());
  parts_.index->Move(shard, id.hash, match, *home);
  rows_in_memory_.fetch_sub(1, std::memory_order_relaxed);
  CountIfUnused(slot);
  if (note.pin != Pins::kNone) Unpin(slot);
  if (!Seeded(SeededBug::kVersionNotStepped)) RetireRow(header);
  // No lookup adds to it any more.
  const uint32_t usage = LoadMark(header).usage;
  if ((usage & kGainedFlag) != 0) {
    const uint64_t now = parts_.heat_clock->epochs();
    parts_.heat_sketch->Put(id.hash, HeatOf(usage, static_cast<HeatEpoch>(now)), now);
  }
  CountInLog(table, 1);
  return true;
}

// A row that a prefetch has brought up leaves, and nobody has looked it up.
void RowMover::CountIfUnused(Location slot) const {
  const bool untouched = notes_.Of(notes_.NumberOf(slot)).untouched != 0;
  const uint32_t usage = LoadMark(HeaderAt(slot)).usage;
  if (untouched && (usage & kReferencedFlag) == 0) TableAt(slot).CountUnusedPrefetch();
}

// Without waiting for their locks: two of them might wait for each other.
size_t RowMover::TakeFromAnother(KeyIndex::Shard* shard, std::span<Location> slots,
                                 bool* log_takes) {
  for (uint32_t tries = 0; tries < KeyIndex::kShardCount; ++tries) {
    const uint32_t number = next_giver_.fetch_add(1) % KeyIndex::kShardCount;
    KeyIndex::Shard* const giver = parts_.index->shard(number);
    if (giver == shard || !giver->mutex.TryLock()) continue;
    const size_t count = Evict(giver, slots, log_takes);
    giver->mutex.Unlock();
    if (count > 0) return count;
  }
  return 0;
}

// The entry of a row that names a place, or none.
Match RowMover::MatchAt(KeyIndex::Shard* shard, const RowId& id, Location location) const {
  Match match = {};
  parts_.index->VisitMatches(shard, id, [&](const Match& candidate) {
    if (candidate.location() == location) match = candidate;
    return match.any();
  });
  return match;
}

// Before a row's heat is read for its record: what lookups add from here on that may not have.
void RowMover::ForgetGained(Location slot) const {
  std::atomic_ref(HeaderAt(slot)->usage).fetch_and(~kGainedFlag, std::memory_order_relaxed);
}

RowToLog RowMover::RowOf(Location slot, uint32_t checkpoint, bool lives) const {
  const RowHeader* const header = HeaderAt(slot);
  const RowMark mark = LoadMark(header);
  return {.row_class = slot_class_,
          .record_bytes = RecordBytesOf(slot_bytes_),
          .table = TableOf(mark.identity),
          .key = LoadKey(header),
          .heat = HeatOf(mark.usage, parts_.heat_clock->now()),
          .checkpoint = checkpoint,
          .payload = PayloadOf(parts_.tier->Row(slot)),
          .lives = lives,
          .was_dirty = true};
}

StatusOr<Location> RowMover::LogSlot(Location slot, uint32_t checkpoint, bool lives) const {
  ForgetGained(slot);
  return parts_.log->appender().Append(LogStream::kUser, RowOf(slot, checkpoint, lives));
}

bool RowMover::PutInLog(KeyIndex::Shard* shard, const RowId& id, uint32_t heat,
                        const std::byte* row, const Match& match) {
  if (TakeRoom(1) == 0) return false;
  const StatusOr<Location> home =
      parts_.log->appender().Append(LogStream::kUser, {.row_class = slot_class_,
                                                       .record_bytes = RecordBytesOf(slot_bytes_),
                                                       .table = id.table,
                                                       .key = id.key,
                                                       .heat = heat,
                                                       .checkpoint = parts_.gate->checkpoint(),
                                                       .payload = PayloadOf(row),
                                                       .was_dirty = true});
  if (!home.ok()) {
    GiveRoom(1);
    return false;
  }
  if (match.any()) {
    const Location former = match.location();
    parts_.index->Move(shard, id.hash, match, *home);
    parts_.log->segments().MarkDead(former);
  } else {
    parts_.index->Insert(shard, id.hash, *home);
    CountInLog(*parts_.tables->Get(id.table), 1);
  }
  return true;
}

StatusOr<Match> RowMover::Resolve(KeyIndex::Shard* shard, const RowId& id, RecordScratch* scratch,
                                  std::span<const std::byte>* record, Match* unread) const {
  Match found = {};
  *unread = {};
  Status unread_status;
  parts_.index->VisitMatches(shard, id, [&](const Match& match) {
    if (match.location().tier() == Tier::kSsd) {
      const auto read = parts_.log->reader().ReadOne(match.location(), scratch);
      if (!read.ok()) {
        SlotOwner owner;
        const bool is_known = parts_.log->owners().OwnerOf(match.location(), scratch, &owner);
        const bool is_row = is_known && owner.table == id.table && owner.key == id.key;
        if (is_known && !is_row) return false;
        unread_status = read.status();
        if (is_row) *unread = match;
        return is_row;
      }
      if (!IsRecordOf(id, *read)) return false;
      *record = *read;
    }
    found = match;
    return true;
  });
  const bool is_lost = !found.any() && !unread_status.ok();
  if (is_lost && !Seeded(SeededBug::kLossIsAbsence)) return unread_status;
  return found;
}

Outcome RowMover::Find(KeyIndex::Shard* shard, const RowId& id, RecordScratch* scratch,
                       Match* match) const {
  std::span<const std::byte> record;
  const StatusOr<Match> found = Resolve(shard, id, scratch, &record, match);
  if (!found.ok()) return Outcome::kDataLoss;
  *match = *found;
  return found->any() ? Outcome::kFound : Outcome::kAbsent;
}

uint32_t RowMover::HeatInLog(KeyHash hash, std::span<const std::byte> record) const {
  const uint32_t logged = std::min(LoadRecordHeader(record).heat, kHeatMax);
  return std::max(logged, parts_.heat_sketch->Get(hash, parts_.heat_clock->epochs()));
}

void RowMover::TouchInLog(KeyHash hash, std::span<const std::byte> record, uint32_t touches) {
  if (touches == 0) return;
  const uint32_t heat = std::min(HeatInLog(hash, record), kHeatMax - touches) + touches;
  parts_.heat_sketch->Put(hash, heat, parts_.heat_clock->epochs());
}

Match RowMover::BringUp(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                        std::span<const std::byte> record, uint32_t touches) {
  Location slot;
  if (TakeSlots(shard, {&slot, 1}) == 0) {
    TouchInLog(id.hash, record, touches);
    return {};
  }
  return BringUpTo(slot, shard, id, match, record, touches);
}

bool RowMover::BringUpAhead(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                            std::span<const std::byte> record, bool may_evict) {
  Location slot;
  const std::span<Location> one(&slot, 1);
  const size_t taken = may_evict ? TakeSlots(shard, one) : parts_.tier->Allocate(slot_class_, one);
  if (taken == 0) return false;
  BringUpTo(slot, shard, id, match, record, 0);
  SlotNote& note = notes_.Of(notes_.NumberOf(slot));
  note.pin = parts_.tables->Get(id.table)->pins().Add();
  note.untouched = 1;
  return true;
}

Match RowMover::BringUpTo(Location slot, KeyIndex::Shard* shard, const RowId& id,
                          const Match& match, std::span<const std::byte> record, uint32_t touches) {
  RowHeader* const header = HeaderAt(slot);
  const RecordHeader logged = LoadRecordHeader(record);
  const uint64_t now = parts_.heat_clock->epochs();
  const uint32_t left_with = parts_.heat_sketch->Take(id.hash, now);
  const uint32_t heat = std::min(std::max(logged.heat, left_with), kHeatMax - touches) + touches;
  // Readers of the slot's former row may still look at it.
  std::atomic_ref(header->key).store(id.key, std::memory_order_relaxed);
  std::atomic_ref(header->usage)
      .store(PackUsage(heat == logged.heat ? 0 : kGainedFlag, heat, static_cast<HeatEpoch>(now)),
             std::memory_order_relaxed);
  const uint32_t identity = BeginRowWrite(header);
  CopyToRow(record.data() + sizeof(RecordHeader),
            static_cast<uint32_t>(record.size() - sizeof(RecordHeader)),
            reinterpret_cast<std::byte*>(header + 1));
  EndRowWrite(header, identity, id.table);
  const Location home = match.location();
  const Match up = parts_.index->Move(shard, id.hash, match, slot);
  NoteMade(shard, slot);
  notes_.Of(notes_.NumberOf(slot)).SetLogged(home);
  CountInLog(*parts_.tables->Get(id.table), -1);
  return up;
}

RowMover::Logged RowMover::FindLogged(KeyIndex::Shard* shard, const RowId& id,
                                      Location from) const {
  Logged logged;
  parts_.index->VisitMatches(shard, id, [&](const Match& candidate) {
    if (candidate.location() == from) logged.match = candidate;
    if (candidate.location().tier() == Tier::kDram) {
      logged.note = &notes_.Of(notes_.NumberOf(candidate.location()));
    }
    return logged.any();
  });
  const bool is_other = logged.note != nullptr && logged.note->logged != from.units;
  return is_other && !Seeded(SeededBug::kMovedWithoutLook) ? Logged{} : logged;
}

bool RowMover::WriteAnew(KeyIndex::Shard* shard, const RowId& id, Location from,
                         const Logged& logged, std::span<const std::byte> record, uint32_t heat) {
  const StatusOr<Location> home = parts_.log->appender().Append(
      LogStream::kCompaction, {.row_class = slot_class_,
                               .record_bytes = RecordBytesOf(slot_bytes_),
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
  parts_.log->segments().MarkDead(from);
  return true;
}

bool RowMover::Relocate(KeyIndex::Shard* shard, const RowId& id, Location from,
                        std::span<const std::byte> record) {
  const Logged logged = FindLogged(shard, id, from);
  return !logged.any() || WriteAnew(shard, id, from, logged, record, LoadRecordHeader(record).heat);
}

RowMover::Fate RowMover::ForgetOrSpare(KeyIndex::Shard* shard, const RowId& id, Location from,
                                       std::span<const std::byte> record) {
  const Logged logged = FindLogged(shard, id, from);
  if (!logged.any()) return Fate::kElsewhere;
  if (logged.note != nullptr) {
    Spare(shard, id, from, logged, record, LoadRecordHeader(record).heat);
    return Fate::kInMemory;
  }
  const bool is_warm = IsWarm(id.hash, record);
  NoteSeen(is_warm);
  const uint32_t heat = HeatInLog(id.hash, record);
  // What is written anew has not been looked up since.
  parts_.heat_sketch->Take(id.hash, parts_.heat_clock->epochs());
  if (is_warm && Spare(shard, id, from, logged, record, heat)) return Fate::kSpared;
  Table& table = *parts_.tables->Get(id.table);
  parts_.index->Erase(shard, id.hash, logged.match);
  NoteGone(shard, table, from);
  table.CountForgotten();
  sparings_ = std::min(sparings_ + 1, kSparingsMax);
  return Fate::kForgotten;
}

bool RowMover::Spare(KeyIndex::Shard* shard, const RowId& id, Location from, const Logged& logged,
                     std::span<const std::byte> record, uint32_t heat) {
  if (sparings_ == 0 || !WriteAnew(shard, id, from, logged, record, heat)) return false;
  --sparings_;
  return true;
}

bool RowMover::IsWarm(KeyHash hash, std::span<const std::byte> record) const {
  if (!by_heat_) return parts_.heat_sketch->Get(hash, parts_.heat_clock->epochs()) > 0;
  return static_cast<uint32_t>(std::bit_width(HeatInLog(hash, record))) > warm_bits_;
}

// More than three quarters of what is seen are warm: warm begins higher; fewer than a quarter:
// lower.
void RowMover::NoteSeen(bool is_warm) {
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

bool RowMover::ForgetColdest(KeyIndex::Shard* shard) {
  SlotOrders::Order& order = OrderOf(shard);
  // In turn, shards would drift apart.
  if (order.count() * KeyIndex::kShardCount < rows_in_memory()) return false;
  // Under LFU what is passed over would be next again.
  std::array<uint32_t, kPinnedMax> pinned;
  size_t count = 0;
  uint32_t victim = order.Victim();
  for (; victim != kNoVictim && IsPinned(notes_.LocationOf(victim)) && count < pinned.size();
       victim = order.Victim()) {
    order.Remove(victim);
    pinned[count++] = victim;
  }
  const bool found = victim != kNoVictim && !IsPinned(notes_.LocationOf(victim));
  if (found) ForgetSlot(shard, notes_.LocationOf(victim));
  for (size_t i = 0; i < count; ++i) order.Add(pinned[i]);
  return found;
}

void RowMover::ForgetSlot(KeyIndex::Shard* shard, Location slot) {
  RowHeader* const header = HeaderAt(slot);
  Table& table = TableAt(slot);
  const Key key = LoadKey(header);
  const RowId id = table.IdOf(key, table.HashOf(key));
  const Match match = MatchAt(shard, id, slot);
  EMBANK_CHECK(match.any());
  parts_.index->Erase(shard, id.hash, match);
  CountIfUnused(slot);
  NoteGone(shard, table, slot);
  RetireRow(header);
  parts_.tier->Free(slot_class_, {&slot, 1});
  table.CountForgotten();
}

void RowMover::Pin(Location slot) {
  SlotNote& note = notes_.Of(notes_.NumberOf(slot));
  note.pin = TableAt(slot).pins().Renew(static_cast<Pins::Mark>(note.pin));
}

void RowMover::Unpin(Location slot) {
  SlotNote& note = notes_.Of(notes_.NumberOf(slot));
  TableAt(slot).pins().Release(static_cast<Pins::Mark>(note.pin));
  note.pin = Pins::kNone;
}

Table& RowMover::TableAt(Location slot) const {
  return *parts_.tables->Get(TableOf(LoadIdentity(HeaderAt(slot))));
}

void RowMover::CountInLog(const Table& table, int64_t change) {
  table.AddRowsInLog(change);
  rows_in_log_.fetch_add(static_cast<uint64_t>(change), std::memory_order_relaxed);
}

}  // namespace embank
