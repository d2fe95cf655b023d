// Checks that bytes are UTF-8. Names of tables and texts for other programs must be.
#ifndef EMBANK_BASE_UTF8_H_
#define EMBANK_BASE_UTF8_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace embank {

// Returns the bytes of the first character of `text`; 0: it is no character, or there is none.
inline size_t Utf8CharacterBytes(std::string_view text) {
  const auto byte_at = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  if (text.empty()) return 0;
  const uint8_t first = byte_at(0);
  if (first < 0x80) return 1;
  // The bytes C0, C1 and F5 to FF would begin a character with a shorter form, or none at all.
  const size_t bytes = first < 0xC2   ? 0
                       : first < 0xE0 ? 2
                       : first < 0xF0 ? 3
                       : first < 0xF5 ? 4
                                      : 0;
  if (bytes == 0 || bytes > text.size()) return 0;
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte_at(i) & 0xC0) != 0x80) return 0;
  }
  // Refuses forms that are longer than needed, surrogates of UTF-16, and numbers beyond the last
  // character.
  const uint8_t second = byte_at(1);
  const bool is_none = (first == 0xE0 && second < 0xA0) || (first == 0xED && second >= 0xA0) ||
                       (first == 0xF0 && second < 0x90) || (first == 0xF4 && second >= 0x90);
  return is_none ? 0 : bytes;
}

// Returns the first byte that belongs to no character; text.size(): there is none.
inline size_t FirstNotUtf8(std::string_view text) {
  size_t i = 0;
  while (i < text.size()) {
    const size_t bytes = Utf8CharacterBytes(text.substr(i));
    if (bytes == 0) return i;
    i += bytes;
  }
  return i;
}

}  // namespace embank

#endif  // EMBANK_BASE_UTF8_H_
