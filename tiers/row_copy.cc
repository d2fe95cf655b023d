#include "tiers/row_copy.h"

namespace embank {
namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);

// Of a size known to the compiler: no loop is left.
template <uint32_t words>
inline void CopyWordsFromRow(const std::byte* from, std::byte* to) {
#pragma GCC unroll 64
  for (uint32_t i = 0; i < words; ++i) {
    const uint64_t word = LoadRowWord(from + i * kWordBytes);
    std::memcpy(to + i * kWordBytes, &word, kWordBytes);
  }
}

}  // namespace

void CopyFromRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  switch (bytes) {
    case 16:
      return CopyWordsFromRow<2>(from, to);
    case 32:
      return CopyWordsFromRow<4>(from, to);
    case 64:
      return CopyWordsFromRow<8>(from, to);
    case 128:
      return CopyWordsFromRow<16>(from, to);
    case 256:
      return CopyWordsFromRow<32>(from, to);
    case 512:
      return CopyWordsFromRow<64>(from, to);
    default:
      break;
  }
  for (; bytes >= 8 * kWordBytes; bytes -= static_cast<uint32_t>(8 * kWordBytes)) {
    CopyWordsFromRow<8>(from, to);
    from += 8 * kWordBytes;
    to += 8 * kWordBytes;
  }
  for (; bytes >= kWordBytes; bytes -= static_cast<uint32_t>(kWordBytes)) {
    CopyWordsFromRow<1>(from, to);
    from += kWordBytes;
    to += kWordBytes;
  }
  if (bytes == 0) return;
  const uint64_t word = LoadRowWord(from);
  std::memcpy(to, &word, bytes);
}

void CopyToRow(const std::byte* from, uint32_t bytes, std::byte* to) {
  for (size_t i = 0; i < bytes; i += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, from + i, kWordBytes);
    StoreRowWord(to + i, word);
  }
}

}  // namespace embank
