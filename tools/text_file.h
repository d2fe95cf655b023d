// Files of text that a run leaves.
#ifndef EMBANK_TOOLS_TEXT_FILE_H_
#define EMBANK_TOOLS_TEXT_FILE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace embank {

// Checks that the file of an option can be written, so that a run of an hour does not fail at its
// last line. A file that is there stays as it is, and none is left that was not there. An empty
// path is none. INVALID_ARGUMENT names both.
Status CheckWritable(const char* option, const std::string& path);

// Replaces a file. UNAVAILABLE names it.
Status WriteText(std::string_view text, const std::string& path);

}  // namespace embank

#endif  // EMBANK_TOOLS_TEXT_FILE_H_
