#include "store/batch/shard_plan.h"

#include <algorithm>

#include "base/check.h"
#include "base/status_macros.h"
#include "store/batch/guesses_ahead.h"

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

// The places of a shard's positions in the part that is in use. A single position is in a shard of
// its own, the one that is asked for.
ShardPlan::Places ShardPlan::PartOf(uint32_t shard) const {
  if (count_ == 1) return {0, 1};
  if (parts_ == 1) return {group_begin_[shard], group_begin_[shard + 1]};
  const uint64_t begin = group_begin_[shard];
  const uint64_t count = group_begin_[shard + 1] - begin;
  return {static_cast<uint32_t>(begin + count * part_ / parts_),
          static_cast<uint32_t>(begin + count * (part_ + 1) / parts_)};
}

ShardGroup ShardPlan::GroupOf(const Batch& batch, uint32_t number) {
  const bool is_alone = count_ == 1;
  const Places places = PartOf(number);
  const uint32_t begin = is_alone ? 0 : part_begin_[number];
  const std::span<uint32_t> later = later_.values();
  return {.shard = batch.table().store().index->shard(number),
          .positions = std::span(positions_.values()).subspan(places.begin, places.size()),
          .hashes = &hashes_.values()[places.begin],
          .begin = begin,
          .offset = is_alone ? 0 : places.begin - group_begin_[number],
          .later = later.empty() ? later : later.subspan(begin, places.size()),
          .guesses = nullptr,
          .first_guess = 0};
}

// The shards that have positions, from the `first` on.
ShardPlan::Shards ShardPlan::ShardsFrom(uint32_t first) const {
  Shards shards;
  if (count_ == 1) {
    shards.Add(KeyIndex::ShardOf(hashes_.values()[0]));
    return shards;
  }
  for (uint32_t i = 0; i < KeyIndex::kShardCount && count_ > 0; ++i) {
    const uint32_t shard = (first + i) % KeyIndex::kShardCount;
    if (PartOf(shard).size() > 0) shards.Add(shard);
  }
  return shards;
}

// The keys of a run in the order in which their guesses are asked for.
class ShardPlan::RunKeys {
 public:
  RunKeys(ShardPlan* plan, const Batch& batch, std::span<const uint8_t> shards,
          const Choose* choose)
      : plan_(*plan), batch_(batch), shards_(shards), choose_(choose) {}

  // The number of keys of a group of the run.
  size_t CountOf(const ShardGroup& group) const {
    return choose_ == nullptr ? group.size() : (*choose_)(group).size();
  }

  // As GuessesAhead::NextHashes.
  size_t NextHashes(KeyHash* hashes) {
    size_t size = 0;
    while (size < kGroupKeys && (place_ < count_ || ReadNextShard())) {
      hashes[size++] = hashes_[indexes_ == nullptr ? place_ : indexes_[place_]];
      ++place_;
    }
    return size;
  }

 private:
  // Goes to the first key of the next shard; false: there is none.
  bool ReadNextShard() {
    if (shards_read_ == shards_.size()) return false;
    const ShardGroup group = plan_.GroupOf(batch_, shards_[shards_read_++]);
    hashes_ = group.hashes;
    indexes_ = nullptr;
    count_ = group.size();
    if (choose_ != nullptr) {
      const std::span<const uint32_t> chosen = (*choose_)(group);
      indexes_ = chosen.data();
      count_ = chosen.size();
    }
    place_ = 0;
    EMBANK_CHECK(count_ > 0);
    return true;
  }

  ShardPlan& plan_;
  const Batch& batch_;
  const std::span<const uint8_t> shards_;
  const Choose* const choose_;
  size_t shards_read_ = 0;
  // The keys of the shard that was read last, and the number of them that were read.
  const KeyHash* hashes_ = nullptr;
  const uint32_t* indexes_ = nullptr;  // nullptr: all of the group
  size_t count_ = 0;
  size_t place_ = 0;
};

void ShardPlan::VisitRun(const Batch& batch, std::span<const uint8_t> shards, Body body,
                         const Choose* choose) {
  RunKeys keys(this, batch, shards, choose);
  const auto next_hashes = [&](KeyHash* hashes) { return keys.NextHashes(hashes); };
  GuessesAhead guesses(batch.table(), next_hashes, shards.size() == 1);
  uint32_t first_guess = 0;
  for (const uint8_t shard : shards) {
    ShardGroup group = GroupOf(batch, shard);
    group.guesses = &guesses;
    group.first_guess = first_guess;
    first_guess += static_cast<uint32_t>(keys.CountOf(group));
    body(group);
  }
}

void ShardPlan::ForEachGroup(const Batch& batch, Body body) {
  const Shards shards = ShardsFrom(0);
  if (shards.count > 0) VisitRun(batch, shards.Run(0, 1), body, nullptr);
}

void ShardPlan::ForEachShard(const Batch& batch, Body body, const Choose* choose) {
  if (count_ == 0) return;
  // Begins at the first position's shard, so that concurrent batches do not follow each other from
  // lock to lock.
  const Shards shards = ShardsFrom(KeyIndex::ShardOf(batch.table().HashOf(batch.keys()[0])));
  // One shard with several groups overlaps its own misses. Its lock is held, so that no guard is
  // needed.
  const bool are_large = part_count_ >= kRunKeysMin * shards.count;
  const uint32_t runs = are_large ? shards.count : 1;
  batch.Share(part_count_, runs,
              [&](uint32_t run) { VisitRun(batch, shards.Run(run, runs), body, choose); });
}

}  // namespace embank
