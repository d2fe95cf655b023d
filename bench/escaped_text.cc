#include "bench/escaped_text.h"

namespace embank {

std::string EscapedText(std::string_view text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        const auto byte = static_cast<unsigned char>(c);
        escaped += (byte < 0x20 && c != '\n') || byte == 0x7F ? '?' : c;
    }
  }
  return escaped;
}

}  // namespace embank
