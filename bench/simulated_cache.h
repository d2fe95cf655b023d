// Simulates a cache of a fixed number of rows on a stream of accesses.
#ifndef EMBANK_BENCH_SIMULATED_CACHE_H_
#define EMBANK_BENCH_SIMULATED_CACHE_H_

#include <cstdint>
#include <vector>

#include "tiers/dram/eviction_order.h"

namespace embank {

// Accesses to keys that are numbered 0, 1, 2, ... in the order in which they first appear.
struct AccessStream {
  std::vector<uint32_t> keys;
  uint32_t distinct = 0;
};

// Whether a row that returns to the cache has the aged heat with which it left.
enum class ReturningHeat { kKept, kLost };

// Returns how many of the accesses find their key in a cache of `capacity` rows (at least 1) that
// takes in every missing key. Rows have the usage words of the store's rows, and heat epochs have
// its lengths.
uint64_t SimulateHits(const AccessStream& stream, uint32_t capacity, EvictionPolicy policy,
                      ReturningHeat returning);

// The most hits of any such cache: it evicts the row that is used again last (Belady).
uint64_t OptimalHits(const AccessStream& stream, uint32_t capacity);

}  // namespace embank

#endif  // EMBANK_BENCH_SIMULATED_CACHE_H_
