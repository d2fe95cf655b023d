// Copies between rows, which other threads may read or write meanwhile, and memory of one thread.
// A copy may be torn: versions tell (tiers/row/row_header.h), and then nothing of it is used. So
// rows are read by the widest instructions there are; under ThreadSanitizer in relaxed atomic
// words.
#ifndef EMBANK_TIERS_ROW_ROW_COPY_H_
#define EMBANK_TIERS_ROW_ROW_COPY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/threads/fence.h"
#include "tiers/row/row_header.h"

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

// A row as it stood when a reader came to it, by way of an index entry.
struct RowWatch {
  RowHeader* header;  // nullptr: none
  RowMark mark;
  const std::atomic<uint64_t>* entry;
  uint64_t entry_seen;

  // Whether all that was read of the row until now is the row's.
  bool IsCurrent() const {
    AcquireFence();
    return LoadIdentity(header) == mark.identity &&
           entry->load(std::memory_order_relaxed) == entry_seen;
  }
};

// Where a row's vector goes, which needs no alignment.
struct VectorCopy {
  RowWatch row;
  std::byte* to;
};
// At most so many at a time.
inline constexpr size_t kVectorCopiesMax = 32;

// Copies the vectors, of `bytes` each, of the rows that there are, and returns whose rows stood
// when all bytes were read: a bit each. Where one did not, `to` is as it was. More than
// kHeldBytesMax go by way of `image`, which has space for them; nullptr: then `to` may be
// overwritten in vain.
inline constexpr uint32_t kHeldBytesMax = 512;
uint32_t CopyVectors(std::span<const VectorCopy> copies, uint32_t bytes, std::byte* image);

// Copies `bytes` from `from` to a row's word-aligned `to`, in relaxed atomic words; writes the last
// one whole.
void CopyToRow(const std::byte* from, uint32_t bytes, std::byte* to);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_COPY_H_
