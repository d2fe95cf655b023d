// A number as text with as many digits as it takes to read the same bits back, where StrCat writes
// six.
#ifndef EMBANK_BASE_EXACT_TEXT_H_
#define EMBANK_BASE_EXACT_TEXT_H_

#include <array>
#include <charconv>
#include <concepts>
#include <string>

namespace embank {

// Returns the shortest text from which std::from_chars reads a number of this type.
template <std::floating_point Number>
std::string ExactText(Number number) {
  std::array<char, 32> digits;
  const std::to_chars_result end = std::to_chars(digits.begin(), digits.end(), number);
  return std::string(digits.data(), end.ptr);
}

}  // namespace embank

#endif  // EMBANK_BASE_EXACT_TEXT_H_
