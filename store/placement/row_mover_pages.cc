// How rows leave a page of DRAM that is needed elsewhere (store/placement/page_mover.h).
#include <algorithm>

#include "base/check.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_write.h"

namespace embank {

bool RowMover::Vacate(KeyIndex::Shard* shard, const RowInSlot& row) {
  const uint32_t page = DramTier::PageOf(row.slot);
  // Another row may have the slot by now, or none; and one that leaves may be this one.
  while (MatchAt(shard, row.id, row.slot).any()) {
    const SlotNote& note = notes_.Of(notes_.NumberOf(row.slot));
    // A checkpoint looks for rows that are owed to it in the slots in which they were.
    if (note.IsDirty() && parts_.gate->IsOwed(note.checkpoint()) &&
        !SaveOwed(shard, {&row, 1}).ok()) {
      return false;
    }
    Location slot;
    // It may have been emptied and given out again meanwhile: then rows stay in it.
    if (!parts_.tier->IsClosed(page)) return true;
    if (!TakeSlotFor(shard, &slot)) return false;
    if (DramTier::PageOf(slot) != page) {
      MoveToSlot(shard, row, slot);
      slot = row.slot;
    }
    parts_.tier->Free(slot_class_, {&slot, 1});
  }
  return true;
}

// A free slot of another page of the class, or that of the row that leaves next.
bool RowMover::TakeSlotFor(KeyIndex::Shard* shard, Location* slot) {
  return parts_.tier->Allocate(slot_class_, {slot, 1}, DramTier::Pages::kAsTheyAre) == 1 ||
         EmptySlots(shard, {slot, 1}) == 1;
}

void RowMover::MoveToSlot(KeyIndex::Shard* shard, const RowInSlot& row, Location to) {
  const uint32_t from_number = notes_.NumberOf(row.slot);
  const uint32_t to_number = notes_.NumberOf(to);
  RowHeader* const from_header = HeaderAt(row.slot);
  RowHeader* const to_header = HeaderAt(to);
  const RowMark mark = LoadMark(from_header);
  // Readers of the slot's former row may still look at it.
  std::atomic_ref(to_header->key).store(row.id.key, std::memory_order_relaxed);
  std::atomic_ref(to_header->usage).store(mark.usage, std::memory_order_relaxed);
  const uint32_t identity = BeginRowWrite(to_header);
  CopyToRow(reinterpret_cast<const std::byte*>(from_header + 1),
            static_cast<uint32_t>(slot_bytes_ - sizeof(RowHeader)),
            reinterpret_cast<std::byte*>(to_header + 1));
  EndRowWrite(to_header, identity, row.id.table);
  SlotNote& note = notes_.Of(to_number);
  note = notes_.Of(from_number);
  OrderOf(shard).Replace(from_number, to_number);
  parts_.index->Move(shard, row.id.hash, MatchAt(shard, row.id, row.slot), to);
  RetireRow(from_header);
  // Lookups that found the row in its former slot have counted there until now.
  const HeatEpoch now = parts_.heat_clock->now();
  const RowMark last = LoadMark(from_header);
  const uint32_t before = HeatOf(mark.usage, now);
  const uint32_t after = HeatOf(last.usage, now);
  if (after > before) TouchHeat(to_header, LoadMark(to_header), now, after - before);
}

}  // namespace embank
