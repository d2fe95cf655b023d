// A bucket of the index: one cache line.
//
//   word 0      | version 32 | displacements 7 x 3 | passed 8 | unused 3 |
//                63        32 31                 11 10       3 2        0
//   words 1-7   | tag 24 | tier 2 | location 38 |                 an entry each; all ones: empty
//
// Entries are kept inverted, so that fresh memory, all zeros, is a bucket of empty entries.
//
// An entry stands in its home bucket or at most kDisplacementMax behind it; its displacement says
// how far. `passed` counts the entries that stand behind this bucket but have their home at or
// before it: a search ends at a bucket that nothing has passed. The version grows with every change
// of the bucket and is odd while one is made.
//
// Readers take no lock: words are atomics. Writers hold the shard's lock.
#ifndef EMBANK_STORE_BUCKET_H_
#define EMBANK_STORE_BUCKET_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "base/fence.h"
#include "tiers/location.h"

namespace embank {

inline constexpr uint32_t kBucketEntries = 7;
inline constexpr uint32_t kDisplacementMax = 7;
// A search may look so far behind its home, so that an array has as many buckets behind its last.
inline constexpr uint32_t kPadBuckets = kDisplacementMax;

inline constexpr uint64_t kEmptyEntry = ~uint64_t{0};
inline constexpr uint32_t kTagBits = 24;
inline constexpr uint32_t kTagShift = 64 - kTagBits;

constexpr uint64_t MakeEntry(uint32_t tag, Location location) {
  return (uint64_t{tag} << kTagShift) | location.units;  // tier 0: DRAM
}
constexpr uint32_t TagOf(uint64_t entry) { return static_cast<uint32_t>(entry >> kTagShift); }
constexpr Location LocationOf(uint64_t entry) {
  return {entry & ((uint64_t{1} << kLocationBits) - 1)};
}

struct alignas(64) Bucket {
  // Word 0, then the inverted entries.
  std::array<std::atomic<uint64_t>, 1 + kBucketEntries> words;

  uint64_t Entry(uint32_t slot) const { return ~words[1 + slot].load(std::memory_order_relaxed); }
  uint64_t Head() const { return words[0].load(std::memory_order_acquire); }

  // The first empty slot, or kBucketEntries.
  uint32_t EmptySlot() const {
    uint32_t slot = 0;
    while (slot < kBucketEntries && Entry(slot) != kEmptyEntry) ++slot;
    return slot;
  }

  static constexpr bool IsBeingWritten(uint64_t head) { return ((head >> 32) & 1) != 0; }
  static constexpr uint32_t Passed(uint64_t head) { return (head >> 3) & 0xFF; }
  static constexpr uint32_t Displacement(uint64_t head, uint32_t slot) {
    return static_cast<uint32_t>(head >> (11 + 3 * slot)) & 7;
  }

  // The changes. Each makes the version odd, changes, and makes it even again.
  void Put(uint32_t slot, uint64_t entry, uint32_t displacement) {
    const uint64_t head = BeginWrite();
    words[1 + slot].store(~entry, std::memory_order_relaxed);
    const uint32_t shift = 11 + 3 * slot;
    EndWrite((head & ~(uint64_t{7} << shift)) | (uint64_t{displacement} << shift));
  }
  void Remove(uint32_t slot) {
    const uint64_t head = BeginWrite();
    words[1 + slot].store(~kEmptyEntry, std::memory_order_relaxed);
    EndWrite(head);
  }
  void AddPassed(int32_t change) {
    EndWrite(BeginWrite() + (static_cast<uint64_t>(static_cast<int64_t>(change)) << 3));
  }

 private:
  static constexpr uint64_t kVersionStep = uint64_t{1} << 32;

  // Returns the head as it was.
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

}  // namespace embank

#endif  // EMBANK_STORE_BUCKET_H_
