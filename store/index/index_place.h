// The place of a hash in an array of buckets: pure arithmetic.
//
//   hash:   | shard 6 | quotient bits q 32               | not used 26 |
//            63        57                                 25            0
//           | logical range 12   |
//
//   q * N:  | home bucket                32 | tag 24           | dropped 8 |     N buckets
//            63                              31                 7         0
//
// The place grows with the hash, so that a logical range is one run of buckets. N may be any number
// from 2^8 on. The products of two values of q are then at least 2^8 apart, so that no two of them
// share home and tag, and place and N determine q.
#ifndef EMBANK_STORE_INDEX_INDEX_PLACE_H_
#define EMBANK_STORE_INDEX_INDEX_PLACE_H_

#include <cstdint>

#include "base/hash.h"
#include "store/index/bucket.h"

namespace embank {

inline constexpr uint32_t kIndexShardBits = 6;
inline constexpr uint32_t kIndexShardCount = 1u << kIndexShardBits;

inline constexpr uint32_t kQuotientBits = 32;
inline constexpr uint64_t kQuotientEnd = uint64_t{1} << kQuotientBits;

struct IndexPlace {
  uint32_t home;
  uint32_t tag;

  static constexpr IndexPlace Of(uint64_t q, uint32_t buckets) {
    const uint64_t product = q * buckets;
    return {static_cast<uint32_t>(product >> kQuotientBits),
            static_cast<uint32_t>(product) >> kDroppedBits};
  }
  // The one q that has this place among so many buckets.
  constexpr uint64_t Quotient(uint32_t buckets) const {
    const uint64_t product = (uint64_t{home} << kQuotientBits) | (uint64_t{tag} << kDroppedBits);
    return DivideUp(product, buckets);
  }
  // The first q that has this home, or a later one, among so many buckets.
  static constexpr uint64_t FirstQuotient(uint32_t home, uint32_t buckets) {
    return DivideUp(uint64_t{home} << kQuotientBits, buckets);
  }
  // The q of a hash.
  static constexpr uint64_t QuotientOf(KeyHash hash) {
    return (hash << kIndexShardBits) >> (64 - kQuotientBits);
  }

  // The least number of buckets of an array.
  static constexpr uint32_t kDroppedBits = kQuotientBits - kTagBits;
  static constexpr uint32_t kBucketsMin = 1u << kDroppedBits;

 private:
  static constexpr uint64_t DivideUp(uint64_t dividend, uint64_t divisor) {
    return (dividend + divisor - 1) / divisor;
  }
};

}  // namespace embank

#endif  // EMBANK_STORE_INDEX_INDEX_PLACE_H_
