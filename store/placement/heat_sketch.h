// A bounded table of heat that records of rows do not have. A store has one of the rows that left
// memory clean; that of a checkpoint's file has rows in memory, too.
//
//   hash:   | shard 6 | ... block ... |            ... | fingerprint 20 |
//   block:  | epoch 32 | 12 x (fingerprint's low 12 | heat 20) | 12 x fingerprint's high 8 |
//
// A row's block is one cache line, chosen by the upper bits of its hash, so that shards have blocks
// of their own. The row's entry there has its heat, of the moment when it left or was saved. When a
// block is full, the coldest entry is dropped, and that row seems colder than it was. No row seems
// hotter, except one in 100,000 that has no entry and shares another row's fingerprint: it gets
// that row's heat. A row that returns removes its entry. All of a block halves with each epoch,
// when it is next changed.
//
// Entries of erased rows stay until they have aged or given way.
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

  uint32_t epoch;                          // of the store: the epoch of all heat in the block
  std::array<uint32_t, kEntries> entries;  // heat 0: free
  std::array<uint8_t, kEntries> fingerprints;

  static constexpr uint32_t kFingerprintBits = 20;
  static constexpr uint32_t FingerprintOf(KeyHash hash) {
    return static_cast<uint32_t>(hash) & ((1u << kFingerprintBits) - 1);
  }

  // Ages the block to an epoch; an older one changes nothing.
  void AgeTo(uint32_t now);
  // Puts in a row with its heat as of the block's epoch.
  void Put(uint32_t fingerprint, uint32_t heat);
  // Returns the heat of a row that was put in, as of epoch `now`; 0: it has no entry.
  uint32_t Get(uint32_t fingerprint, uint32_t now) const;
  // Removes the row's entry.
  void Remove(uint32_t fingerprint);
  // Adds all entries of a block of other hashes.
  void Merge(const HeatBlock& other);
  bool IsEmpty() const;
};
static_assert(sizeof(HeatBlock) == 64);

// Guarded by the locks of rows' shards, shared to read.
class HeatSketch {
 public:
  // Where a sketch's size follows the rows, at most this many share a block in the mean: half of
  // its entries. At most two rows in a thousand then find their block full.
  static constexpr uint64_t kRowsOfBlock = HeatBlock::kEntries / 2;

  // A sketch has a block for each shard, and whole blocks of a device.
  static constexpr uint64_t kGrainBytes = 4096;
  static constexpr uint64_t kBytesMax = uint64_t{1} << 37;  // of 4 TiB
  static constexpr bool IsSize(uint64_t bytes) {
    return bytes > 0 && bytes <= kBytesMax && bytes % kGrainBytes == 0;
  }

  // Makes a sketch; IsSize(bytes). Source and budget must outlive it. kResourceExhausted.
  static StatusOr<std::unique_ptr<HeatSketch>> Create(MemorySource* source, MemoryBudget* budget,
                                                      uint64_t bytes);

  uint64_t bytes() const { return blocks_ * sizeof(HeatBlock); }

  // Prefetches the memory for the other functions. Always inlined: g++ 12 drops calls of functions
  // that only prefetch.
  [[gnu::always_inline]] void Prefetch(KeyHash hash) const {
    __builtin_prefetch(&table_[BlockOf(hash)], 1);
  }
  // Puts in a row that has left with so much heat, as of epoch `now`. Exclusive.
  void Put(KeyHash hash, uint32_t heat, uint64_t now);
  // Returns the aged heat with which the row left last; 0: it is unknown. Shared.
  uint32_t Get(KeyHash hash, uint64_t now) const;
  // Like Get, for a row that returns and has its own heat from now on: removes its entry.
  // Exclusive.
  uint32_t Take(KeyHash hash, uint64_t now);

  // ---- for the heat file ----

  uint64_t blocks() const { return blocks_; }
  uint64_t BlockOf(KeyHash hash) const { return BlockOf(hash, blocks_); }
  static uint64_t BlockOf(KeyHash hash, uint64_t blocks) { return (hash >> 32) * blocks >> 32; }
  // The first hash of a block of `blocks`; 0 after the last.
  static KeyHash FirstHashOf(uint64_t block, uint64_t blocks) {
    return ((block << 32) + blocks - 1) / blocks << 32;
  }
  // Returns block `number` of a sketch with `their_blocks` blocks, as of epoch `now`. Where this
  // sketch's blocks are not parts of it, it may also have entries of its neighbours' rows. Shared,
  // for the shard of its hashes.
  HeatBlock BlockIn(uint64_t their_blocks, uint64_t number, uint64_t now) const;
  // Adds block `number` of a sketch with `their_blocks` blocks, maybe another number than this
  // one's: it becomes part of one block, or of several. No other thread uses the sketch.
  void Add(uint64_t their_blocks, uint64_t number, const HeatBlock& block);
  // Clears all entries. No other thread uses the sketch.
  void Clear();

 private:
  HeatSketch(AlignedBuffer memory, uint64_t bytes);
  // This sketch's blocks that share hashes with a block of theirs.
  std::span<HeatBlock> BlocksIn(uint64_t their_blocks, uint64_t number) const;

  const AlignedBuffer memory_;
  const uint64_t blocks_;
  const std::span<HeatBlock> table_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_HEAT_SKETCH_H_
