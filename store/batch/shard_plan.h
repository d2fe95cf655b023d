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
#include "store/batch/guesses_ahead.h"

namespace embank {

// The positions of one shard, in order, with the hashes of their keys. `begin`: the number of
// positions in the groups before. `offset`: the number of the shard's positions in the parts before
// (ShardPlan::UsePart). While the group is visited, `guesses` has those of its keys, or of the keys
// that were chosen, from `first_guess` on.
struct ShardGroup {
  KeyIndex::Shard* shard;
  std::span<const uint32_t> positions;
  const KeyHash* hashes;
  uint32_t begin;
  uint32_t offset;
  std::span<uint32_t> later;  // space for as many numbers, in stores with a log (DeferredRows)
  GuessesAhead* guesses;
  uint32_t first_guess;
  size_t size() const { return positions.size(); }
};

class ShardPlan {
 public:
  using Body = FunctionRef<void(const ShardGroup&)>;
  // Chooses keys of a group, one at least, by their indexes in it, in rising order. It is called
  // more than once for a group, and answers the same; by several threads for different groups. It
  // takes no lock and waits for nothing (GuessesAhead::NextHashes). The indexes stay until the
  // visit of all shards ends.
  using Choose = FunctionRef<std::span<const uint32_t>(const ShardGroup&)>;

  // Allocates scratch for `count` keys: twelve bytes each, and four more for each of the rows that
  // come later. kResourceExhausted.
  Status Allocate(size_t count, size_t later_max = 0);

  // Groups all positions of a batch, or some of them, given in order. After Allocate.
  void GroupAll(const Batch& batch);
  void Group(const Batch& batch, std::span<const uint32_t> positions);

  // Makes each group smaller, until the next grouping: to the `number`-th of its `parts` parts.
  // Parts of a group differ by one position at most.
  void UsePart(uint32_t number, uint32_t parts);

  // The number of positions in the groups.
  size_t count() const { return part_count_; }

  // Calls `body` once per shard that has positions, as Batch::Share does. With `choose`, which may
  // be called while the body has another group, the body asks for the guesses of these keys alone.
  void ForEachShard(const Batch& batch, Body body, const Choose* choose = nullptr);
  // Does the same on this thread, shard by shard.
  void ForEachGroup(const Batch& batch, Body body);

 private:
  // Shards whose keys go through one pipeline are a run. Each shard is a run by itself where shards
  // have at least this many positions on average: four groups.
  static constexpr size_t kRunKeysMin = 64;
  static_assert(kRunKeysMin * KeyIndex::kShardCount <= Batch::kSharedKeys);

  template <typename PositionAt>
  void GroupBy(const Batch& batch, size_t count, PositionAt position_at);

  // The places of one shard's positions.
  struct Places {
    uint32_t begin;
    uint32_t end;
    uint32_t size() const { return end - begin; }
  };

  class RunKeys;

  // Numbers of shards.
  struct Shards {
    uint32_t count = 0;
    std::array<uint8_t, KeyIndex::kShardCount> numbers;
    void Add(uint32_t number) { numbers[count++] = static_cast<uint8_t>(number); }
    // The `run`-th of `runs` runs of them, which differ by one shard at most.
    std::span<const uint8_t> Run(uint32_t run, uint32_t runs) const {
      const uint32_t begin = count * run / runs;
      return std::span(numbers).subspan(begin, count * (run + 1) / runs - begin);
    }
  };

  void UseAll();
  Places PartOf(uint32_t shard) const;
  ShardGroup GroupOf(const Batch& batch, uint32_t number);
  Shards ShardsFrom(uint32_t first) const;
  void VisitRun(const Batch& batch, std::span<const uint8_t> shards, Body body,
                const Choose* choose);

  Scratch<KeyHash, kInlineKeys> hashes_;
  Scratch<uint32_t, kInlineKeys> positions_;
  Scratch<uint32_t, kInlineKeys> later_;
  size_t count_ = 0;
  // A call of one key does not need them.
  std::array<uint32_t, KeyIndex::kShardCount + 1> group_begin_;
  // The part of the groups that is in use, and the begins of the groups in it.
  uint32_t part_ = 0;
  uint32_t parts_ = 1;
  size_t part_count_ = 0;
  std::array<uint32_t, KeyIndex::kShardCount> part_begin_;
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_SHARD_PLAN_H_
