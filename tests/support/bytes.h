// Texts as bytes of files.
#ifndef EMBANK_TESTS_SUPPORT_BYTES_H_
#define EMBANK_TESTS_SUPPORT_BYTES_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace embank::test {

inline std::vector<std::byte> BytesOf(std::string_view text) {
  const auto* const begin = reinterpret_cast<const std::byte*>(text.data());
  return {begin, begin + text.size()};
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_BYTES_H_
