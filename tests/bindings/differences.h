// The differences between an answer of the store and that of its oracle, in words; "" where there
// is none.
#ifndef EMBANK_TESTS_BINDINGS_DIFFERENCES_H_
#define EMBANK_TESTS_BINDINGS_DIFFERENCES_H_

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <vector>

#include "tests/support/c_api.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/row_buffer.h"

namespace embank::test {

inline std::string StatusDifference(embank_status actual, embank_status expected) {
  if (actual == expected) return "";
  return std::string("status ") + embank_status_name(actual) + " (" + embank_last_error() +
         ") and not " + embank_status_name(expected);
}

// Rows by value (any NaN equals any NaN), the bytes between them exactly.
inline std::string RowsDifference(const RowBuffer& actual, const RowBuffer& expected,
                                  const std::vector<uint64_t>& keys, uint64_t count, int32_t type) {
  if (actual == expected) return "";
  RowBuffer merged = actual;
  for (uint64_t i = 0; i < keys.size(); ++i) {
    if (!SameValues(actual.row(i), expected.row(i), count, type)) {
      return "another row at position " + std::to_string(i) + ", key " + std::to_string(keys[i]);
    }
    std::memcpy(merged.row(i), expected.row(i), count * oracle::ValueBytes(type));
  }
  return merged == expected ? "" : "bytes outside the rows were written";
}

inline std::string OutcomesDifference(const std::vector<uint8_t>& actual,
                                      const std::vector<uint8_t>& expected,
                                      const std::vector<uint64_t>& keys) {
  auto at = std::mismatch(actual.begin(), actual.end(), expected.begin()).first;
  if (at == actual.end()) return "";
  size_t i = static_cast<size_t>(at - actual.begin());
  return "outcome " + std::to_string(actual[i]) + " and not " + std::to_string(expected[i]) +
         " at position " + std::to_string(i) + ", key " + std::to_string(keys[i]);
}

inline std::string FirstOf(std::initializer_list<std::string> differences) {
  for (const std::string& difference : differences) {
    if (!difference.empty()) return difference;
  }
  return "";
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_BINDINGS_DIFFERENCES_H_
