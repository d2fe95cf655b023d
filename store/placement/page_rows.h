// The rows of a part of a DRAM page, grouped by shard.
#ifndef EMBANK_STORE_PLACEMENT_PAGE_ROWS_H_
#define EMBANK_STORE_PLACEMENT_PAGE_ROWS_H_

#include <array>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/status.h"
#include "store/index/key_index.h"
#include "store/placement/row_mover.h"
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"

namespace embank {

// Looks at the slots without locks. A row may have left its slot before the visit: the visitor
// looks again, under the shard's lock.
class PageRows {
 public:
  // So many slots are looked at together: 150 KiB of rows of 576 bytes, which stay in the cache
  // from one look to the next, and four slots of each shard.
  static constexpr uint32_t kSlotsAtOnce = 256;

  // Collects the rows of the page's slots from first_slot on. A page without rows has none.
  PageRows(const DramTier& tier, const TableDirectory& tables, uint32_t page, uint32_t first_slot);

  // The number of the page's slots that were ever taken.
  static uint32_t SlotsOf(const DramTier& tier, uint32_t page);

  // Calls visit(mover, shard, rows) for each shard that has rows, until a call fails; returns that
  // status.
  using Visit = FunctionRef<Status(RowMover*, uint32_t shard, std::span<const RowInSlot>)>;
  Status ForEachShard(Visit visit);

 private:
  static uint32_t ShardOf(const RowInSlot& row) { return KeyIndex::ShardOf(row.id.hash); }

  RowMover* mover_ = nullptr;  // of the page's slot class
  std::array<RowInSlot, kSlotsAtOnce> seen_;
  std::array<RowInSlot, kSlotsAtOnce> by_shard_;
  size_t count_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_PAGE_ROWS_H_
