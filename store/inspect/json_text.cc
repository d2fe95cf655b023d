#include "store/inspect/json_text.h"

#include <cstddef>
#include <cstdint>

#include "base/str_cat.h"
#include "base/utf8.h"

namespace embank {

std::string JsonString(std::string_view bytes) {
  std::string json = "\"";
  while (!bytes.empty()) {
    const size_t count = Utf8CharacterBytes(bytes);
    const auto first = static_cast<uint8_t>(bytes[0]);
    if (count == 0) {
      json += "\\ufffd";
    } else if (first < 0x20 || first == 0x7F) {
      StrAppend(&json, "\\u", Hex(first, 4));
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
    StrAppend(&json, json.size() > 1 ? "," : "", JsonString(text));
  }
  return json + "]";
}

}  // namespace embank
