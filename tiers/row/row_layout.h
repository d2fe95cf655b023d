// The layout of a row: header, embedding vector, optimizer state, padding.
#ifndef EMBANK_TIERS_ROW_ROW_LAYOUT_H_
#define EMBANK_TIERS_ROW_ROW_LAYOUT_H_

#include <cstdint>

#include "base/types.h"
#include "tiers/row/row_header.h"

namespace embank {

// Bytes of one value: 4, or 2 for the 16-bit types.
constexpr uint32_t ValueBytes(ValueType type) { return type == ValueType::kF32 ? 4 : 2; }

// Floats of optimizer state that a row carries.
constexpr uint32_t StateFloats(Optimizer optimizer, uint32_t dim) {
  switch (optimizer) {
    case Optimizer::kNone:
    case Optimizer::kSgd:
      return 0;
    case Optimizer::kAdagrad:
      return dim;
    case Optimizer::kRowwiseAdagrad:
      return 1;
    case Optimizer::kAdam:
      return 2 * dim + 1;
    case Optimizer::kFtrl:
      return 2 * dim;
  }
  return 0;
}

struct RowLayout {
  uint32_t dim = 0;
  ValueType value_type = ValueType::kF32;
  Optimizer optimizer = Optimizer::kNone;
  uint32_t vector_bytes = 0;
  uint32_t state_floats = 0;
  uint32_t state_offset_bytes = 0;  // from the start of the row; a multiple of 4
  uint32_t row_bytes = 0;           // distance of rows: a multiple of 16

  static constexpr uint32_t kVectorOffsetBytes = sizeof(RowHeader);

  uint32_t state_bytes() const { return state_floats * 4; }
  // The bytes of vector and state, with the padding between them.
  uint32_t payload_bytes() const { return state_offset_bytes + state_bytes() - kVectorOffsetBytes; }
  // The bytes of header and vector, which a lookup reads.
  uint32_t vector_end_bytes() const { return kVectorOffsetBytes + vector_bytes; }

  RowHeader* Header(std::byte* row) const { return reinterpret_cast<RowHeader*>(row); }
  std::byte* Vector(std::byte* row) const { return row + kVectorOffsetBytes; }
  const std::byte* Vector(const std::byte* row) const { return row + kVectorOffsetBytes; }
  float* State(std::byte* row) const { return reinterpret_cast<float*>(row + state_offset_bytes); }

  bool operator==(const RowLayout&) const = default;
};

// The largest row, Adam on float32, in whole cache lines: 16 + 4 * (3 * 4096 + 1) = 49,172.
inline constexpr uint32_t kRowBytesMax = 49'216;

// Space for a copy of any row.
struct RowImage {
  alignas(64) std::byte bytes[kRowBytesMax];
};

// dim is 1 .. kDimMax.
RowLayout MakeRowLayout(uint32_t dim, ValueType value_type, Optimizer optimizer);

}  // namespace embank

#endif  // EMBANK_TIERS_ROW_ROW_LAYOUT_H_
