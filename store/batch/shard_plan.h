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

// The positions of one shard, in order, with the hashes of their keys. `begin`: how many positions
// stand in the groups before.
struct ShardGroup {
  KeyIndex::Shard* shard;
  std::span<const uint32_t> positions;
  std::span<const KeyHash> hashes;
  size_t begin;
  size_t size() const { return positions.size(); }
};

class ShardPlan {
 public:
  // Makes room for `count` keys: twelve bytes of scratch each; kResourceExhausted.
  Status Allocate(size_t count);

  // Groups all positions of a batch, and asks the cache for the rows of a small one; or some of
  // them, given in order. After Allocate.
  void GroupAll(const Batch& batch);
  void Group(const Batch& batch, std::span<const uint32_t> positions);

  // Whether bodies make rows dirty, for which the log may have to make room first.
  enum class Use { kChanges, kNeedsNoRoom };

  // Calls `body` once per shard that has positions, as Batch::Share does. No flip of checkpoints
  // comes between them.
  void ForEachShard(const Batch& batch, FunctionRef<void(const ShardGroup&)> body,
                    Use use = Use::kChanges) const;

 private:
  // Small batches need no allocation.
  static constexpr size_t kInlineKeys = 64;

  template <typename PositionAt>
  void GroupBy(const Batch& batch, size_t count, PositionAt position_at);

  void PrefetchRows(const Batch& batch) const;
  void MakeMemory(const Batch& batch) const;

  Scratch<KeyHash, kInlineKeys> hashes_;
  Scratch<uint32_t, kInlineKeys> positions_;
  size_t count_ = 0;
  std::array<uint32_t, KeyIndex::kShardCount + 1> group_begin_{};
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_SHARD_PLAN_H_
