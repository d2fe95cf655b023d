// The distinct keys of a shard group and, of each, its positions in order; and those of a batch.
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
  // The places of the hash table per key: it is at most half full.
  static constexpr size_t kPlacesPerKey = 2;

  Scratch<uint32_t, kInlineKeys> next_;
  Scratch<uint32_t, kInlineKeys> last_;    // by a key's first position: its last so far
  Scratch<uint32_t, kInlineKeys> firsts_;  // of each distinct key
  Scratch<uint32_t, kPlacesPerKey * kInlineKeys> places_;  // index of a first position, or kEnd
};

// The distinct keys of a whole batch, numbered in the order of their first positions.
class NumberedKeys {
 public:
  // A batch of more keys would take much memory: 21 bytes a key.
  static constexpr size_t kKeysMax = size_t{1} << 17;

  // kResourceExhausted. At most kKeysMax keys.
  Status Allocate(size_t keys);
  // Finds the distinct keys of a batch of as many keys of the table.
  void Find(const Table& table, KeySpan keys);

  // The keys by their numbers, and how often each occurs. A key that occurs more often than a count
  // holds has several numbers, and so has one whose place is far from its hash.
  KeySpan keys() const { return keys_.first(count_); }
  std::span<const uint16_t> touches() const { return touches_.first(count_); }
  // Space for an outcome of each.
  OutcomeSpan outcomes() { return outcomes_.first(count_); }
  // By position, the number of its key, which is at most the position.
  std::span<const uint32_t> numbers() const { return numbers_; }

 private:
  // Returns the number of a key, which is looked for from `place` on.
  uint32_t NumberOf(Key key, uint64_t place);

  // One piece: of several, the C library gives some back to the system at the end of each call.
  Scratch<uint64_t, 1> memory_;
  std::span<Key> keys_;
  std::span<uint16_t> touches_;
  std::span<uint8_t> outcomes_;
  std::span<uint32_t> numbers_;
  std::span<uint32_t> places_;  // a number, or kNone; at most two thirds full
  size_t count_ = 0;
};

// The part of the first 1,024 positions that has distinct keys, as a sample tells: an eighth of the
// keys, by their hashes, whatever the number of their positions. At least one key.
double DistinctPart(const Table& table, KeySpan keys);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_UNIQUE_KEYS_H_
