#include "base/str_cat.h"

#include <algorithm>
#include <cmath>

namespace embank {

StrPiece::StrPiece(PaddedNumber number) {
  std::array<char, 20> digits;
  const std::to_chars_result end =
      std::to_chars(digits.begin(), digits.end(), number.value, number.base);
  const size_t written = static_cast<size_t>(end.ptr - digits.data());
  const size_t width = std::clamp(number.width, written, std::max(written, digits_.size()));
  std::fill_n(digits_.begin(), width - written, '0');
  std::copy_n(digits.begin(), written, digits_.begin() + (width - written));
  text_ = std::string_view(digits_.data(), width);
}

void StrPiece::WriteDouble(double number) {
  if (std::isnan(number)) {
    text_ = "nan";
    return;
  }
  const std::to_chars_result end =
      std::to_chars(digits_.begin(), digits_.end(), number, std::chars_format::general, 6);
  text_ = std::string_view(digits_.data(), static_cast<size_t>(end.ptr - digits_.data()));
}

void StrAppendPieces(std::string* text, std::initializer_list<std::string_view> pieces) {
  size_t size = text->size();
  for (const std::string_view piece : pieces) size += piece.size();
  // A text that grows piece by piece would move at each one otherwise.
  if (size > text->capacity()) text->reserve(std::max(size, 2 * text->capacity()));
  for (const std::string_view piece : pieces) text->append(piece);
}

}  // namespace embank
