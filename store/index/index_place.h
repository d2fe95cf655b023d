// Where entries of the index stand in the array of a shard (store/index/key_index.h).
#ifndef EMBANK_STORE_INDEX_INDEX_PLACE_H_
#define EMBANK_STORE_INDEX_INDEX_PLACE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "store/index/bucket.h"

namespace embank {

// Where a hash belongs.
struct IndexPlace {
  uint32_t home;
  uint32_t tag;
};

struct IndexPosition {
  uint32_t bucket;
  uint32_t slot;
};

// An entry with the part of its hash that its place and tag give back.
struct IndexPlacedEntry {
  uint64_t q;
  uint64_t entry;
  IndexPosition seen;
};

// What may stand at a home and behind it.
inline constexpr size_t kHomeEntriesMax = size_t{kBucketEntries} * (kDisplacementMax + 1);
using IndexHomeEntries = std::array<IndexPlacedEntry, kHomeEntriesMax>;

// The way to make room for an entry: it takes the first position, whose entry the next, ...
struct IndexPath {
  // At 0.83 full the longest of 58 million, in 2^23 buckets, is 75; the first that is longer than
  // this comes at 0.86.
  static constexpr uint32_t kPositionsMax = 256;
  std::array<IndexPosition, kPositionsMax> positions;
  uint32_t count = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_PLACE_H_
