// Text made of pieces: words and numbers. Numbers do not depend on the process's locale.
#ifndef EMBANK_BASE_STR_CAT_H_
#define EMBANK_BASE_STR_CAT_H_

#include <array>
#include <charconv>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace embank {

// The lowest digits of a number: in hexadecimal (Hex) or decimal (Dec), filled up with zeros from
// the left to `width` digits.
struct PaddedNumber {
  uint64_t value = 0;
  int base = 10;
  size_t width = 1;
};
template <std::unsigned_integral Number>
constexpr PaddedNumber Hex(Number value, size_t width = 1) {
  return {value, 16, width};
}
template <std::unsigned_integral Number>
constexpr PaddedNumber Dec(Number value, size_t width = 1) {
  return {value, 10, width};
}

// One argument of StrCat. It refers to a text that its caller owns, or holds a number's digits.
class StrPiece {
 public:
  // Implicit: a caller of StrCat writes texts and numbers as they stand.
  // NOLINTBEGIN(google-explicit-constructor)
  StrPiece(std::string_view text) : text_(text) {}
  StrPiece(const std::string& text) : text_(text) {}
  StrPiece(const char* text) : text_(text) {}
  StrPiece(char) = delete;  // a letter, or a number?
  StrPiece(bool) = delete;
  StrPiece(PaddedNumber number);
  template <std::integral Number>
  StrPiece(Number number) {
    const std::to_chars_result end = std::to_chars(digits_.begin(), digits_.end(), number);
    text_ = std::string_view(digits_.data(), static_cast<size_t>(end.ptr - digits_.data()));
  }
  // Writes six digits, as %g does.
  template <std::floating_point Number>
  StrPiece(Number number) {
    WriteDouble(static_cast<double>(number));
  }
  // NOLINTEND(google-explicit-constructor)
  StrPiece(const StrPiece&) = delete;
  StrPiece& operator=(const StrPiece&) = delete;

  std::string_view text() const { return text_; }

 private:
  void WriteDouble(double number);

  std::array<char, 32> digits_;
  std::string_view text_;
};

// Appends the pieces to `text`; no piece may be a part of it.
void StrAppendPieces(std::string* text, std::initializer_list<std::string_view> pieces);

// Returns the pieces as one text.
template <typename... Pieces>
std::string StrCat(const Pieces&... pieces) {
  std::string text;
  StrAppendPieces(&text, {StrPiece(pieces).text()...});
  return text;
}

// Appends the pieces to `text`; no piece may be a part of it.
template <typename... Pieces>
void StrAppend(std::string* text, const Pieces&... pieces) {
  StrAppendPieces(text, {StrPiece(pieces).text()...});
}

// Calls append(&text, thing) for each of the things, and puts `between` between them.
template <typename Things, typename Append>
std::string StrJoin(const Things& things, std::string_view between, Append append) {
  std::string text;
  bool first = true;
  for (const auto& thing : things) {
    if (!first) text.append(between);
    first = false;
    append(&text, thing);
  }
  return text;
}

// Returns the things as StrCat writes them, with `between` between them.
template <typename Things>
std::string StrJoin(const Things& things, std::string_view between) {
  return StrJoin(things, between,
                 [](std::string* text, const auto& thing) { StrAppend(text, thing); });
}

}  // namespace embank

#endif  // EMBANK_BASE_STR_CAT_H_
