// Writes of rows that readers may look at meanwhile. A write is between two steps of the version,
// which tell readers that their copy is torn (tiers/row/row_header.h).
#ifndef EMBANK_TIERS_ROW_ROW_WRITE_H_
#define EMBANK_TIERS_ROW_ROW_WRITE_H_

#include <atomic>
#include <cstddef>

#include "base/memory/memory.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_header.h"
#include "tiers/row/row_layout.h"

namespace embank {

// Makes sure that the caller's bytes (at least one) are in memory before they are written to a row.
// A page that has to come from a disk would keep the row's readers waiting.
inline void FaultIn(const std::byte* bytes, size_t count) {
  // The compiler does not drop atomic loads.
  const auto look_at = [bytes](size_t i) {
    std::atomic_ref(const_cast<std::byte&>(bytes[i])).load(std::memory_order_relaxed);
  };
  for (size_t i = 0; i < count; i += kSmallPageBytes) look_at(i);
  look_at(count - 1);
}

// Calls change(image) for a row of `table` that the caller owns, under its shard's lock. The image
// has the layout of the row; the function may change its vector and state. The image is the row
// itself. Under ThreadSanitizer, which takes plain writes beside readers for a race, it is a copy.
template <typename Change>
void ChangeRow(const RowLayout& layout, TableId table, std::byte* row, Change change) {
  RowHeader* const header = layout.Header(row);
#if defined(__SANITIZE_THREAD__)
  RowImage image;
  CopyFromRow(layout.Vector(row), layout.payload_bytes(), layout.Vector(image.bytes));
  change(image.bytes);
  const uint32_t identity = BeginRowWrite(header);
  CopyToRow(layout.Vector(image.bytes), layout.payload_bytes(), layout.Vector(row));
  EndRowWrite(header, identity, table);
#else
  const uint32_t identity = BeginRowWrite(header);
  change(row);
  EndRowWrite(header, identity, table);
#endif
}

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_WRITE_H_
