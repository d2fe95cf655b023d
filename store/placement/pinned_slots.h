// The pins of rows in the slots of one row class (store/table/pins.h).
#ifndef EMBANK_STORE_PLACEMENT_PINNED_SLOTS_H_
#define EMBANK_STORE_PLACEMENT_PINNED_SLOTS_H_

#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/dram/slot_notes.h"
#include "tiers/row/location.h"

namespace embank {

// The caller holds the lock of the row's shard.
class PinnedSlots {
 public:
  // All of them outlive it.
  PinnedSlots(const DramTier& tier, const TableDirectory& tables, const SlotNotes& notes)
      : tier_(tier), tables_(tables), notes_(notes) {}

  // Pins the row in a slot from now on, if its table may pin one more row.
  void Pin(Location slot) const;
  void Unpin(Location slot) const;
  // Whether the row in a slot is pinned. Ends a pin that has lapsed.
  bool IsPinned(Location slot) const;
  // Counts a row that leaves DRAM, if a prefetch promoted it and no lookup used it.
  void CountIfUnused(Location slot) const;

 private:
  Table& TableAt(Location slot) const;
  SlotNote& NoteAt(Location slot) const { return notes_.Of(notes_.NumberOf(slot)); }

  const DramTier& tier_;
  const TableDirectory& tables_;
  const SlotNotes& notes_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_PINNED_SLOTS_H_
