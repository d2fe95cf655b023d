#include "tests/support/row_values.h"

#include "base/check.h"

namespace embank::test {

void FillRow(std::vector<float>* rows, size_t i, size_t dim, float value) {
  EMBANK_CHECK((i + 1) * dim <= rows->size());
  float* const row = rows->data() + i * dim;
  for (size_t k = 0; k < dim; ++k) row[k] = value;
}

bool IsRowOf(const std::vector<float>& rows, size_t i, size_t dim, float value) {
  EMBANK_CHECK((i + 1) * dim <= rows.size());
  const float* const row = rows.data() + i * dim;
  bool are_same = true;
  for (size_t k = 0; k < dim; ++k) are_same &= row[k] == value;
  return are_same;
}

bool IsWholeRow(const std::vector<float>& rows, size_t i, size_t dim) {
  return IsRowOf(rows, i, dim, rows.at(i * dim));
}

}  // namespace embank::test
