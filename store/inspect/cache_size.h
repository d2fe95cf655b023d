// The number of rows that have to be in memory for a wanted hit ratio.
#ifndef EMBANK_STORE_INSPECT_CACHE_SIZE_H_
#define EMBANK_STORE_INSPECT_CACHE_SIZE_H_

#include <cstdint>

namespace embank {

// The rows that an LRU cache needs for `hit_ratio` (0 to below 1) of independent lookups of `rows`
// rows, of which the i-th most popular one has a share in proportion to i^-zipf_exponent (>= 0):
// Che's approximation (Che, Tung, Wang, "Hierarchical Web Caching Systems", IEEE JSAC 2002, eq. 3
// and 6). CLOCK comes within a hundredth of LRU (docs/decisions/0013-clock-evicts.md).
uint64_t RowsForHitRatio(uint64_t rows, double zipf_exponent, double hit_ratio);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_CACHE_SIZE_H_
