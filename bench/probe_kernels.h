// Loops that show the limits of the machine: the memory accesses that a store cannot avoid, and
// nothing else. Keys go through in groups: their index lines are prefetched, then all lines of
// their rows, then the rows are used, so that the misses of a group overlap.
//
// An index line is eight words; there are as many lines as an index of buckets with 7 entries,
// filled to 0.7, would have. The hash of a key chooses a word of a line, and the word tells the
// key's row:
//
//   | first row 40 | seed 16 | count 8 |
//    63          24 23      8 7       0
//
// `count` keys share the word, their rows stand from `first row` on, and the seed turns their
// hashes into different numbers below `count`: every key has a row of its own, and nothing has to
// be compared.
#ifndef EMBANK_BENCH_PROBE_KERNELS_H_
#define EMBANK_BENCH_PROBE_KERNELS_H_

#include <cstddef>
#include <cstdint>

#include "base/hash.h"
#include "base/types.h"

namespace embank {

inline constexpr uint32_t kProbeLineBytes = 64;
inline constexpr uint32_t kProbeSeedMax = 0xFFFF;
inline constexpr uint32_t kProbeCountMax = 0xFF;

constexpr uint64_t MakeProbeWord(uint64_t first_row, uint32_t seed, uint32_t count) {
  return (first_row << 24) | (uint64_t{seed} << 8) | count;
}
constexpr uint64_t ProbeFirstRow(uint64_t word) { return word >> 24; }
constexpr uint32_t ProbeCount(uint64_t word) { return word & kProbeCountMax; }

// The row of the key with `hash`, from its word.
constexpr uint64_t ProbeRow(uint64_t word, KeyHash hash) {
  const uint64_t seed = (word >> 8) & kProbeSeedMax;
  const uint64_t scattered = (hash * (2 * seed + 1) >> 20) & 0xFFFFFFFF;
  return ProbeFirstRow(word) + ((scattered * ProbeCount(word)) >> 32);
}

__extension__ using ProbeProduct = unsigned __int128;

// hash * n / 2^64: uniform below n.
constexpr uint64_t ProbePlace(KeyHash hash, uint64_t n) {
  return static_cast<uint64_t>((ProbeProduct{hash} * n) >> 64);
}

// The addresses of index and rows.
struct ProbeView {
  uint64_t* words = nullptr;
  uint64_t words_count = 0;
  std::byte* rows = nullptr;
  uint64_t rows_bytes = 0;
  uint32_t row_bytes = 0;  // distance of rows, header included
  uint64_t table_hash = 0;
};

// Reads one word of a line per key, scattered over all rows. The sum keeps the loop alive.
uint64_t ReadRandomLines(const ProbeView& view, KeySpan keys);

// Copies `bytes` behind the header of each key's row to `out`, packed.
void GatherRows(const ProbeView& view, KeySpan keys, uint32_t bytes, std::byte* out);

// Adds to the `bytes` / 4 floats behind the header of each key's row. Threads may meet in a row and
// lose an addition: sums mean nothing here.
void AddToRows(const ProbeView& view, KeySpan keys, uint32_t bytes);

// Counts each key in its index word and writes the rows `first_row`, `first_row` + 1, ...: header
// and `bytes` behind it. Threads may lose a count.
void WriteRows(const ProbeView& view, KeySpan keys, uint64_t first_row, uint32_t bytes);

// `bytes` is a multiple of 64. The sum keeps the loop alive.
uint64_t ReadStream(const std::byte* memory, uint64_t bytes);
// Fills with floats of 1.
void WriteStream(std::byte* memory, uint64_t bytes);

}  // namespace embank

#endif  // EMBANK_BENCH_PROBE_KERNELS_H_
