#include "tiers/row_copy.h"

#include <algorithm>
#include <cstring>

#include "base/simd_clones.h"

namespace embank {

namespace {

constexpr uint32_t kWordBytes = sizeof(uint64_t);

}  // namespace

void CopyToRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  for (uint32_t i = 0; i < bytes; i += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, from + i, std::min(kWordBytes, bytes - i));
    StoreRowWord(to + i, word);
  }
}

#if defined(__SANITIZE_THREAD__)

void CopyFromRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  for (uint32_t i = 0; i < bytes; i += kWordBytes) {
    const uint64_t word = LoadRowWord(from + i);
    std::memcpy(to + i, &word, std::min(kWordBytes, bytes - i));
  }
}

#else

namespace {

// A line in one register, or in two or four, whatever the machine has.
constexpr size_t kLineBytes = 64;
using Line = uint64_t __attribute__((vector_size(kLineBytes)));

#define EMBANK_INLINE __attribute__((always_inline)) inline

EMBANK_INLINE void CopyLine(const std::byte* from, std::byte* to) {
  Line line;
  std::memcpy(&line, from, sizeof line);
  std::memcpy(to, &line, sizeof line);
}

// Of a size known to the compiler: no loop is left.
template <uint32_t lines>
EMBANK_INLINE void CopyLines(const std::byte* from, std::byte* to) {
#pragma GCC unroll 8
  for (size_t i = 0; i < lines; ++i) CopyLine(from + i * kLineBytes, to + i * kLineBytes);
}

}  // namespace

// The last line overlaps the one before it where bytes are no whole number of lines.
EMBANK_SIMD_CLONES void CopyFromRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  switch (bytes) {
    case 64:
      return CopyLines<1>(from, to);
    case 128:
      return CopyLines<2>(from, to);
    case 256:
      return CopyLines<4>(from, to);
    case 512:
      return CopyLines<8>(from, to);
    default:
      break;
  }
  if (bytes < kLineBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  const size_t last = bytes - kLineBytes;
  for (size_t i = 0; i < last; i += kLineBytes) CopyLine(from + i, to + i);
  CopyLine(from + last, to + last);
}

#undef EMBANK_INLINE

#endif

}  // namespace embank
