#include "tools/row_text.h"

#include <cmath>
#include <cstring>

#include "base/exact_text.h"
#include "base/half.h"
#include "base/str_cat.h"

namespace embank {
namespace {

template <typename Bits>
Bits Load(const std::byte* from, size_t i) {
  Bits bits;
  std::memcpy(&bits, from + i * sizeof(bits), sizeof(bits));
  return bits;
}

float ValueAt(ValueType type, const std::byte* values, uint32_t i) {
  if (type == ValueType::kF32) return Load<float>(values, i);
  const auto bits = Load<uint16_t>(values, i);
  return type == ValueType::kF16 ? F16ToFloat(bits) : Bf16ToFloat(bits);
}

void AppendNumber(float number, std::string_view front, NumberStyle style, std::string* text) {
  text->append(front);
  const std::string digits = std::isnan(number) ? "nan" : ExactText(number);
  const bool is_quoted = style == NumberStyle::kJson && !std::isfinite(number);
  StrAppend(text, is_quoted ? "\"" : "", digits, is_quoted ? "\"" : "");
}

}  // namespace

void AppendValues(const RowLayout& layout, const std::byte* values, std::string_view front,
                  NumberStyle style, std::string* text) {
  for (uint32_t i = 0; i < layout.dim; ++i) {
    AppendNumber(ValueAt(layout.value_type, values, i), front, style, text);
  }
}

void AppendState(const RowLayout& layout, const std::byte* state, std::string_view front,
                 NumberStyle style, std::string* text) {
  for (uint32_t i = 0; i < layout.state_floats; ++i) {
    AppendNumber(Load<float>(state, i), front, style, text);
  }
}

void AppendJsonFields(const RowLayout& layout, RowBuffer* buffer, size_t row, std::string* text) {
  // Each number has a comma before it: the first one of a list becomes the bracket.
  const auto bracket = [&](size_t at) {
    (*text)[at] = '[';
    *text += ']';
  };
  StrAppend(text, "\"key\":", buffer->keys()[row], ",\"values\":");
  const size_t values_at = text->size();
  AppendValues(layout, buffer->values().Row(row), ",", NumberStyle::kJson, text);
  bracket(values_at);
  if (buffer->RowBytes(RowColumn::kState) > 0) {
    *text += ",\"state\":";
    const size_t state_at = text->size();
    AppendState(layout, buffer->states().Row(row), ",", NumberStyle::kJson, text);
    bracket(state_at);
  }
  if (buffer->RowBytes(RowColumn::kHeat) > 0) {
    StrAppend(text, ",\"heat\":", buffer->heats()[row]);
  }
}

}  // namespace embank
