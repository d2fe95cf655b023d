// Any text as a part of HTML or SVG.
#ifndef EMBANK_BENCH_ESCAPED_TEXT_H_
#define EMBANK_BENCH_ESCAPED_TEXT_H_

#include <string>
#include <string_view>

namespace embank {

// The text as a browser shows it, in an element or in a quoted attribute: &, <, > and quotes are
// escaped, control characters become '?'. A newline stays.
std::string EscapedText(std::string_view text);

}  // namespace embank

#endif  // EMBANK_BENCH_ESCAPED_TEXT_H_
