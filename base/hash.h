// Mixing, the hashes of tables and keys, and the owners of rows (docs/arithmetic.md). They are
// fixed forever: shards, ranks and files agree on them.
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

// The logical range of a hash, the unit of scans.
inline constexpr uint32_t kRangeBits = 12;
inline constexpr uint32_t kRangeCount = 1u << kRangeBits;
constexpr uint32_t RangeOf(KeyHash hash) {
  return static_cast<uint32_t>(hash >> (64 - kRangeBits));
}

// The owner of a row among `owners` (1 .. kOwnersMax) ranks. A second mix, because all bits of the
// hash itself have another use: rows that share any of them would share shards, buckets, places of
// hash tables or fingerprints (docs/decisions/0049-owners-by-a-second-mix.md).
inline constexpr uint32_t kOwnerBits = 12;
inline constexpr uint32_t kOwnersMax = 256;
EMBANK_HOST_DEVICE constexpr uint32_t OwnerOf(KeyHash hash, uint32_t owners) {
  return static_cast<uint32_t>((Mix(hash) >> (64 - kOwnerBits)) * owners >> kOwnerBits);
}

}  // namespace embank

#endif  // EMBANK_BASE_HASH_H_
