// Files of text that a run leaves.
#ifndef EMBANK_TOOLS_TEXT_FILE_H_
#define EMBANK_TOOLS_TEXT_FILE_H_

#include <string>
#include <string_view>

#include "base/status.h"

namespace embank {

// Replaces a file. UNAVAILABLE names it.
Status WriteText(std::string_view text, const std::string& path);

}  // namespace embank

#endif  // EMBANK_TOOLS_TEXT_FILE_H_
