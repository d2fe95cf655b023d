// Copies between rows, which other threads may read or write meanwhile, and memory of one thread. A
// copy may be torn; versions tell (tiers/row/row_header.h), and then nothing of it is used. So rows
// are read by the widest instructions; under ThreadSanitizer in relaxed atomic words.
#ifndef EMBANK_TIERS_ROW_ROW_COPY_H_
#define EMBANK_TIERS_ROW_ROW_COPY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "base/types.h"
#include "tiers/row/row_watch.h"

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

// The most rows of one call.
inline constexpr size_t kVectorCopiesMax = 32;

// Copies the vectors, of `bytes` each, to the rows of `to`, which need no alignment. Returns a bit
// for each row that stayed current until all bytes were read. The destination of any other row is
// unchanged. Vectors of more than kHeldBytesMax go by way of `image`, which has space for them;
// nullptr: then destinations may be overwritten in vain.
inline constexpr uint32_t kHeldBytesMax = 512;
uint32_t CopyVectors(RowWatches rows, uint32_t bytes, RowSpan to, std::byte* image);

// Adds vectors of `dim` floats to those at `sum`, which need no alignment: in order, up to the
// first row without a header or that did not stay current until all of its floats were read.
// `weights`, if any, has a factor for each. Returns the number of rows that were added.
inline constexpr uint32_t kAddedFloats = 16;  // dim is 1 to 8 times as many
size_t AddVectors(RowWatches rows, uint32_t dim, const float* weights, std::byte* sum);

// Copies `bytes` from `from` to a row's word-aligned `to`, in relaxed atomic words. Writes the last
// word whole.
void CopyToRow(const std::byte* from, uint32_t bytes, std::byte* to);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_COPY_H_
