#include "train/data/field_value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

namespace embank {
namespace {

constexpr std::string_view kMissingWords[] = {"NA",   "N/A",  "n/a",  "#NA",  "#N/A", "#N/A N/A",
                                              "<NA>", "NaN",  "nan",  "NAN",  "-nan", "-NaN",
                                              "null", "NULL", "None", "none", "\\N"};
constexpr std::string_view kMissingBegins = "Nn#<-\\";  // their first characters
// Each whole number below it is a number of 64 bits with a fraction, too; it is also what its
// successor is rounded to, which is another id.
constexpr double kWholeMax = 0x1p53;

// The whole of a text as a number.
template <typename Number>
bool Convert(std::string_view text, Number* number) {
  const char* const end = text.data() + text.size();
  const std::from_chars_result result = std::from_chars(text.data(), end, *number);
  return result.ec == std::errc() && result.ptr == end;
}

}  // namespace

bool IsMissingNumber(std::string_view field, LogRules rules) {
  if (field.empty()) return true;
  if (rules == LogRules::kFirst || kMissingBegins.find(field[0]) == std::string_view::npos) {
    return false;
  }
  return std::ranges::find(kMissingWords, field) != std::end(kMissingWords);
}

std::optional<double> ReadNumber(std::string_view text, LogRules rules) {
  if (rules != LogRules::kFirst && text.starts_with('+') && !text.starts_with("+-")) {
    text.remove_prefix(1);
  }
  double number = 0.0;
  if (!Convert(text, &number) || !std::isfinite(number)) return std::nullopt;
  return number;
}

bool HasDecimalComma(std::string_view text) {
  std::string point(text);
  std::ranges::replace(point, ',', '.');
  return point != text && ReadNumber(point, kNewestRules).has_value();
}

std::optional<WholeNumber> ReadWholeNumber(std::string_view text, LogRules rules) {
  uint64_t digits = 0;
  if (Convert(text, &digits)) return WholeNumber{digits};
  if (rules == LogRules::kFirst) return std::nullopt;
  int64_t negative = 0;
  if (Convert(text, &negative)) {
    return WholeNumber{static_cast<uint64_t>(negative), negative < 0};
  }
  const std::optional<double> number = ReadNumber(text, rules);
  if (!number || std::abs(*number) >= kWholeMax || *number != std::floor(*number)) {
    return std::nullopt;
  }
  return WholeNumber{static_cast<uint64_t>(static_cast<int64_t>(*number)), *number < 0.0};
}

}  // namespace embank
