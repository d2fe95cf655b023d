#include "train/data/criteo_parser.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <optional>

#include "base/str_cat.h"
#include "train/data/field_value.h"
#include "train/data/log_value.h"

namespace embank {
namespace {

constexpr uint32_t kHexDigits = 8;
// A number of so many digits has no overflow in 64 bits.
constexpr uint32_t kIntegerDigitsMax = 18;

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
  const char* next = is_negative ? cursor->next + 1 : cursor->next;
  const char* const first = next;
  int64_t number = 0;
  for (; next != cursor->end && *next != '\t'; ++next) {
    const auto digit = static_cast<uint8_t>(*next - '0');
    if (digit > 9 || next - first == kIntegerDigitsMax) return false;
    number = number * 10 + digit;
  }
  cursor->next = next;
  *value = is_negative ? -number : number;
  return next != first;
}

// Eight bytes, each of this value.
constexpr uint64_t EachByte(uint8_t value) { return value * 0x0101'0101'0101'0101u; }

// The high bit of each byte that lies in [first, last]. All bytes are below 128, so a sum of
// 128 - first carries into that bit from `first` on, and never into the next byte.
constexpr uint64_t BytesWithin(uint64_t bytes, uint8_t first, uint8_t last) {
  return (bytes + EachByte(128 - first)) & ~(bytes + EachByte(127 - last)) & EachByte(128);
}

// Reads the eight digits at once: 26 ids of a line are most of its bytes.
bool TakeHex(Cursor* cursor, uint64_t* id) {
  const char* const next = cursor->next;
  if (cursor->end - next < kHexDigits) return false;
  static_assert(std::endian::native == std::endian::little);
  uint64_t text = 0;
  std::memcpy(&text, next, sizeof(text));
  const uint64_t ascii = text & ~EachByte(128);
  const uint64_t letters = BytesWithin(ascii | EachByte(0x20), 'a', 'f');
  const uint64_t digits = BytesWithin(ascii, '0', '9');
  if ((letters | digits) != EachByte(128) || ascii != text) return false;
  // 'a' and 'A' end in 1, and stand for 10.
  uint64_t value = (ascii & EachByte(0xF)) + (letters >> 7) * 9;
  // The first digit is the lowest byte and the highest of the value: neighbours change places.
  value = (value << 4 | value >> 8) & 0x00FF'00FF'00FF'00FF;
  value = (value << 8 | value >> 16) & 0x0000'FFFF'0000'FFFF;
  *id = static_cast<uint32_t>(value << 16 | value >> 32);
  cursor->next = next + kHexDigits;
  return cursor->EndsField();
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
