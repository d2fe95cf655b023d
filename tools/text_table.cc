#include "tools/text_table.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/str_cat.h"

namespace embank {

std::string TextTable::Text() const {
  std::vector<size_t> widths(rows_[0].size());
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows_) {
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string spaces(widths[i] - row[i].size(), ' ');
      text += i == 0 ? "  " + row[i] + spaces : "  " + spaces + row[i];
    }
    text += '\n';
  }
  return text;
}

std::string DecimalText(double number, int decimals) {
  std::array<char, 330> digits;  // no number has more in front of its nine decimals
  const std::to_chars_result end =
      std::to_chars(digits.begin(), digits.end(), number, std::chars_format::fixed, decimals);
  return {digits.begin(), end.ptr};
}

std::string BytesText(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return StrCat(bytes, " B");
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1000 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return StrCat(DecimalText(value, 1), " ", kUnits[unit]);
}

std::string Printable(const std::string& text) {
  std::string printable = text;
  for (char& c : printable) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = '?';
  }
  return printable;
}

}  // namespace embank
