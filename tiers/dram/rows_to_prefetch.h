// Prefetches of rows that are about to be read or written.
#ifndef EMBANK_TIERS_DRAM_ROWS_TO_PREFETCH_H_
#define EMBANK_TIERS_DRAM_ROWS_TO_PREFETCH_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "tiers/dram/dram_tier.h"
#include "tiers/row/location.h"
#include "tiers/row/row_header.h"

namespace embank {

// Where rows are, and how many bytes of each are needed: at least the header.
class RowsToPrefetch {
 public:
  RowsToPrefetch(RowAddresses rows, uint32_t row_bytes)
      : rows_(rows), end_bytes_(std::min(row_bytes, kLinesMax * kLineBytes)) {}

  RowHeader* At(Location location) const {
    return reinterpret_cast<RowHeader*>(rows_.At(location));
  }
  uint32_t end_bytes() const { return end_bytes_; }

  // Prefetches the first bytes of a row: the header, to be written (heat), and up to eight lines
  // more. The processor fetches the rest by itself. Always inlined: g++ 12 takes a function that
  // only prefetches for one without effect, and drops its calls.
  [[gnu::always_inline]] static void Prefetch(const RowHeader* header, uint32_t end_bytes) {
    const auto* const row = reinterpret_cast<const std::byte*>(header);
    __builtin_prefetch(row, 1);
    // Rows begin at any unit of a line: the last byte may be one line further. It shares its line
    // with all of its own unit.
    for (uint32_t i = kLineBytes; i + kLocationUnitBytes < end_bytes; i += kLineBytes) {
      __builtin_prefetch(row + i);
    }
    __builtin_prefetch(row + end_bytes - 1);
  }

 private:
  static constexpr uint32_t kLineBytes = 64;
  static constexpr uint32_t kLinesMax = 9;
  const RowAddresses rows_;
  const uint32_t end_bytes_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_ROWS_TO_PREFETCH_H_
