#include "store/placement/page_rows.h"

#include <algorithm>
#include <optional>

#include "base/status_macros.h"
#include "store/table/table.h"

namespace embank {
namespace {

// The headers of so many slots are prefetched, one cache line each.
constexpr uint32_t kSlotsAhead = 16;

}  // namespace

PageRows::PageRows(const DramTier& tier, const TableDirectory& tables, uint32_t page,
                   uint32_t first_slot) {
  // The page's memory stays while this is a reader; the rows may leave.
  std::optional<EpochTable::Guard> reader;
  const DramTier::PageSlots slots = tier.SlotsOf(page, &reader);
  const uint32_t end = std::min(slots.slots, first_slot + kSlotsAtOnce);
  for (uint32_t slot = first_slot; slot < end; ++slot) {
    const Location location = DramTier::SlotAt(page, slots, slot);
    const std::byte* const row = tier.Row(location);
    __builtin_prefetch(row + uint64_t{kSlotsAhead} * slots.slot_bytes);
    const auto* const header = reinterpret_cast<const RowHeader*>(row);
    const TableId owner = TableOf(LoadIdentity(header));
    const Table* const table = owner == kNoTable ? nullptr : tables.Get(owner);
    // A free slot may look like a row of any table.
    if (table == nullptr || table->slot_class() != slots.slot_class) continue;
    mover_ = table->mover();
    const Key key = LoadKey(header);
    seen_[count_++] = {table->IdOf(key, table->HashOf(key)), location};
  }
}

uint32_t PageRows::SlotsOf(const DramTier& tier, uint32_t page) {
  std::optional<EpochTable::Guard> reader;
  return tier.SlotsOf(page, &reader).slots;
}

Status PageRows::ForEachShard(Visit visit) {
  std::array<uint32_t, KeyIndex::kShardCount + 1> ends = {};
  const std::span<const RowInSlot> seen = std::span(seen_).first(count_);
  for (const RowInSlot& row : seen) ++ends[ShardOf(row) + 1];
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) ends[shard + 1] += ends[shard];
  // Each end moves on from its shard's first row to behind its last.
  for (const RowInSlot& row : seen) by_shard_[ends[ShardOf(row)]++] = row;
  for (uint32_t shard = 0, first = 0; shard < KeyIndex::kShardCount; first = ends[shard++]) {
    if (ends[shard] == first) continue;
    EMBANK_RETURN_IF_ERROR(
        visit(mover_, shard, std::span(by_shard_).subspan(first, ends[shard] - first)));
  }
  return OkStatus();
}

}  // namespace embank
