#include "tools/text_file.h"

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "base/str_cat.h"

namespace embank {

Status CheckWritable(const char* option, const std::string& path) {
  if (path.empty()) return OkStatus();
  std::error_code error;
  const bool is_there = std::filesystem::exists(std::filesystem::symlink_status(path, error));
  std::FILE* const file = std::fopen(path.c_str(), "a");
  if (file == nullptr || std::fclose(file) != 0) {
    return InvalidArgumentError(
        StrCat(option, ": cannot write ", path, ": ", std::generic_category().message(errno)));
  }
  if (!is_there) std::filesystem::remove(path, error);
  return OkStatus();
}

Status WriteText(std::string_view text, const std::string& path) {
  std::FILE* const file = std::fopen(path.c_str(), "w");
  const bool is_written =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool is_closed = file != nullptr && std::fclose(file) == 0;
  if (is_written && is_closed) return OkStatus();
  return UnavailableError(StrCat("cannot write ", path));
}

}  // namespace embank
