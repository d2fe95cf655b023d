// The sizes of the arrays of the index's shards: when they grow and shrink.
#ifndef EMBANK_STORE_INDEX_INDEX_SIZES_H_
#define EMBANK_STORE_INDEX_INDEX_SIZES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/memory/memory.h"
#include "store/index/bucket.h"
#include "store/index/index_place.h"

namespace embank {

// Each shard's array grows by so many buckets with one huge page: 2 MiB / (64 shards x 64 B) = 512.
inline constexpr uint32_t kPageBuckets =
    static_cast<uint32_t>(kHugePageBytes / (kIndexShardCount * sizeof(Bucket)));
// One huge page.
inline constexpr uint32_t kBucketsMin = kPageBuckets - kPadBuckets;
inline constexpr uint32_t kBucketsMax = (1u << 24) - kPadBuckets;
static_assert(kBucketsMin >= IndexPlace::kBucketsMin);

// An array grows by a quarter when it is four fifths full, so that an entry has at most 64 / (7 *
// 0.64) = 14.3 bytes. A sixth of the entries are then displaced.
inline constexpr double kLoadMax = 0.80;
inline constexpr double kGrowth = 1.25;
// An array is halved when it is a quarter full, and is half full then.
inline constexpr double kLoadMin = 0.25;

// From this load on an array may have to grow soon, an eighth of its rows later, and memory is
// sought.
inline constexpr double kLoadNear = 0.70;
// From this load on an array without memory for a quarter more grows by as little as it can. Up to
// it places are promised: a little further on, one of a million buckets may have no position for an
// entry.
inline constexpr double kLoadFull = 0.83;

// From this load on a place without a position lets the array grow. Below it, hashed keys meet no
// such place; keys that were chosen to share one are refused, and take no memory.
inline constexpr double kLoadOfFullPlace = 0.5;

// An index shrinks at once for an eighth of its entries that were erased since it last did: each of
// them pays for eight entries to be moved.
inline constexpr uint64_t kErasedPart = 8;

// Homes moved per insertion: N / 6 insertions finish a growth, and add 1 / (6 * 7) = 2.4 % of load.
inline constexpr uint32_t kStepHomes = 6;
// Rehash steps under one taking of a shard's lock: 32 * 6 homes of 7 entries, 10 ns each, take 13
// us.
inline constexpr uint32_t kStepsAtOnce = 32;
// A number of homes beyond any array: the step ends the rehash.
inline constexpr uint32_t kAllHomes = 2 * kBucketsMax;

inline uint64_t RowsAtLoad(uint32_t buckets, double load) {
  return static_cast<uint64_t>(static_cast<double>(buckets) * kBucketEntries * load);
}

// The smallest array of at least `buckets` that fills its huge pages.
inline uint32_t FillPages(double buckets) {
  const auto wanted = static_cast<uint64_t>(std::max<double>(buckets, kBucketsMin)) + kPadBuckets;
  return static_cast<uint32_t>(RoundUp(wanted, kPageBuckets)) - kPadBuckets;
}

inline uint64_t BytesFor(uint32_t buckets) {
  return RoundUp(uint64_t{buckets} + kPadBuckets, kPageBuckets) / kPageBuckets * kHugePageBytes;
}

// The mean and five standard deviations: exceeded once in a million.
inline uint64_t RowsOfFullestShard(uint64_t rows) {
  const double mean = static_cast<double>(rows) / kIndexShardCount;
  return static_cast<uint64_t>(std::ceil(mean + 5.0 * std::sqrt(mean)));
}

// The size of an array that has grown, by quarters, until it holds `rows` rows.
inline uint32_t GrownBuckets(uint64_t rows) {
  uint32_t buckets = kBucketsMin;
  while (RowsAtLoad(buckets, kLoadMax) < rows && buckets < kBucketsMax) {
    buckets = FillPages(buckets * kGrowth);
  }
  return buckets;
}

// The size of arrays that take `rows` rows in all without growing; the largest if they are more.
inline uint32_t BucketsAhead(uint64_t rows) {
  const auto fullest = static_cast<double>(RowsOfFullestShard(rows));
  return FillPages(std::min<double>(fullest / (kBucketEntries * kLoadMax) + 1, kBucketsMax));
}

// The largest arrays of an index of `bytes`; at least the smallest there are.
inline uint32_t BucketsIn(uint64_t bytes) {
  constexpr uint64_t kPagesMax = (kBucketsMax + kPadBuckets) / kPageBuckets;
  const uint64_t pages = std::clamp<uint64_t>(bytes / kHugePageBytes, 1, kPagesMax);
  return static_cast<uint32_t>(pages * kPageBuckets) - kPadBuckets;
}

// The size to which arrays shrink if the fullest has `rows` rows: up to a quarter more than if it
// had grown to them, so that a few more rows do not let it grow again at once.
inline uint32_t ShrunkenBuckets(uint64_t rows) {
  const uint64_t pages = BytesFor(GrownBuckets(rows)) / kHugePageBytes;
  return static_cast<uint32_t>((pages + pages / 4) * kPageBuckets) - kPadBuckets;
}

// The most bytes that an index of `rows` rows takes, growing included.
inline uint64_t IndexBytesMax(uint64_t rows) {
  return BytesFor(GrownBuckets(RowsOfFullestShard(rows) + 1));
}

// The bytes with which an index of `rows` rows works where there is no more memory.
inline uint64_t IndexBytesMin(uint64_t rows) {
  const auto fullest = static_cast<double>(RowsOfFullestShard(rows));
  // One more page, for the shard that is the first to have no position for an entry.
  return BytesFor(FillPages(fullest / (kBucketEntries * kLoadFull) + 1)) + kHugePageBytes;
}

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_SIZES_H_
