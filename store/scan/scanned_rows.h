// The arrays of a scan's caller, one place of each for a row.
#ifndef EMBANK_STORE_SCAN_SCANNED_ROWS_H_
#define EMBANK_STORE_SCAN_SCANNED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/types.h"
#include "tiers/row/row_copy.h"
#include "tiers/row/row_layout.h"

namespace embank {

// Borrows the arrays. All of them have as many places as there are keys.
struct ScannedRows {
  std::span<Key> keys;
  RowSpan vectors = {};       // no data: not wanted
  RowSpan states = {};        // no data: not wanted
  uint32_t* heats = nullptr;  // nullptr: not wanted

  bool has_vectors_only() const {
    return vectors.data != nullptr && states.data == nullptr && heats == nullptr;
  }
  // Whether these arrays have all that `other` wants.
  bool Cover(const ScannedRows& other) const {
    return (vectors.data != nullptr || other.vectors.data == nullptr) &&
           (states.data != nullptr || other.states.data == nullptr) &&
           (heats != nullptr || other.heats == nullptr);
  }
  // The places from `first` on.
  ScannedRows From(size_t first) const {
    const auto rows_from = [&](RowSpan rows) {
      return rows.data == nullptr ? rows : RowSpan{rows.Row(first), rows.stride_bytes};
    };
    return {keys.subspan(first), rows_from(vectors), rows_from(states),
            heats == nullptr ? nullptr : heats + first};
  }

  // Puts a row, which has the layout of memory, into a place.
  void Put(const RowLayout& layout, size_t at, Key key, const std::byte* row, uint32_t heat) const {
    keys[at] = key;
    if (vectors.data != nullptr) {
      CopyFromRow(layout.Vector(row), layout.vector_bytes, vectors.Row(at));
    }
    if (states.data != nullptr) {
      CopyFromRow(row + layout.state_offset_bytes, layout.state_bytes(), states.Row(at));
    }
    if (heats != nullptr) heats[at] = heat;
  }
  // Copies a place of other arrays, which cover these.
  void Copy(const RowLayout& layout, size_t at, const ScannedRows& other, size_t from) const {
    keys[at] = other.keys[from];
    if (vectors.data != nullptr) {
      std::memcpy(vectors.Row(at), other.vectors.Row(from), layout.vector_bytes);
    }
    if (states.data != nullptr) {
      std::memcpy(states.Row(at), other.states.Row(from), layout.state_bytes());
    }
    if (heats != nullptr) heats[at] = other.heats[from];
  }
};

}  // namespace embank

#endif  // EMBANK_STORE_SCAN_SCANNED_ROWS_H_
