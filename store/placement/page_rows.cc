#include "store/placement/page_rows.h"

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

PageRows::PageRows(const DramTier& tier, const TableDirectory& tables, uint32_t page,
                   uint32_t first_slot) {
  ForEachSlot(tier, tables, page, first_slot, [&](const SeenSlot& seen) {
    if (!seen.location.HasDevicePayload()) Add(seen);
  });
}

PageRows::PageRows(const DramTier& tier, const TableDirectory& tables, SlotClass slot_class,
                   std::span<const Location> chosen) {
  EMBANK_CHECK(slot_class != kHeaderClass && chosen.size() <= kSlotsAtOnce);
  ForEachOf(tier, tables, slot_class, chosen, [&](const SeenSlot& seen) { Add(seen); });
}

void PageRows::Add(const SeenSlot& seen) {
  mover_ = seen.table->mover();
  const Key key = LoadKey(seen.header);
  seen_[count_++] = {seen.table->IdOf(key, seen.table->HashOf(key)), seen.location};
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
  EMBANK_CHECK(ends[KeyIndex::kShardCount - 1] == count_);
  for (uint32_t shard = 0, first = 0; shard < KeyIndex::kShardCount; first = ends[shard++]) {
    if (ends[shard] == first) continue;
    EMBANK_RETURN_IF_ERROR(
        visit(mover_, shard, std::span(by_shard_).subspan(first, ends[shard] - first)));
  }
  return OkStatus();
}

}  // namespace embank
