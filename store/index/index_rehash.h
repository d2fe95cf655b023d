// The rehash of a shard whose array grows or shrinks. Its entries move from one size of the array
// to the other, home by home, each to its place in the other size. Place and tag determine the
// quotient of an entry, so that no key and no row is read.
//
// The boundary of the shard (store/index/index_shard.h) says how far the rehash has come. Several
// homes that are moved together are a rehash step.
#ifndef EMBANK_STORE_INDEX_INDEX_REHASH_H_
#define EMBANK_STORE_INDEX_INDEX_REHASH_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "store/index/bucket_array.h"
#include "store/index/index_shard.h"

namespace embank {

// Lives for a scope that holds the shard's lock.
class IndexRehash {
 public:
  // `base` as for BucketArray.
  IndexRehash(std::byte* base, IndexShard* shard) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex)
      : shard_(shard), array_(base, *shard) {}

  // Moves up to `homes` homes. Moves fewer if the rehash ends before, or if a home's entries do not
  // all find space: the next step tries that home again. Without a rehash it does nothing.
  void Step(uint32_t homes);

 private:
  // An entry and the quotient that its place determines.
  struct PlacedEntry {
    uint64_t q;
    uint64_t entry;
    IndexPosition seen;
  };
  // The most entries at a home and behind it.
  static constexpr size_t kHomeEntriesMax = size_t{kBucketEntries} * (kDisplacementMax + 1);
  using HomeEntries = std::array<PlacedEntry, kHomeEntriesMax>;

  bool MoveNextHome() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  void PrefetchHomeAhead(uint32_t home) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  bool MoveHome(uint32_t home) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  size_t EntriesOfHome(uint32_t home, HomeEntries* entries) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  bool MoveToHomes(std::span<const PlacedEntry> entries, uint32_t home, uint32_t to_buckets);
  bool MoveInOrder(std::span<PlacedEntry> entries, uint32_t home, uint32_t to_buckets)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  bool MoveEqual(std::span<const PlacedEntry> equal, uint32_t from_home, uint32_t to_buckets);
  bool PutCopies(std::span<const PlacedEntry> entries, IndexPlace to);
  IndexPosition PositionNow(const PlacedEntry& placed, uint32_t home) const;

  IndexShard* const shard_;
  BucketArray array_;
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_REHASH_H_
