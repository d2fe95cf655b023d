#include "tools/text_file.h"

#include <cstdio>

#include "base/str_cat.h"

namespace embank {

Status WriteText(std::string_view text, const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const bool is_written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && std::fclose(file) == 0;
  if (is_written && is_closed) return OkStatus();
  return UnavailableError(StrCat("cannot write ", path));
}

}  // namespace embank
