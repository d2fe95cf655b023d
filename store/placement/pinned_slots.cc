#include "store/placement/pinned_slots.h"

#include "base/check.h"
#include "store/table/table.h"

namespace embank {

Table& PinnedSlots::TableAt(Location slot) const {
  const auto* const header = reinterpret_cast<const RowHeader*>(tier_.Row(slot));
  Table* const table = tables_.Get(TableOf(LoadIdentity(header)));
  EMBANK_CHECK(table != nullptr);
  return *table;
}

void PinnedSlots::Pin(Location slot) const {
  SlotNote& note = NoteAt(slot);
  note.pin = TableAt(slot).pins().Renew(static_cast<Pins::Mark>(note.pin));
}

void PinnedSlots::Unpin(Location slot) const {
  SlotNote& note = NoteAt(slot);
  EMBANK_CHECK(note.pin != Pins::kNone);
  TableAt(slot).pins().Release(static_cast<Pins::Mark>(note.pin));
  note.pin = Pins::kNone;
}

bool PinnedSlots::IsPinned(Location slot) const {
  SlotNote& note = NoteAt(slot);
  const auto pin = static_cast<Pins::Mark>(note.pin);
  if (pin == Pins::kNone) return false;
  if (TableAt(slot).pins().IsCurrent(pin)) return true;
  note.pin = Pins::kNone;
  return false;
}

void PinnedSlots::CountIfUnused(Location slot) const {
  const bool untouched = NoteAt(slot).untouched != 0;
  const uint32_t usage = LoadMark(reinterpret_cast<const RowHeader*>(tier_.Row(slot))).usage;
  if (untouched && (usage & kReferencedFlag) == 0) {
    TableAt(slot).counters().unused_rows.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace embank
