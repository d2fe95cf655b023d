// Walks over the slots of DRAM pages, and the rows of some slots, grouped by shard.
#ifndef EMBANK_STORE_PLACEMENT_PAGE_ROWS_H_
#define EMBANK_STORE_PLACEMENT_PAGE_ROWS_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>

#include "base/function_ref.h"
#include "base/status.h"
#include "store/index/key_index.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"

namespace embank {

// So many slots are looked at together: 150 KiB of rows of 576 bytes, which stay in the cache from
// one look to the next, and four slots of each shard.
inline constexpr uint32_t kSlotsAtOnce = 256;

// A slot that seems to hold a row: a free slot may look like one, and the row may have left.
struct SeenSlot {
  Location location;  // of the row: the slot, or an HBM row whose header is in the slot
  const RowHeader* header;
  RowMark mark;
  const Table* table;
};

// Calls visit(seen) if a slot of a page seems to hold a row. The thread is a reader.
template <typename Visit>
void VisitSlot(const DramTier& tier, const TableDirectory& tables, const DramTier::PageSlots& slots,
               Location at, Visit& visit) {
  const bool in_hbm = slots.slot_class == kHeaderClass;
  const auto* const header = reinterpret_cast<const RowHeader*>(tier.Row(at));
  const RowMark mark = LoadMark(header);
  const TableId owner = TableOf(mark.identity);
  const Table* const table = owner == kNoTable ? nullptr : tables.Get(owner);
  if (table == nullptr || !(in_hbm || table->slot_class() == slots.slot_class)) return;
  visit(SeenSlot{in_hbm ? LocationIn(Tier::kHbm, at.units) : at, header, mark, table});
}

// How many slots ahead of the walk headers are prefetched, one cache line each.
inline constexpr uint64_t kSlotsAhead = 16;

// Calls visit(seen) for those of kSlotsAtOnce slots of a page, from first_slot on, that seem to
// hold rows, without locks. Meanwhile the thread is a reader, so that the page's memory stays.
// Returns the number of the page's slots that were ever taken.
template <typename Visit>
uint32_t ForEachSlot(const DramTier& tier, const TableDirectory& tables, uint32_t page,
                     uint32_t first_slot, Visit visit) {
  std::optional<EpochTable::Guard> reader;
  const DramTier::PageSlots slots = tier.SlotsOf(page, &reader);
  const uint32_t end = std::min(slots.slots, first_slot + kSlotsAtOnce);
  for (uint32_t slot = first_slot; slot < end; ++slot) {
    const Location at = DramTier::SlotAt(page, slots, slot);
    __builtin_prefetch(tier.Row(at) + kSlotsAhead * slots.slot_bytes);
    VisitSlot(tier, tables, slots, at, visit);
  }
  return slots.slots;
}

// Does the same for some slots of one class, in the order of memory. Those of a page that is
// another class's by now are left out.
template <typename Visit>
void ForEachOf(const DramTier& tier, const TableDirectory& tables, SlotClass slot_class,
               std::span<const Location> chosen, Visit visit) {
  for (size_t i = 0; i < chosen.size();) {
    const uint32_t page = DramTier::PageOf(chosen[i]);
    std::optional<EpochTable::Guard> reader;
    const DramTier::PageSlots slots = tier.SlotsOf(page, &reader);
    for (; i < chosen.size() && DramTier::PageOf(chosen[i]) == page; ++i) {
      if (i + kSlotsAhead < chosen.size()) __builtin_prefetch(tier.Row(chosen[i + kSlotsAhead]));
      if (slots.slot_class == slot_class) VisitSlot(tier, tables, slots, chosen[i], visit);
    }
  }
}

// Looks at the slots without locks. A row may have left its slot before the visit: the visitor
// looks again, under the shard's lock.
class PageRows {
 public:
  // Collects the rows of kSlotsAtOnce slots of the page from first_slot on, but no HBM rows.
  PageRows(const DramTier& tier, const TableDirectory& tables, uint32_t page, uint32_t first_slot);
  // Collects the rows of these slots, at most kSlotsAtOnce of one class that has whole rows.
  PageRows(const DramTier& tier, const TableDirectory& tables, SlotClass slot_class,
           std::span<const Location> chosen);

  // The number of the page's slots that were ever taken.
  static uint32_t SlotsOf(const DramTier& tier, uint32_t page);

  // Calls visit(mover, shard, rows) for each shard that has rows, until a call fails; returns that
  // status.
  using Visit = FunctionRef<Status(RowMover*, uint32_t shard, std::span<const RowInSlot>)>;
  Status ForEachShard(Visit visit);

 private:
  void Add(const SeenSlot& seen);
  static uint32_t ShardOf(const RowInSlot& row) { return KeyIndex::ShardOf(row.id.hash); }

  RowMover* mover_ = nullptr;  // of the slot class
  std::array<RowInSlot, kSlotsAtOnce> seen_;
  std::array<RowInSlot, kSlotsAtOnce> by_shard_;
  size_t count_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_PAGE_ROWS_H_
