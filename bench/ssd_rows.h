// The rows that the ssd benchmark writes: a row tells its key and its version, so that a wrong
// answer is noticed.
#ifndef EMBANK_BENCH_SSD_ROWS_H_
#define EMBANK_BENCH_SSD_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.h"

namespace embank {

// Versions begin again behind it.
inline constexpr uint32_t kRowVersionMax = 0x3FFF;

// Fills a vector: words of 4 bytes that are all alike, finite in every value type, 14 bits of them
// the key's and 14 the version's. An odd last half word is a word's first half.
void WriteVersion(Key key, uint32_t version, std::span<std::byte> vector);

// Whether the vector is the key's, whole, in any version.
bool IsVersionOf(Key key, std::span<const std::byte> vector);

// The version of a vector of at least 4 bytes.
uint32_t VersionIn(std::span<const std::byte> vector);

}  // namespace embank

#endif  // EMBANK_BENCH_SSD_ROWS_H_
