// The distinct keys of a shard group and, of each, its positions in order.
#ifndef EMBANK_STORE_BATCH_UNIQUE_KEYS_H_
#define EMBANK_STORE_BATCH_UNIQUE_KEYS_H_

#include <cstdint>
#include <span>

#include "base/memory/scratch.h"
#include "base/status.h"
#include "store/batch/shard_plan.h"

namespace embank {

// Scratch for all groups of a batch: 20 bytes per key. Groups use parts of it that do not overlap,
// so that several threads may find the keys of different groups at once.
class UniqueKeys {
 public:
  // Ends a chain of indexes.
  static constexpr uint32_t kEnd = 0xFFFFFFFF;

  // kResourceExhausted.
  Status Allocate(size_t keys);

  // Finds the distinct keys of a group. Returns, in order of first occurrence, the index in the
  // group of each key's first position; valid until the group is found again.
  std::span<const uint32_t> Find(const ShardGroup& group);

  // Returns the index in the group of the key's next position behind index `i`, or kEnd.
  uint32_t Next(const ShardGroup& group, uint32_t i) const {
    return next_.values()[group.begin + i];
  }

 private:
  static constexpr size_t kInlineKeys = 64;
  // The places of the hash table per key: it is at most half full.
  static constexpr size_t kPlacesPerKey = 2;

  Scratch<uint32_t, kInlineKeys> next_;
  Scratch<uint32_t, kInlineKeys> last_;    // by a key's first position: its last so far
  Scratch<uint32_t, kInlineKeys> firsts_;  // of each distinct key
  Scratch<uint32_t, kPlacesPerKey * kInlineKeys> places_;  // index of a first position, or kEnd
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_UNIQUE_KEYS_H_
