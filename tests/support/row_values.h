// Rows of one number each. They are compiled like the library, since with sanitizers the tests are
// not optimised, and would take much of their time for these.
#ifndef EMBANK_TESTS_SUPPORT_ROW_VALUES_H_
#define EMBANK_TESTS_SUPPORT_ROW_VALUES_H_

#include <cstddef>
#include <vector>

namespace embank::test {

// Row i of `rows` has `dim` numbers from i * dim on.
void FillRow(std::vector<float>* rows, size_t i, size_t dim, float value);
// Whether all numbers of row i are `value`.
bool IsRowOf(const std::vector<float>& rows, size_t i, size_t dim, float value);
// Whether all numbers of row i are the same: a row that is not torn.
bool IsWholeRow(const std::vector<float>& rows, size_t i, size_t dim);

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_ROW_VALUES_H_
