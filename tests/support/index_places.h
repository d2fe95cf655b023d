// Places of the index computed on paper, from the drawing in store/index/index_place.h, and hashes
// with a wanted place.
#ifndef EMBANK_TESTS_SUPPORT_INDEX_PLACES_H_
#define EMBANK_TESTS_SUPPORT_INDEX_PLACES_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "store/index/bucket_array.h"
#include "store/index/key_index.h"

namespace embank::test {

// The buckets of each shard in a new index: one huge page for all shards, less seven buckets behind
// the last.
inline constexpr uint32_t kFirstBuckets = 512 - 7;
inline constexpr uint64_t kQuotients = uint64_t{1} << 32;
inline constexpr uint32_t kAllOnesTag = 0xFFFFFF;

// The hash whose top bits are the shard and whose next 32 are `q`; the lowest 26 the index does
// not look at.
inline KeyHash HashAt(uint32_t shard, uint64_t q, uint32_t unused = 0) {
  return uint64_t{shard} << 58 | q << 26 | (unused & 0x3FFFFFFu);
}
inline uint64_t QuotientIn(KeyHash hash) { return (hash >> 26) & (kQuotients - 1); }

struct PaperPlace {
  uint32_t home;
  uint32_t tag;
};
inline PaperPlace PaperPlaceOf(uint64_t q, uint32_t buckets) {
  const uint64_t product = q * buckets;
  return {static_cast<uint32_t>(product >> 32), static_cast<uint32_t>(product >> 8) & kAllOnesTag};
}
// The place of a hash in a shard as it is, growing or not.
inline PaperPlace PaperPlaceOf(const KeyIndex::Shard& shard, KeyHash hash) {
  const uint64_t q = QuotientIn(hash);
  return PaperPlaceOf(q, q >= shard.boundary ? shard.high_buckets : shard.low_buckets);
}

// The first q whose home is `home`; that of home == buckets is behind the last.
inline uint64_t FirstQuotientAt(uint32_t home, uint32_t buckets) {
  return ((uint64_t{home} << 32) + buckets - 1) / buckets;
}
// A home from `from` on of which a q has the tag of empty entries, and that q.
inline uint64_t QuotientWithAllOnesTag(uint32_t from, uint32_t buckets) {
  for (uint32_t home = from;; ++home) {
    const uint64_t q = FirstQuotientAt(home + 1, buckets) - 1;
    if (PaperPlaceOf(q, buckets).tag == kAllOnesTag) return q;
  }
}

// All buckets of a shard in order, those behind the last home included. Under the shard's lock.
inline std::vector<const Bucket*> BucketsOf(KeyIndex* index, const KeyIndex::Shard* shard) {
  const uint32_t count = std::max(shard->low_buckets.load(), shard->high_buckets.load()) + 7;
  std::vector<const Bucket*> buckets = {index->ProbeOf(HashAt(shard->number, 0)).bucket};
  while (buckets.size() < count) buckets.push_back(BucketArray::Next(buckets.back()));
  return buckets;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_INDEX_PLACES_H_
