#include "bench/ssd_rows.h"

#include <algorithm>
#include <cstring>

#include "base/hash.h"

namespace embank {
namespace {

constexpr size_t kWordBytes = 4;
// 16-bit values up to 0x3FFF are below 2 in both 16-bit types; so is a float with such a half.
constexpr uint32_t kHalfMask = 0x3FFF;

uint32_t HighHalfOf(Key key) { return static_cast<uint32_t>(Mix(key) & kHalfMask) << 16; }

uint32_t FirstWord(std::span<const std::byte> vector) {
  uint32_t word = 0;
  std::memcpy(&word, vector.data(), std::min(kWordBytes, vector.size()));
  return word;
}

}  // namespace

void WriteVersion(Key key, uint32_t version, std::span<std::byte> vector) {
  const uint32_t word = HighHalfOf(key) | (version & kHalfMask);
  for (size_t i = 0; i < vector.size(); i += kWordBytes) {
    std::memcpy(&vector[i], &word, std::min(kWordBytes, vector.size() - i));
  }
}

bool IsVersionOf(Key key, std::span<const std::byte> vector) {
  const uint32_t first = FirstWord(vector);
  uint32_t difference = 0;
  const size_t words = vector.size() / kWordBytes;
  for (size_t i = 0; i < words; ++i) {
    uint32_t word = 0;
    std::memcpy(&word, &vector[i * kWordBytes], kWordBytes);
    difference |= word ^ first;
  }
  if (words == 0) return (first & ~kHalfMask) == 0;
  const size_t rest = vector.size() - words * kWordBytes;
  return difference == 0 && (first & ~kHalfMask) == HighHalfOf(key) &&
         std::memcmp(&vector[words * kWordBytes], &first, rest) == 0;
}

uint32_t VersionIn(std::span<const std::byte> vector) { return FirstWord(vector) & kHalfMask; }

}  // namespace embank
