// Text as JSON has it.
#ifndef EMBANK_STORE_INSPECT_JSON_TEXT_H_
#define EMBANK_STORE_INSPECT_JSON_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "base/str_cat.h"

namespace embank {

// A JSON string, quotes included, of bytes that may be anything: what is no UTF-8 becomes U+FFFD.
std::string JsonString(std::string_view bytes);

// A JSON array of strings.
std::string JsonStrings(std::span<const std::string> strings);

// A JSON array of what `format` makes of each.
template <typename Things, typename Format>
std::string JsonArray(const Things& things, Format format) {
  return StrCat("[",
                StrJoin(things, ",",
                        [&](std::string* out, const auto& thing) { out->append(format(thing)); }),
                "]");
}

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_JSON_TEXT_H_
