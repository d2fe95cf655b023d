// The array of buckets of one shard, and the entries in it.
//
// The arrays of all shards are interleaved by blocks of 64 buckets, so that all grow into the same
// huge pages:  | block 0 of shard 0 | block 0 of shard 1 | ... | block 1 of shard 0 | ...
#ifndef EMBANK_STORE_INDEX_BUCKET_ARRAY_H_
#define EMBANK_STORE_INDEX_BUCKET_ARRAY_H_

#include <cstddef>
#include <cstdint>

#include "store/index/bucket.h"
#include "store/index/index_place.h"
#include "store/index/index_shard.h"
#include "tiers/row/location.h"

namespace embank {

// The place of an entry: its bucket and slot.
struct IndexPosition {
  uint32_t bucket;
  uint32_t slot;
};

// A value that names the array; a copy names the same one. Changes of entries need the lock of the
// shard, exclusively.
class BucketArray {
 public:
  // A block is 4 KiB.
  static constexpr uint32_t kBlockBuckets = 64;
  static constexpr uint64_t kBlockBytes = kBlockBuckets * sizeof(Bucket);

  // `base` is the begin of the arrays of all shards. The shard and its memory outlive the value.
  BucketArray(std::byte* base, const IndexShard& shard) : base_(base), shard_(&shard) {}

  // ---- reading, with or without the lock ----

  Bucket* At(uint32_t bucket) const {
    const uint64_t block = uint64_t{bucket / kBlockBuckets} * kIndexShardCount + shard_->number;
    return reinterpret_cast<Bucket*>(base_ + block * kBlockBytes) + bucket % kBlockBuckets;
  }
  // The bucket behind a bucket of the same shard.
  static const Bucket* Next(const Bucket* bucket) {
    const bool last_of_block = (reinterpret_cast<uintptr_t>(bucket + 1) % kBlockBytes) == 0;
    return last_of_block ? bucket + 1 + size_t{kIndexShardCount - 1} * kBlockBuckets : bucket + 1;
  }

  // ---- reading, under the lock ----

  // The number of buckets of the array, those behind the last home included.
  uint32_t end() const { return shard_->buckets() + kPadBuckets; }
  // Whether the array still has the bucket of a guess. The memory behind an array that has shrunk
  // may be gone.
  bool Reaches(const Match& guess) const {
    const auto offset_bytes =
        static_cast<uint64_t>(reinterpret_cast<const std::byte*>(guess.word) - base_);
    const uint64_t bucket = offset_bytes / kBlockBytes / kIndexShardCount * kBlockBuckets +
                            offset_bytes % kBlockBytes / sizeof(Bucket);
    return bucket < uint64_t{end()};
  }
  // The home bucket of the entry at a position.
  uint32_t HomeOf(IndexPosition position) const {
    return position.bucket - Bucket::Displacement(At(position.bucket)->Head(), position.slot);
  }
  // The position of an entry that is in the array, given its home.
  IndexPosition Find(uint32_t home, uint64_t entry) const;
  // Whether Put finds a position for an entry of this home.
  bool HasSpaceFor(uint32_t home) const;

  // ---- changing, under the lock ----

  // Adds an entry, and moves others to later buckets if that makes space. False: there is no
  // position for it, and nothing has changed.
  bool Put(IndexPlace place, Location location) {
    return PutAtHome(place, location) < kBucketEntries || PutByPath(place, location);
  }
  // Adds an entry in its home bucket. Returns its slot there, or kBucketEntries: the bucket is
  // full, and nothing has changed.
  uint32_t PutAtHome(IndexPlace place, Location location);
  // Adds an entry of a home at a position that is empty.
  void PutBack(IndexPosition position, uint32_t home, uint64_t entry);
  // Writes another entry of the same place over the one at a position.
  void Replace(IndexPosition position, uint64_t entry);
  void Remove(IndexPosition position) {
    RemoveOfHome(HomeOf(position), position.bucket, 1u << position.slot);
  }
  // Removes the entries in some slots of a bucket, a bit each, which are all of one home.
  void RemoveOfHome(uint32_t home, uint32_t bucket, uint32_t slots);

 private:
  struct Path;
  bool FindPath(uint32_t home, Path* path) const;
  bool PutByPath(IndexPlace place, Location location);
  void AddPassed(uint32_t begin, uint32_t end, int32_t change);

  std::byte* base_;
  const IndexShard* shard_;
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_BUCKET_ARRAY_H_
