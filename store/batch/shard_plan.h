// Positions of a batch, grouped by shard, so that a writer takes a shard's lock once.
#ifndef EMBANK_STORE_BATCH_SHARD_PLAN_H_
#define EMBANK_STORE_BATCH_SHARD_PLAN_H_

#include <array>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/batch/batch.h"

namespace embank {

// The positions of one shard, in order, with the hashes of their keys. `begin`: the number of
// positions in the groups before.
struct ShardGroup {
  KeyIndex::Shard* shard;
  std::span<const uint32_t> positions;
  std::span<const KeyHash> hashes;
  size_t begin;
  std::span<uint32_t> later;  // space for as many numbers, in stores with a log (DeferredRows)
  size_t size() const { return positions.size(); }
};

class ShardPlan {
 public:
  // Allocates scratch for `count` keys: twelve bytes each, and four more for each of the rows that
  // come later. kResourceExhausted.
  Status Allocate(size_t count, size_t later_max = 0);

  // Groups all positions of a batch, or some of them, given in order; prefetches the rows of a
  // small batch. After Allocate.
  void GroupAll(const Batch& batch);
  void Group(const Batch& batch, std::span<const uint32_t> positions);

  // The number of positions that were grouped.
  size_t count() const { return count_; }

  // Calls `body` once per shard that has positions, as Batch::Share does.
  void ForEachShard(const Batch& batch, FunctionRef<void(const ShardGroup&)> body);
  // Does the same on this thread, shard by shard.
  void ForEachGroup(const Batch& batch, FunctionRef<void(const ShardGroup&)> body);

 private:
  // Small batches need no allocation.
  static constexpr size_t kInlineKeys = 64;

  template <typename PositionAt>
  void GroupBy(const Batch& batch, size_t count, PositionAt position_at);

  void PrefetchRows(const Batch& batch) const;
  ShardGroup GroupOf(const Batch& batch, uint32_t number);

  Scratch<KeyHash, kInlineKeys> hashes_;
  Scratch<uint32_t, kInlineKeys> positions_;
  Scratch<uint32_t, kInlineKeys> later_;
  size_t count_ = 0;
  std::array<uint32_t, KeyIndex::kShardCount + 1> group_begin_{};
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_SHARD_PLAN_H_
