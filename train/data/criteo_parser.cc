#include "train/data/criteo_parser.h"

#include <array>

#include "base/str_cat.h"
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

// Goes on behind a tab.
bool TakeTab(Cursor* cursor) {
  if (!cursor->IsOn('\t')) return false;
  ++cursor->next;
  return true;
}

}  // namespace

CriteoParser::CriteoParser(uint32_t integers, uint32_t ids) {
  for (uint32_t i = 1; i <= integers; ++i) columns_.dense.push_back(StrCat("I", i));
  for (uint32_t i = 1; i <= ids; ++i) columns_.ids.push_back(StrCat("C", i));
}

LineDefect CriteoParser::Parse(std::string_view line, ClickRow* row) const {
  row->dense.resize(columns_.dense.size());
  row->ids.resize(columns_.ids.size());
  Cursor cursor{line.data(), line.data() + line.size()};
  if (!cursor.IsOn('0') && !cursor.IsOn('1')) return LineDefect::kBadLabel;
  row->label = cursor.IsOn('1') ? 1.0f : 0.0f;
  ++cursor.next;
  if (!cursor.EndsField()) return LineDefect::kBadLabel;
  for (float& dense : row->dense) {
    if (!TakeTab(&cursor)) return LineDefect::kTooFewColumns;
    int64_t value = 0;
    if (!cursor.EndsField() && !TakeInteger(&cursor, &value)) return LineDefect::kBadNumber;
    dense = LogOfCount(value);
  }
  for (uint64_t& id : row->ids) {
    if (!TakeTab(&cursor)) return LineDefect::kTooFewColumns;
    id = kMissingId;
    if (!cursor.EndsField() && !TakeHex(&cursor, &id)) return LineDefect::kBadId;
  }
  return cursor.next == cursor.end ? LineDefect::kNone : LineDefect::kTooManyColumns;
}

}  // namespace embank
