#include "store/batch/shard_plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "store/batch/key_group.h"

namespace embank {

Status ShardPlan::Allocate(size_t count, size_t later_max) {
  EMBANK_CHECK(count <= kBatchKeysMax);
  EMBANK_RETURN_IF_ERROR(hashes_.Allocate(count));
  EMBANK_RETURN_IF_ERROR(later_.Allocate(later_max));
  return positions_.Allocate(count);
}

template <typename PositionAt>
void ShardPlan::GroupBy(const Batch& batch, size_t count, PositionAt position_at) {
  EMBANK_CHECK(count <= positions_.values().size());
  count_ = count;
  has_all_ = false;
  UseAll();
  const KeySpan keys = batch.keys();
  const Table& table = batch.table();
  // A single key is a group already.
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
  std::copy_n(group_begin_.begin(), part_begin_.size(), part_begin_.begin());
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
  has_all_ = true;
}

// The groups of a small batch are too small to overlap their cache misses, so those of the whole
// batch overlap. A plan of some positions comes after a search that has brought their rows.
void ShardPlan::PrefetchRows(const Batch& batch) const {
  // As many rows as stay in the second-level cache: 1,024 of 528 bytes are half a megabyte.
  constexpr size_t kKeysMax = 1024;
  if (!has_all_ || parts_ > 1 || count_ > kKeysMax) return;
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

void ShardPlan::UseAll() {
  part_ = 0;
  parts_ = 1;
  part_count_ = count_;
}

void ShardPlan::UsePart(uint32_t number, uint32_t parts) {
  EMBANK_CHECK(number < parts && count_ > 1);
  part_ = number;
  parts_ = parts;
  part_count_ = 0;
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
    part_begin_[shard] = static_cast<uint32_t>(part_count_);
    part_count_ += PartOf(shard).size();
  }
}

// The places of a shard's positions in the part that is in use.
ShardPlan::Places ShardPlan::PartOf(uint32_t shard) const {
  const uint64_t begin = group_begin_[shard];
  const uint64_t count = group_begin_[shard + 1] - begin;
  return {static_cast<uint32_t>(begin + count * part_ / parts_),
          static_cast<uint32_t>(begin + count * (part_ + 1) / parts_)};
}

ShardGroup ShardPlan::GroupOf(const Batch& batch, uint32_t number) {
  const bool is_alone = count_ == 1;
  const Places places = is_alone ? Places{0, 1} : PartOf(number);
  const uint32_t begin = is_alone ? 0 : part_begin_[number];
  const std::span<uint32_t> later = later_.values();
  return {.shard = batch.table().parts().index->shard(number),
          .positions = std::span(positions_.values()).subspan(places.begin, places.size()),
          .hashes = std::span(hashes_.values()).subspan(places.begin, places.size()),
          .begin = begin,
          .offset = is_alone ? 0 : places.begin - group_begin_[number],
          .later = later.empty() ? later : later.subspan(begin, places.size())};
}

void ShardPlan::ForEachGroup(const Batch& batch, FunctionRef<void(const ShardGroup&)> body) {
  if (count_ == 0) return;
  if (count_ == 1) return body(GroupOf(batch, KeyIndex::ShardOf(hashes_.values()[0])));
  for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
    if (PartOf(shard).size() > 0) body(GroupOf(batch, shard));
  }
}

void ShardPlan::ForEachShard(const Batch& batch, FunctionRef<void(const ShardGroup&)> body) {
  if (count_ <= 1) return ForEachGroup(batch, body);
  PrefetchRows(batch);
  // Begins at the first position's shard, so that concurrent batches do not follow each other from
  // lock to lock.
  const uint32_t first = KeyIndex::ShardOf(batch.table().HashOf(batch.keys()[0]));
  std::array<uint8_t, KeyIndex::kShardCount> shards;
  uint32_t shard_count = 0;
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    const uint32_t shard = (first + i) % KeyIndex::kShardCount;
    if (PartOf(shard).size() == 0) continue;
    shards[shard_count++] = static_cast<uint8_t>(shard);
  }
  batch.Share(part_count_, shard_count, [&](uint32_t task) { body(GroupOf(batch, shards[task])); });
}

}  // namespace embank
