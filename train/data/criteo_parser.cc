#include "train/data/criteo_parser.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/str_cat.h"
#include "train/data/field_value.h"
#include "train/data/log_value.h"

namespace embank {
namespace {

constexpr uint32_t kHexDigits = 8;
// A number of so many digits has no overflow in 64 bits.
constexpr uint32_t kIntegerDigitsMax = 18;

constexpr uint8_t kNoDigit = 0xFF;
constexpr std::array<uint8_t, 256> kHexValues = [] {
  std::array<uint8_t, 256> values{};
  values.fill(kNoDigit);
  for (uint8_t d = 0; d < 10; ++d) values['0' + d] = d;
  for (uint8_t d = 10; d < 16; ++d) values['a' + d - 10] = values['A' + d - 10] = d;
  return values;
}();

// A place in a line. At its end it is on no character.
struct Cursor {
  const char* next;
  const char* end;

  bool IsOn(char c) const { return next != end && *next == c; }
  bool EndsField() const { return next == end || *next == '\t'; }
};

// An integer up to the end of its field; false: it is none.
bool TakeInteger(Cursor* cursor, int64_t* value) {
  const bool is_negative = cursor->IsOn('-');
  if (is_negative) ++cursor->next;
  int64_t number = 0;
  uint32_t digits = 0;
  for (; !cursor->EndsField(); ++cursor->next, ++digits) {
    const auto digit = static_cast<uint8_t>(*cursor->next - '0');
    if (digit > 9 || digits == kIntegerDigitsMax) return false;
    number = number * 10 + digit;
  }
  *value = is_negative ? -number : number;
  return digits > 0;
}

bool TakeHex(Cursor* cursor, uint64_t* id) {
  if (cursor->end - cursor->next < kHexDigits) return false;
  uint32_t value = 0;
  uint8_t all = 0;
  for (uint32_t i = 0; i < kHexDigits; ++i) {
    const uint8_t digit = kHexValues[static_cast<uint8_t>(cursor->next[i])];
    all |= digit;
    value = value << 4 | (digit & 0xF);
  }
  cursor->next += kHexDigits;
  *id = value;
  return all < 16 && cursor->EndsField();
}

// The field that begins at `begin`; the cursor goes on to its end.
std::string_view TakeField(Cursor* cursor, const char* begin) {
  cursor->next = std::find(begin, cursor->end, '\t');
  return {begin, cursor->next};
}

// Reads an integer that is not of digits alone.
LineDefect ReadOther(std::string_view field, LogRules rules, int64_t* value) {
  *value = 0;
  if (IsMissingNumber(field, rules)) return LineDefect::kNone;
  if (rules == LogRules::kFirst) return LineDefect::kBadNumber;
  const std::optional<WholeNumber> number = ReadWholeNumber(field, rules);
  // Signs and points count as digits do.
  if (!number || field.size() > kIntegerDigitsMax) return LineDefect::kBadNumber;
  *value = static_cast<int64_t>(number->bits);
  return LineDefect::kNone;
}

// Goes on behind a tab.
bool TakeTab(Cursor* cursor) {
  if (!cursor->IsOn('\t')) return false;
  ++cursor->next;
  return true;
}

}  // namespace

CriteoParser::CriteoParser(uint32_t integers, uint32_t ids, LogRules rules, CriteoLabel label)
    : rules_(rules), label_(label) {
  for (uint32_t i = 1; i <= integers; ++i) columns_.dense.push_back(StrCat("I", i));
  for (uint32_t i = 1; i <= ids; ++i) columns_.ids.push_back(StrCat("C", i));
}

CriteoLabel CriteoParser::LabelOf(std::string_view first_line, uint32_t integers, uint32_t ids) {
  const auto tabs = static_cast<uint64_t>(std::ranges::count(first_line, '\t'));
  return tabs + 1 == uint64_t{integers} + ids ? CriteoLabel::kNone : CriteoLabel::kIgnored;
}

LineDefect CriteoParser::Parse(std::string_view line, ClickRow* row, BadField* bad) const {
  row->dense.resize(columns_.dense.size());
  row->ids.resize(columns_.ids.size());
  row->label.reset();
  Cursor cursor{line.data(), line.data() + line.size()};
  if (label_ == CriteoLabel::kRead) {
    const bool is_click = cursor.IsOn('1');
    const bool is_label = is_click || cursor.IsOn('0');
    if (is_label) ++cursor.next;
    if (!is_label || !cursor.EndsField()) {
      return bad->Set(LineDefect::kBadLabel, "1", TakeField(&cursor, line.data()));
    }
    row->label = is_click ? 1.0f : 0.0f;
  } else if (label_ == CriteoLabel::kIgnored) {
    TakeField(&cursor, line.data());
  }
  bool has_tab = label_ != CriteoLabel::kNone;
  for (float& dense : row->dense) {
    if (has_tab && !TakeTab(&cursor)) return bad->Set(LineDefect::kTooFewColumns, "", line);
    has_tab = true;
    const char* const begin = cursor.next;
    int64_t value = 0;
    if (!cursor.EndsField() && !TakeInteger(&cursor, &value)) {
      const std::string_view field = TakeField(&cursor, begin);
      const LineDefect defect = ReadOther(field, rules_, &value);
      if (defect != LineDefect::kNone) {
        const auto i = static_cast<size_t>(&dense - row->dense.data());
        return bad->Set(defect, columns_.dense[i], field);
      }
    }
    dense = LogOfCount(value);
  }
  for (uint64_t& id : row->ids) {
    if (!TakeTab(&cursor)) return bad->Set(LineDefect::kTooFewColumns, "", line);
    const char* const begin = cursor.next;
    id = kMissingId;
    if (cursor.EndsField() || TakeHex(&cursor, &id)) continue;
    const std::string_view field = TakeField(&cursor, begin);
    if (!IsMissingNumber(field, rules_)) {
      const auto i = static_cast<size_t>(&id - row->ids.data());
      return bad->Set(LineDefect::kBadId, columns_.ids[i], field);
    }
    id = kMissingId;
  }
  if (cursor.next != cursor.end) return bad->Set(LineDefect::kTooManyColumns, "", line);
  return LineDefect::kNone;
}

}  // namespace embank
