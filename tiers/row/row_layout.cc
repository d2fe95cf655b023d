#include "tiers/row/row_layout.h"

#include "base/check.h"
#include "base/memory/memory.h"

namespace embank {

RowLayout MakeRowLayout(uint32_t dim, ValueType value_type, Optimizer optimizer) {
  EMBANK_CHECK(dim >= 1 && dim <= kDimMax);
  RowLayout layout;
  layout.dim = dim;
  layout.value_type = value_type;
  layout.optimizer = optimizer;
  layout.vector_bytes = dim * ValueBytes(value_type);
  layout.state_floats = StateFloats(optimizer, dim);
  layout.state_offset_bytes =
      static_cast<uint32_t>(RoundUp(RowLayout::kVectorOffsetBytes + layout.vector_bytes, 4));
  const uint64_t bytes = layout.state_offset_bytes + layout.state_bytes();
  // Rows are whole cache lines where that wastes at most an eighth, so that a row touches no line
  // in vain.
  const uint64_t in_lines = RoundUp(bytes, 64);
  const bool lines_are_cheap = (in_lines - bytes) * 8 <= in_lines;
  layout.row_bytes = static_cast<uint32_t>(lines_are_cheap ? in_lines : RoundUp(bytes, 16));
  EMBANK_CHECK(layout.row_bytes % 16 == 0 && bytes <= layout.row_bytes);
  EMBANK_CHECK(layout.row_bytes <= kRowBytesMax);
  return layout;
}

}  // namespace embank
