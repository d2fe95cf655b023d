#include "store/batch/shard_plan.h"

#include "base/check.h"
#include "base/status_macros.h"
#include "store/batch/key_group.h"
#include "store/placement/compaction.h"
#include "store/placement/page_mover.h"

namespace embank {

Status ShardPlan::Allocate(size_t count) {
  EMBANK_CHECK(count <= kBatchKeysMax);
  EMBANK_RETURN_IF_ERROR(hashes_.Allocate(count));
  return positions_.Allocate(count);
}

template <typename PositionAt>
void ShardPlan::GroupBy(const Batch& batch, size_t count, PositionAt position_at) {
  EMBANK_CHECK(count <= positions_.values().size());
  count_ = count;
  const KeySpan keys = batch.keys();
  const Table& table = batch.table();
  // A key alone is a group as it stands.
  if (count == 1) {
    positions_.values()[0] = position_at(0);
    hashes_.values()[0] = table.HashOf(keys[position_at(0)]);
    return;
  }

  std::array<uint32_t, KeyIndex::kShardCount> next{};
  for (size_t i = 0; i < count; ++i) ++next[KeyIndex::ShardOf(table.HashOf(keys[position_at(i)]))];
  uint32_t begin = 0;
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
    group_begin_[shard] = begin;
    begin += next[shard];
    next[shard] = group_begin_[shard];
  }
  group_begin_[KeyIndex::kShardCount] = begin;
  // Hashing again is cheaper than keeping the hashes in between.
  for (size_t i = 0; i < count; ++i) {
    const uint32_t position = position_at(i);
    const KeyHash hash = table.HashOf(keys[position]);
    const uint32_t place = next[KeyIndex::ShardOf(hash)]++;
    positions_.values()[place] = position;
    hashes_.values()[place] = hash;
  }
}

void ShardPlan::GroupAll(const Batch& batch) {
  GroupBy(batch, batch.keys().size(), [](size_t i) { return static_cast<uint32_t>(i); });
  PrefetchRows(batch);
}

// The groups of a small batch are too small for the cache misses of one to overlap: those of the
// batch may.
void ShardPlan::PrefetchRows(const Batch& batch) const {
  // As many rows as stay in the second-level cache: 1,024 of 528 bytes are half a megabyte.
  constexpr size_t kKeysMax = 1024;
  if (count_ < 2 || count_ > kKeysMax) return;
  const Table& table = batch.table();
  const std::span<const KeyHash> hashes = hashes_.values();
  const EpochTable::Guard guard(table.parts().epochs);
  ForEachGuess<IndexUse::kRead>(
      table, table.layout().row_bytes, count_, [&](size_t i) { return hashes[i]; },
      [](size_t, KeyHash, const Match&) {});
}

void ShardPlan::Group(const Batch& batch, std::span<const uint32_t> positions) {
  GroupBy(batch, positions.size(), [&](size_t i) { return positions[i]; });
}

// Before rows are made or changed: memory for their places in the index, and for the log.
void ShardPlan::MakeMemory(const Batch& batch) const {
  const Table& table = batch.table();
  const StoreParts& parts = table.parts();
  if (parts.pages == nullptr) return;
  parts.pages->MakeLogMemory(*table.mover(), count_);
  const auto make_places = [&](uint32_t number, size_t begin, size_t count) {
    KeyIndex::Shard* const shard = parts.index->shard(number);
    if (!shard->MayNeedMemory(count)) return;
    // Most keys of a large batch may have rows already.
    const std::span<const KeyHash> hashes = std::span(hashes_.values()).subspan(begin, count);
    const std::span<const uint32_t> positions =
        std::span(positions_.values()).subspan(begin, count);
    uint64_t absent = 0;
    {
      const EpochTable::Guard guard(parts.epochs);
      for (size_t i = 0; i < count; ++i) {
        const RowId id = table.IdOf(batch.keys()[positions[i]], hashes[i]);
        absent += parts.index->Find(id).any() ? 0 : 1;
      }
    }
    if (absent > 0) parts.pages->MakePlaces(shard, absent);
  };
  if (count_ == 1) return make_places(KeyIndex::ShardOf(hashes_.values()[0]), 0, 1);
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
    const uint32_t count = group_begin_[shard + 1] - group_begin_[shard];
    if (count > 0) make_places(shard, group_begin_[shard], count);
  }
}

void ShardPlan::ForEachShard(const Batch& batch, FunctionRef<void(const ShardGroup&)> body,
                             Use use) const {
  if (count_ == 0) return;
  const StoreParts& parts = batch.table().parts();
  if (use == Use::kChanges && parts.compaction != nullptr) {
    parts.compaction->MakeRoom(*batch.table().mover(), count_);
    MakeMemory(batch);
  }
  const BatchGate::Ticket ticket(parts.gate);
  if (count_ == 1) {
    const KeyHash hash = hashes_.values()[0];
    return body({batch.table().parts().index->shard(KeyIndex::ShardOf(hash)),
                 std::span(positions_.values()).first(1), std::span(hashes_.values()).first(1), 0});
  }
  // From the first position's shard on: batches that run at once do not follow each other from lock
  // to lock.
  const uint32_t first = KeyIndex::ShardOf(batch.table().HashOf(batch.keys()[0]));
  std::array<uint8_t, KeyIndex::kShardCount> shards;
  uint32_t shard_count = 0;
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    const uint32_t shard = (first + i) % KeyIndex::kShardCount;
    if (group_begin_[shard] == group_begin_[shard + 1]) continue;
    shards[shard_count++] = static_cast<uint8_t>(shard);
  }
  const std::span<const KeyHash> hashes = hashes_.values();
  const std::span<const uint32_t> positions = positions_.values();
  batch.Share(count_, shard_count, [&](uint32_t task) {
    const uint32_t shard = shards[task];
    const uint32_t begin = group_begin_[shard];
    const uint32_t count = group_begin_[shard + 1] - begin;
    body({batch.table().parts().index->shard(shard), positions.subspan(begin, count),
          hashes.subspan(begin, count), begin});
  });
}

}  // namespace embank
