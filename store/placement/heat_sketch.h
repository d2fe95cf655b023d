// What the heat of rows was when they left memory clean: a bounded table, for what their records do
// not say.
//
//   hash:   | shard 6 | ... block ... |            ... | fingerprint 20 |
//   block:  | epoch 32 | 12 x (fingerprint's low 12 | heat 20) | 12 x fingerprint's high 8 |
//
// A row's block is one cache line, chosen by the upper bits of its hash, so that shards have blocks
// of their own. There its entry has the heat with which it left. Where a block is full, the coldest
// entry gives way: that row is said to be colder than it was. None is said to be hotter, but one in
// 100,000 that has no entry, and another's fingerprint: it has that one's heat. A row that returns
// takes its entry along. All of a block halves with each epoch, when it is next changed.
//
// Of rows that are erased entries stay, until they have aged or given way.
#ifndef EMBANK_STORE_PLACEMENT_HEAT_SKETCH_H_
#define EMBANK_STORE_PLACEMENT_HEAT_SKETCH_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>

#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/types.h"

namespace embank {

// Not thread-safe.
struct HeatBlock {
  static constexpr size_t kEntries = 12;

  uint32_t epoch;                          // of the store, as of which all heat here is
  std::array<uint32_t, kEntries> entries;  // heat 0: free
  std::array<uint8_t, kEntries> fingerprints;

  static constexpr uint32_t kFingerprintBits = 20;
  static constexpr uint32_t FingerprintOf(KeyHash hash) {
    return static_cast<uint32_t>(hash) & ((1u << kFingerprintBits) - 1);
  }

  // Brings the block up to an epoch; one that is older changes nothing.
  void AgeTo(uint32_t now);
  // A row has left with so much heat, as of the block's epoch.
  void Put(uint32_t fingerprint, uint32_t heat);
  // The heat with which the row left, as of epoch `now`; 0: it has no entry.
  uint32_t Get(uint32_t fingerprint, uint32_t now) const;
  // Takes the row's entry out.
  void Remove(uint32_t fingerprint);
  // All of a block of other hashes, too.
  void Merge(const HeatBlock& other);
  bool IsEmpty() const;
};
static_assert(sizeof(HeatBlock) == 64);

// Under the locks of rows' shards, shared to read.
class HeatSketch {
 public:
  // A block for each shard, and whole blocks of a device.
  static constexpr uint64_t kGrainBytes = 4096;
  static constexpr uint64_t kBytesMax = uint64_t{1} << 37;  // of 4 TiB
  static constexpr bool IsSize(uint64_t bytes) {
    return bytes > 0 && bytes <= kBytesMax && bytes % kGrainBytes == 0;
  }

  // IsSize(bytes). Source and budget must outlive it. kResourceExhausted.
  static StatusOr<std::unique_ptr<HeatSketch>> Create(MemorySource* source, MemoryBudget* budget,
                                                      uint64_t bytes);

  uint64_t bytes() const { return blocks_ * sizeof(HeatBlock); }

  // Asks the cache for what the others need. Always inlined: g++ 12 drops calls of what only asks.
  [[gnu::always_inline]] void Prefetch(KeyHash hash) const {
    __builtin_prefetch(&table_[BlockOf(hash)], 1);
  }
  // A row has left with so much heat, as of epoch `now`. Exclusive.
  void Put(KeyHash hash, uint32_t heat, uint64_t now);
  // The heat with which the row left last, since aged; 0 where nothing is known. Shared.
  uint32_t Get(KeyHash hash, uint64_t now) const;
  // As Get, of a row that returns: it keeps its heat itself from now on. Exclusive.
  uint32_t Take(KeyHash hash, uint64_t now);

  // ---- for what is kept in a file ----

  uint64_t blocks() const { return blocks_; }
  uint64_t BlockOf(KeyHash hash) const { return BlockOf(hash, blocks_); }
  // Copies blocks from `first` on, as of epoch `now`. Shared.
  void Copy(uint64_t first, uint64_t now, std::span<HeatBlock> into) const;
  // Adds a block of a sketch of so many, maybe others than this one's: it becomes part of one
  // block, or of several. Nobody else uses the sketch.
  void Add(uint64_t their_blocks, uint64_t number, const HeatBlock& block);
  // Forgets all. Nobody else uses the sketch.
  void Clear();

 private:
  HeatSketch(AlignedBuffer memory, uint64_t bytes);
  static uint64_t BlockOf(KeyHash hash, uint64_t blocks) { return (hash >> 32) * blocks >> 32; }
  // The first hash of a block; 0 behind the last.
  static KeyHash FirstHashOf(uint64_t block, uint64_t blocks) {
    return ((block << 32) + blocks - 1) / blocks << 32;
  }

  const AlignedBuffer memory_;
  const uint64_t blocks_;
  const std::span<HeatBlock> table_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_HEAT_SKETCH_H_
