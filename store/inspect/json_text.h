// Text in JSON syntax.
#ifndef EMBANK_STORE_INSPECT_JSON_TEXT_H_
#define EMBANK_STORE_INSPECT_JSON_TEXT_H_

#include <span>
#include <string>
#include <string_view>

#include "base/str_cat.h"

namespace embank {

// Returns a JSON string, quotes included, of any bytes: bytes that are no UTF-8 become U+FFFD.
std::string JsonString(std::string_view bytes);

// A JSON array of strings.
std::string JsonStrings(std::span<const std::string> strings);

// Returns a JSON array of format(thing) for each thing.
template <typename Things, typename Format>
std::string JsonArray(const Things& things, Format format) {
  return StrCat("[",
                StrJoin(things, ",",
                        [&](std::string* out, const auto& thing) { out->append(format(thing)); }),
                "]");
}

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_JSON_TEXT_H_
