#include "store/json_text.h"

#include <cstddef>
#include <cstdint>

#include "absl/strings/str_cat.h"

namespace embank {
namespace {

// The bytes of the character at the front of `bytes`; 0: it is no UTF-8 (RFC 3629, section 4).
size_t CharacterBytes(std::string_view bytes) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(bytes[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  const size_t count = first < 0xC2   ? 0
                       : first < 0xE0 ? 2
                       : first < 0xF0 ? 3
                       : first < 0xF5 ? 4
                                      : 0;
  if (count == 0 || bytes.size() < count) return 0;
  for (size_t i = 1; i < count; ++i) {
    if (byte(i) >> 6 != 2) return 0;
  }
  // Longer than needed, a surrogate, or beyond the last character.
  const bool is_wrong = (first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) > 0x9F) ||
                        (first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) > 0x8F);
  return is_wrong ? 0 : count;
}

}  // namespace

std::string JsonString(std::string_view bytes) {
  std::string json = "\"";
  while (!bytes.empty()) {
    const size_t count = CharacterBytes(bytes);
    const auto first = static_cast<uint8_t>(bytes[0]);
    if (count == 0) {
      json += "\\ufffd";
    } else if (first < 0x20 || first == 0x7F) {
      absl::StrAppend(&json, "\\u", absl::Hex(first, absl::kZeroPad4));
    } else {
      if (first == '"' || first == '\\') json += '\\';
      json += bytes.substr(0, count);
    }
    bytes.remove_prefix(count == 0 ? 1 : count);
  }
  return json + "\"";
}

std::string JsonStrings(std::span<const std::string> strings) {
  std::string json = "[";
  for (const std::string& text : strings) {
    absl::StrAppend(&json, json.size() > 1 ? "," : "", JsonString(text));
  }
  return json + "]";
}

}  // namespace embank
