#include "tools/score_file.h"

#include <cerrno>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/str_cat.h"

namespace embank {

namespace {

// A link stays, and its file is replaced.
std::string PlaceOf(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_symlink(path, error)) return path;
  const std::filesystem::path place = std::filesystem::weakly_canonical(path, error);
  return error ? path : place.string();
}

// A rename would put a file in the place of a device.
bool IsReplaced(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  return path != "-" &&
         (!std::filesystem::exists(status) || std::filesystem::is_regular_file(status));
}

}  // namespace

ScoreFile::ScoreFile(const std::string& path)
    : path_(PlaceOf(path)),
      is_replaced_(IsReplaced(path_)),
      part_(is_replaced_ ? StrCat(path_, ".part") : path_) {}

ScoreFile::~ScoreFile() {
  if (file_ == nullptr || is_standard_output()) return;
  std::fclose(file_);
  if (is_replaced_) std::remove(part_.c_str());
}

Status ScoreFile::Failed(const char* what, int error) const {
  return UnavailableError(
      StrCat("--out: cannot ", what, " ", part_, ": ", std::generic_category().message(error)));
}

Status ScoreFile::Open() {
  file_ = is_standard_output() ? stdout : std::fopen(part_.c_str(), "w");
  return file_ != nullptr ? OkStatus() : Failed("write", errno);
}

Status ScoreFile::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return OkStatus();
  return Failed("write", errno);
}

Status ScoreFile::Finish() {
  if (is_standard_output()) return std::fflush(stdout) == 0 ? OkStatus() : Failed("write", errno);
  std::FILE* const file = std::exchange(file_, nullptr);
  const bool is_closed = std::fclose(file) == 0;
  if (!is_replaced_) return is_closed ? OkStatus() : Failed("write", errno);
  if (is_closed && std::rename(part_.c_str(), path_.c_str()) == 0) return OkStatus();
  const Status failed = Failed(is_closed ? "rename" : "write", errno);
  std::remove(part_.c_str());
  return failed;
}

}  // namespace embank
