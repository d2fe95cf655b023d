// Mixing, and the hashes of tables and keys (docs/arithmetic.md). Fixed forever: shards, ranks and
// files agree on them.
#ifndef EMBANK_BASE_HASH_H_
#define EMBANK_BASE_HASH_H_

#include <cstdint>
#include <string_view>

#include "base/host_device.h"
#include "base/types.h"

namespace embank {

inline constexpr uint64_t kGoldenRatio = 0x9E3779B97F4A7C15u;  // 2^64 / phi, odd

// A bijection of 64 bits in which every input bit reaches every output bit (splitmix64's
// finaliser).
EMBANK_HOST_DEVICE constexpr uint64_t Mix(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

// XXH3-64 of a table's name.
uint64_t TableHash(std::string_view name);

EMBANK_HOST_DEVICE constexpr KeyHash HashKey(uint64_t table_hash, Key key) {
  return Mix(key ^ table_hash);
}

// The logical range of a hash, the unit of scans and resharding.
inline constexpr uint32_t kRangeBits = 12;
inline constexpr uint32_t kRangeCount = 1u << kRangeBits;
constexpr uint32_t RangeOf(KeyHash hash) {
  return static_cast<uint32_t>(hash >> (64 - kRangeBits));
}

}  // namespace embank

#endif  // EMBANK_BASE_HASH_H_
