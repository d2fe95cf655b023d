// Copies between rows, which other threads may read or write meanwhile, and memory of one thread.
// A copy may be torn: versions tell (tiers/row_header.h), and then nothing of it is used. So rows
// are read by the widest instructions there are; under ThreadSanitizer in relaxed atomic words.
#ifndef EMBANK_TIERS_ROW_COPY_H_
#define EMBANK_TIERS_ROW_COPY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace embank {

inline uint64_t LoadRowWord(const std::byte* from) {
  auto* const word = reinterpret_cast<uint64_t*>(const_cast<std::byte*>(from));
  return std::atomic_ref(*word).load(std::memory_order_relaxed);
}

inline void StoreRowWord(std::byte* to, uint64_t word) {
  std::atomic_ref(*reinterpret_cast<uint64_t*>(to)).store(word, std::memory_order_relaxed);
}

// Copies `bytes` from a row's word-aligned `from` to `to`, which needs no alignment. Reads no
// further than the last word.
void CopyFromRow(const std::byte* from, uint32_t bytes, std::byte* to);

// Copies `bytes` from `from` to a row's word-aligned `to`, in relaxed atomic words; writes the last
// one whole.
void CopyToRow(const std::byte* from, uint32_t bytes, std::byte* to);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_COPY_H_
