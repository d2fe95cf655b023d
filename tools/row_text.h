// Rows as text.
#ifndef EMBANK_TOOLS_ROW_TEXT_H_
#define EMBANK_TOOLS_ROW_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>

#include "base/types.h"
#include "tools/row_buffer.h"

namespace embank {

enum class NumberStyle { kPlain, kJson };  // JSON has "nan", "inf" and "-inf" as strings

// Appends each number with `front` before it, in as few digits as make the same number.
void AppendValues(const RowLayout& layout, const std::byte* values, std::string_view front,
                  NumberStyle style, std::string* text);
void AppendState(const RowLayout& layout, const std::byte* state, std::string_view front,
                 NumberStyle style, std::string* text);

// Appends `"key":1,"values":[...],"state":[...],"heat":2` of a row, with what the buffer has.
void AppendJsonFields(const RowLayout& layout, RowBuffer* buffer, size_t row, std::string* text);

}  // namespace embank

#endif  // EMBANK_TOOLS_ROW_TEXT_H_
