// A bucket of the index: one cache line.
//
//   word 0      | version 28 | displacements 3 x 7 | occupied 7 | passed 8 |
//                63        36 35                 15 14         8 7        0
//   words 1-7   | tag 24 | tier 2, units 38: the location |       an entry each; all ones: empty
//
// `occupied` has a bit per slot, and so has each of the three parts of the displacements: a part
// has one binary digit of all of them. So one word tells which slots are empty, and which are
// displaced how far.
//
// Entries are kept inverted, so that fresh memory, all zeros, is a bucket of empty entries.
//
// An entry is in its home bucket or at most kDisplacementMax behind it; its displacement says how
// far. `passed` counts the entries behind this bucket whose home is at or before it: a search ends
// at a bucket that nothing has passed. The version grows with every change of the bucket and is odd
// while one is made. It wraps after 2^27 changes: a search would have to pause for exactly so many.
//
// Readers take no lock: words are atomics. Writers hold the shard's lock.
#ifndef EMBANK_STORE_INDEX_BUCKET_H_
#define EMBANK_STORE_INDEX_BUCKET_H_

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/threads/fence.h"
#include "tiers/row/location.h"
#include "tiers/row/row_watch.h"

namespace embank {

inline constexpr uint32_t kBucketEntries = 7;
inline constexpr uint32_t kDisplacementMax = 7;
// A search looks so many buckets behind a home at most, so that an array has as many buckets behind
// its last home.
inline constexpr uint32_t kPadBuckets = kDisplacementMax;

inline constexpr uint64_t kEmptyEntry = ~uint64_t{0};
inline constexpr uint32_t kTagBits = 24;
inline constexpr uint32_t kTagShift = 64 - kTagBits;
static_assert(kTagShift == kTierBits + kLocationBits);

constexpr uint64_t MakeEntry(uint32_t tag, Location location) {
  return (uint64_t{tag} << kTagShift) | location.units;
}
constexpr uint32_t TagOf(uint64_t entry) { return static_cast<uint32_t>(entry >> kTagShift); }
constexpr Location LocationOf(uint64_t entry) { return {entry & kTierAndUnitsMask}; }

struct alignas(64) Bucket {
  // Word 0, then the inverted entries.
  std::array<std::atomic<uint64_t>, 1 + kBucketEntries> words;

  uint64_t Entry(uint32_t slot) const { return ~words[1 + slot].load(std::memory_order_relaxed); }
  uint64_t Head() const { return words[0].load(std::memory_order_acquire); }

  static constexpr bool IsBeingWritten(uint64_t head) { return (head & kVersionStep) != 0; }
  static constexpr uint32_t Passed(uint64_t head) { return head & 0xFF; }
  static constexpr uint32_t Displacement(uint64_t head, uint32_t slot) {
    const uint64_t bits = head >> (kDisplacementShift + slot);
    return static_cast<uint32_t>((bits & 1) | (bits >> 6 & 2) | (bits >> 12 & 4));
  }

  // Sets of slots, a bit each: the empty slots, and those whose entries are displaced so far.
  static constexpr uint32_t EmptySlots(uint64_t head) {
    return static_cast<uint32_t>(~head >> kOccupiedShift) & kSlotsMask;
  }
  static constexpr uint32_t SlotsDisplacedBy(uint64_t head, uint32_t displacement) {
    uint64_t slots = head >> kOccupiedShift;
    for (uint32_t weight = 0; weight < 3; ++weight) {
      const uint64_t bits = head >> (kDisplacementShift + kBucketEntries * weight);
      slots &= (displacement >> weight & 1) != 0 ? bits : ~bits;
    }
    return static_cast<uint32_t>(slots) & kSlotsMask;
  }

  // Changes of a bucket. Each makes the version odd, changes, and makes it even again.
  void Put(uint32_t slot, uint64_t entry, uint32_t displacement) {
    const uint64_t head = BeginWrite();
    words[1 + slot].store(~entry, std::memory_order_relaxed);
    const uint64_t bits = (displacement & 1) | (displacement & 2) << 6 | (displacement & 4) << 12;
    EndWrite((head & ~(uint64_t{0x4081} << (kDisplacementShift + slot))) |
             bits << (kDisplacementShift + slot) | uint64_t{1} << (kOccupiedShift + slot));
  }
  // Removes the entries in `slots`, a bit each.
  void RemoveSlots(uint32_t slots) {
    const uint64_t head = BeginWrite();
    for (uint32_t left = slots; left != 0; left &= left - 1) {
      const auto slot = static_cast<size_t>(std::countr_zero(left));
      words[1 + slot].store(~kEmptyEntry, std::memory_order_relaxed);
    }
    EndWrite(head & ~(uint64_t{slots} << kOccupiedShift));
  }
  void Replace(uint32_t slot, uint64_t entry) {
    const uint64_t head = BeginWrite();
    words[1 + slot].store(~entry, std::memory_order_relaxed);
    EndWrite(head);
  }
  void AddPassed(int32_t change) {
    EndWrite(BeginWrite() + static_cast<uint64_t>(static_cast<int64_t>(change)));
  }

 private:
  static constexpr uint32_t kOccupiedShift = 8;
  static constexpr uint32_t kDisplacementShift = kOccupiedShift + kBucketEntries;
  static constexpr uint32_t kSlotsMask = (1u << kBucketEntries) - 1;
  static constexpr uint64_t kVersionStep = uint64_t{1} << (kDisplacementShift + 3 * kBucketEntries);

  // Returns the head from before.
  uint64_t BeginWrite() {
    const uint64_t head = words[0].load(std::memory_order_relaxed);
    words[0].store(head + kVersionStep, std::memory_order_relaxed);
    ReleaseFence();
    return head;
  }
  void EndWrite(uint64_t head) {
    words[0].store(head + 2 * kVersionStep, std::memory_order_release);
  }
};
static_assert(sizeof(Bucket) == 64);
static_assert(kBucketEntries == 7 && kDisplacementMax == 7);  // as in the drawing, and three bits
                                                              // each

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_BUCKET_H_
