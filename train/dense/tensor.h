// Matrices as spans with a shape. They own nothing: the memory is the caller's.
#ifndef EMBANK_TRAIN_DENSE_TENSOR_H_
#define EMBANK_TRAIN_DENSE_TENSOR_H_

#include <cstdint>
#include <span>
#include <type_traits>

#include "base/check.h"

namespace embank {

// A view of floats by rows. Rows of a wider matrix are `stride` floats apart.
template <typename Value>
struct MatrixView {
  Value* data = nullptr;
  uint32_t rows = 0;
  uint32_t columns = 0;
  uint32_t stride = 0;  // in floats; at least `columns`

  MatrixView() = default;
  // Views floats that stand row behind row.
  MatrixView(Value* first, uint32_t row_count, uint32_t column_count)
      : MatrixView(first, row_count, column_count, column_count) {}
  // Views rows that are `row_stride` floats apart.
  MatrixView(Value* first, uint32_t row_count, uint32_t column_count, uint32_t row_stride)
      : data(first), rows(row_count), columns(column_count), stride(row_stride) {
    EMBANK_CHECK(row_stride >= column_count);
  }
  // A function that only reads takes any view. NOLINTNEXTLINE(google-explicit-constructor)
  operator MatrixView<const Value>() const { return {data, rows, columns, stride}; }

  // Views one row.
  std::span<Value> Row(uint32_t row) const { return {data + uint64_t{row} * stride, columns}; }
  // Views the rows from `begin` up to `end`, which is not included.
  MatrixView RowsFrom(uint32_t begin, uint32_t end) const {
    EMBANK_CHECK(begin <= end && end <= rows);
    return {data + uint64_t{begin} * stride, end - begin, columns, stride};
  }
  // Views the columns from `begin` up to `end`, which is not included.
  MatrixView ColumnsFrom(uint32_t begin, uint32_t end) const {
    EMBANK_CHECK(begin <= end && end <= columns);
    return {data + begin, rows, end - begin, stride};
  }
  // Tells whether both have the same number of rows and of columns.
  template <typename Other>
  bool HasShapeOf(const MatrixView<Other>& other) const {
    return rows == other.rows && columns == other.columns;
  }
};

using Matrix = MatrixView<float>;
using ConstMatrix = MatrixView<const float>;

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_TENSOR_H_
