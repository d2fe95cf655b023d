#include "store/placement/eviction.h"

#include <algorithm>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/table/table.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_write.h"

namespace embank {
namespace {

constexpr uint32_t kLineBytes = 64;
// The processor fetches the rest of a slot by itself.
constexpr uint32_t kSlotBytesAhead = 16 * kLineBytes;
// The shards that other threads have locked, or whose rows the log does not take, before the
// caller's own shard has to do.
constexpr uint32_t kGiversMax = 8;

}  // namespace

size_t Eviction::TakeSlots(KeyIndex::Shard* shard, std::span<Location> slots) {
  const size_t count = TakeFreeSlots(slots);
  return count > 0 ? count : EvictForSlots(shard, slots);
}

size_t Eviction::EvictForSlots(KeyIndex::Shard* shard, std::span<Location> slots) {
  if (store_.logs->empty()) return 0;
  slots_wanted_.fetch_add(slots.size(), std::memory_order_relaxed);
  // After the log has refused one row, this call appends no others; clean rows can still leave.
  bool log_takes = true;
  size_t count = 0;
  // A shard that has much less than its part of DRAM gets slots from the others.
  const uint64_t part = rows_.rows_in_memory() / KeyIndex::kShardCount;
  if (rows_.orders().Of(shard).count() <= part / 2)
    count = EvictFromAnother(shard, slots, &log_takes);
  if (count == 0) count = EvictFrom(shard, slots, &log_takes);
  EMBANK_CHECK(count <= slots.size());
  return count;
}

size_t Eviction::EvictFrom(KeyIndex::Shard* shard, std::span<Location> slots, bool* log_takes) {
  size_t count = 0;
  while (count < slots.size() && (EvictOne(shard, /*pinned_too=*/false, &slots[count], log_takes) ||
                                  EvictOne(shard, /*pinned_too=*/true, &slots[count], log_takes))) {
    ++count;
  }
  return count;
}

// It does not wait for the locks of other shards: two threads might wait for each other.
size_t Eviction::EvictFromAnother(KeyIndex::Shard* shard, std::span<Location> slots,
                                  bool* log_takes) {
  using Visited = SlotOrders::Visited;
  size_t count = 0;
  rows_.orders().VisitGivers(shard->number, kGiversMax, [&](uint32_t number) {
    KeyIndex::Shard* const giver = store_.index->shard(number);
    if (!giver->mutex.TryLock()) return Visited::kInVain;
    const bool is_empty = rows_.orders().Of(giver).count() == 0;
    if (is_empty) {
      rows_.orders().NoteEmpty(giver);
    } else {
      count = EvictFrom(giver, slots, log_takes);
    }
    giver->mutex.Unlock();
    if (is_empty) return Visited::kEmpty;
    return count > 0 ? Visited::kTaken : Visited::kInVain;
  });
  return count;
}

// Prefetches what the shard's next two evictions need, some tens of rows later. The second needs
// header and note. The first, whose header is in the cache by now, needs its entry, its heat and
// its slot, which another row will fill. The function loads, too: g++ 12 drops calls of functions
// that only prefetch.
void Eviction::PrefetchNext(uint32_t victim) const {
  const SlotNotes& notes = rows_.notes();
  const uint32_t next = notes.Of(victim).links.previous;
  if (next >= kEvictionSlotsMax) return;
  const uint32_t then = notes.Of(next).links.previous;
  if (then < kEvictionSlotsMax) {
    __builtin_prefetch(&notes.Of(then), 1);
    __builtin_prefetch(rows_.HeaderAt(notes.LocationOf(then)), 1);
  }
  const Location slot = notes.LocationOf(next);
  const KeyHash hash = TableAt(rows_, slot).HashOf(LoadKey(rows_.HeaderAt(slot)));
  __builtin_prefetch(store_.index->ProbeOf(hash).bucket, 1);
  store_.heat_sketch->Prefetch(hash);
  const std::byte* const row = store_.tier->Row(slot);
  const uint32_t bytes = std::min(rows_.slot_bytes(), kSlotBytesAhead);
  for (uint32_t i = kLineBytes; i < bytes; i += kLineBytes) __builtin_prefetch(row + i, 1);
}

// Rows that it passes over stand aside meanwhile, and keep their places under LRU. If there are too
// many, others would never have a turn: then they count as just used.
bool Eviction::EvictOne(KeyIndex::Shard* shard, bool pinned_too, Location* slot, bool* log_takes) {
  SlotOrders::Order& order = rows_.orders().Of(shard);
  constexpr size_t kAsideMax = kPassedOverMax / 2;
  size_t count = 0;
  bool is_evicted = false;
  while (!is_evicted && count < kAsideMax) {
    const uint32_t victim = order.Victim();
    if (victim == kNoVictim) break;
    *slot = rows_.notes().LocationOf(victim);
    PrefetchNext(victim);
    const bool pinned = !pinned_too && rows_.pins().IsPinned(*slot);
    const bool dirty = rows_.IsDirty(*slot);
    is_evicted = !pinned && (*log_takes || !dirty) && Evict(shard, *slot);
    if (is_evicted) {
      order.Remove(victim);
      break;
    }
    if (!pinned) *log_takes = false;
    order.PutAside(victim);
    ++count;
  }
  const bool too_many = !is_evicted && count == kAsideMax;
  while (too_many && count > 0) {
    order.Add(order.RemoveAside());
    --count;
  }
  order.PutBack();
  return is_evicted;
}

// False: the log takes nothing, the row stays.
bool Eviction::Evict(KeyIndex::Shard* shard, Location slot) {
  RowHeader* const header = rows_.HeaderAt(slot);
  const RowMark mark = LoadMark(header);
  const Key key = LoadKey(header);
  const SlotNote& note = rows_.NoteAt(slot);
  StatusOr<Location> logged_at = Location{note.logged};
  if (note.IsDirty()) logged_at = rows_.AppendSlot(slot, note.checkpoint(), true);
  if (!logged_at.ok()) return false;
  EMBANK_CHECK(logged_at->IsInLog());
  Table& table = *store_.tables->Get(TableOf(mark.identity));
  const RowId id = table.IdOf(key, table.HashOf(key));
  const Match match = store_.index->MatchAt(shard, id, slot);
  EMBANK_CHECK(match.any());
  store_.index->Move(shard, id.hash, match, *logged_at);
  rows_.CountEvicted();
  if (note.IsDirty()) rows_.notes().MarkClean(rows_.notes().NumberOf(slot));
  rows_.pins().CountIfUnused(slot);
  if (note.pin != Pins::kNone) rows_.pins().Unpin(slot);
  if (!Seeded(SeededBug::kVersionNotStepped)) RetireRow(header);
  KeepHeat(rows_, id.hash, slot);
  rows_.CountInLog(table, logged_at->tier(), 1);
  return true;
}

bool Eviction::Vacate(KeyIndex::Shard* shard, const RowInSlot& row) {
  const uint32_t page = DramTier::PageOf(row.slot);
  // Another row may have the slot by now, or none; and the victim may be this row.
  while (store_.index->MatchAt(shard, row.id, row.slot).any()) {
    const SlotNote& note = rows_.NoteAt(row.slot);
    // A checkpoint looks for rows whose flush is pending in the slots in which they were.
    if (note.IsDirty() && store_.gate->IsFlushPending(note.checkpoint()) &&
        !rows_.FlushPending(shard, {&row, 1}).ok()) {
      return false;
    }
    Location slot;
    // The page may have been emptied and given out again meanwhile: then rows stay in it.
    if (!store_.tier->IsClosed(page)) return true;
    if (!TakeSlotElsewhere(shard, &slot)) return false;
    if (DramTier::PageOf(slot) != page) {
      MoveToSlot(shard, row, slot);
      slot = row.slot;
    }
    store_.tier->Free(rows_.slot_class(), {&slot, 1});
  }
  return true;
}

// A free slot of another page of the class, or that of the next victim.
bool Eviction::TakeSlotElsewhere(KeyIndex::Shard* shard, Location* slot) {
  const auto free =
      store_.tier->Allocate(rows_.slot_class(), {slot, 1}, DramTier::Pages::kAsTheyAre);
  return free == 1 || EvictForSlots(shard, {slot, 1}) == 1;
}

void Eviction::MoveToSlot(KeyIndex::Shard* shard, const RowInSlot& row, Location to) {
  const uint32_t from_number = rows_.notes().NumberOf(row.slot);
  const uint32_t to_number = rows_.notes().NumberOf(to);
  EMBANK_CHECK(from_number != to_number);
  EMBANK_CHECK(DramTier::PageOf(row.slot) != DramTier::PageOf(to));
  RowHeader* const from_header = rows_.HeaderAt(row.slot);
  RowHeader* const to_header = rows_.HeaderAt(to);
  const RowMark mark = LoadMark(from_header);
  // Readers of the slot's former row may still look at it.
  std::atomic_ref(to_header->key).store(row.id.key, std::memory_order_relaxed);
  std::atomic_ref(to_header->usage).store(mark.usage, std::memory_order_relaxed);
  const uint32_t identity = BeginRowWrite(to_header);
  CopyToRow(reinterpret_cast<const std::byte*>(from_header + 1),
            static_cast<uint32_t>(rows_.slot_bytes() - sizeof(RowHeader)),
            reinterpret_cast<std::byte*>(to_header + 1));
  EndRowWrite(to_header, identity, row.id.table);
  rows_.notes().Of(to_number) = rows_.notes().Of(from_number);
  if (rows_.notes().Of(to_number).IsDirty()) rows_.notes().MarkDirty(to_number);
  rows_.notes().MarkClean(from_number);
  rows_.orders().Of(shard).Replace(from_number, to_number);
  const Match match = store_.index->MatchAt(shard, row.id, row.slot);
  EMBANK_CHECK(match.any());
  store_.index->Move(shard, row.id.hash, match, to);
  RetireRow(from_header);
  // Lookups that found the row in its former slot have counted there until now.
  const HeatEpoch now = store_.heat_clock->now();
  const uint32_t before = HeatOf(mark.usage, now);
  const uint32_t after = HeatOf(LoadMark(from_header).usage, now);
  if (after > before) TouchHeat(to_header, LoadMark(to_header), now, after - before);
}

}  // namespace embank
