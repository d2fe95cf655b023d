// The 16 bytes in front of every row in memory.
//
//   byte  0        8            12           16
//         | key 64 | version 20 | table 12 | flags 4 | heat 20 | heat epoch 8 | vector, state ...
//                    (bits 12..31, 0..11)    (bits 0..3, 4..23, 24..31)
//
// The version is odd while the row is written, and grows with every write. Readers copy without a
// lock and look at it before and after. It wraps after 2^19 writes: a reader would have to pause in
// one row's copy for exactly so many writes of that row, or a multiple.
//
// Heat (docs/arithmetic.md) halves with every epoch of its store; a read or a touch ages it. Epochs
// are compared in 8 bits: every row must be touched or renewed (HeatClock) at least once in 127
// epochs.
#ifndef EMBANK_TIERS_ROW_ROW_HEADER_H_
#define EMBANK_TIERS_ROW_ROW_HEADER_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/threads/fence.h"
#include "base/types.h"

namespace embank {

using TableId = uint16_t;
inline constexpr uint32_t kTableBits = 12;
inline constexpr uint32_t kTablesMax = (1u << kTableBits) - 1;  // 4,095: ids 0 .. 4,094
inline constexpr TableId kNoTable = kTablesMax;                 // the id in a row that was erased

inline constexpr uint32_t kHeatBits = 20;
inline constexpr uint32_t kHeatMax = (1u << kHeatBits) - 1;

// An epoch of a store's heat; only its low 8 bits are kept in rows.
using HeatEpoch = uint8_t;

struct RowHeader {
  Key key;
  alignas(8) uint32_t identity;  // version 20 | table 12
  uint32_t usage;                // heat epoch 8 | heat 20 | flags 4
};
static_assert(sizeof(RowHeader) == 16);

inline constexpr uint32_t kVersionStep = 1u << kTableBits;

constexpr TableId TableOf(uint32_t identity) {
  return static_cast<TableId>(identity & ((1u << kTableBits) - 1));
}
constexpr bool IsBeingWritten(uint32_t identity) { return (identity & kVersionStep) != 0; }
// True if the row is the table's and is not being written: both in one comparison.
constexpr bool IsWholeRowOf(TableId table, uint32_t identity) {
  return (identity & (2 * kVersionStep - 1)) == table;
}

inline uint32_t LoadIdentity(const RowHeader* header) {
  auto* const word = const_cast<uint32_t*>(&header->identity);
  return std::atomic_ref(*word).load(std::memory_order_acquire);
}
inline Key LoadKey(const RowHeader* header) {
  auto* const word = const_cast<Key*>(&header->key);
  return std::atomic_ref(*word).load(std::memory_order_relaxed);
}

// Identity and usage at one moment. They are one aligned word of 64 bits, of which writers write
// halves. Processors keep accesses of both sizes apart and in order.
struct alignas(8) RowMark {
  uint32_t identity;
  uint32_t usage;
};
static_assert(std::endian::native == std::endian::little);
static_assert(offsetof(RowHeader, usage) == offsetof(RowHeader, identity) + 4);

inline uint64_t* MarkWord(const RowHeader* header) {
  return reinterpret_cast<uint64_t*>(const_cast<uint32_t*>(&header->identity));
}
constexpr RowMark MarkOf(uint64_t word) { return std::bit_cast<RowMark>(word); }
constexpr uint64_t WordOf(RowMark mark) { return std::bit_cast<uint64_t>(mark); }
inline RowMark LoadMark(const RowHeader* header) {
  return MarkOf(std::atomic_ref(*MarkWord(header)).load(std::memory_order_acquire));
}

// A writer, under its shard's lock, brackets its words with these two. BeginRowWrite makes the
// version odd and returns the identity from before; EndRowWrite makes it even again, for `table`.
// Versions continue when a slot is used again, so that a reader sees that the row has changed.
inline uint32_t BeginRowWrite(RowHeader* header) {
  std::atomic_ref word(header->identity);
  const uint32_t identity = word.load(std::memory_order_relaxed);
  word.store(identity | kVersionStep, std::memory_order_relaxed);
  ReleaseFence();
  return identity;
}
inline void EndRowWrite(RowHeader* header, uint32_t identity, TableId table) {
  const uint32_t version = (identity | kVersionStep) + kVersionStep;
  std::atomic_ref(header->identity)
      .store((version & ~((1u << kTableBits) - 1)) | table, std::memory_order_release);
}

// Makes an erased row unreadable for all tables, before its slot is given back.
inline void RetireRow(RowHeader* header) { EndRowWrite(header, BeginRowWrite(header), kNoTable); }

constexpr uint32_t PackUsage(uint32_t flags, uint32_t heat, HeatEpoch epoch) {
  return flags | (heat << 4) | (static_cast<uint32_t>(epoch) << 24);
}
// The row was looked up since its eviction order last looked.
inline constexpr uint32_t kReferencedFlag = 1;
// The row was looked up since its heat was last written to the log, or promoted with more heat.
inline constexpr uint32_t kGainedFlag = 2;
constexpr uint32_t FlagsOf(uint32_t usage) { return usage & 0xFu; }

// The number of epochs from the stamp of a usage word to `now`; 0 when the reader's epoch is older,
// because another thread has moved on meanwhile.
constexpr uint32_t EpochsSince(uint32_t usage, HeatEpoch now) {
  const auto distance = static_cast<int8_t>(static_cast<uint8_t>(now - (usage >> 24)));
  return distance < 0 ? 0u : static_cast<uint32_t>(distance);
}

// The heat of a usage word as of epoch `now`.
constexpr uint32_t HeatOf(uint32_t usage, HeatEpoch now) {
  const uint32_t epochs = EpochsSince(usage, now);
  return epochs >= kHeatBits ? 0u : ((usage >> 4) & kHeatMax) >> epochs;
}

// The usage word after `touches` lookups in epoch `now`.
constexpr uint32_t TouchedUsage(uint32_t usage, HeatEpoch now, uint32_t touches) {
  if (touches != 0) usage |= kReferencedFlag | kGainedFlag;
  const uint32_t heat = HeatOf(usage, now);
  const uint32_t sum = touches > kHeatMax - heat ? kHeatMax : heat + touches;
  const auto stamp = EpochsSince(usage, now) == 0 ? static_cast<HeatEpoch>(usage >> 24) : now;
  return PackUsage(FlagsOf(usage), sum, stamp);
}

// The same for the word of a mark.
constexpr uint64_t TouchedWord(uint64_t word, HeatEpoch now, uint32_t touches) {
  // In the common case the epoch is that of the last touch, and the heat is far from its limit.
  // One comparison tells both: of another epoch the difference is not below 2^kHeatBits.
  const uint32_t heat_of_now = static_cast<uint32_t>(word >> 36) - (uint32_t{now} << kHeatBits);
  if (touches - 1 < kHeatMax && heat_of_now <= kHeatMax - touches) {
    constexpr uint64_t kFlags = uint64_t{kReferencedFlag | kGainedFlag} << 32;
    return (word | kFlags) + (uint64_t{touches} << 36);
  }
  const RowMark mark = MarkOf(word);
  return WordOf({mark.identity, TouchedUsage(mark.usage, now, touches)});
}

// Adds `touches` to the heat of the row from which `mark` was read; exact with any number of
// threads. False: the row was written since, or its slot is another's; nothing was added.
// touches == 0 only renews the stamp.
inline bool TouchHeat(RowHeader* header, RowMark mark, HeatEpoch now, uint32_t touches) {
  const std::atomic_ref word(*MarkWord(header));
  uint64_t seen = WordOf(mark);
  while (!word.compare_exchange_weak(seen, TouchedWord(seen, now, touches),
                                     std::memory_order_relaxed)) {
    if (MarkOf(seen).identity != mark.identity) return false;
  }
  return true;
}

// Sets the heat of a row as of epoch `now`, under the lock of its shard. The row then counts as one
// that has gained heat, whose heat no record has.
inline void SetHeat(RowHeader* header, HeatEpoch now, uint32_t heat) {
  const std::atomic_ref word(*MarkWord(header));
  uint64_t seen = word.load(std::memory_order_relaxed);
  const auto changed = [&] {
    const RowMark mark = MarkOf(seen);
    return WordOf({mark.identity, PackUsage(FlagsOf(mark.usage) | kGainedFlag, heat, now)});
  };
  while (!word.compare_exchange_weak(seen, changed(), std::memory_order_relaxed)) {
  }
}

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_HEADER_H_
