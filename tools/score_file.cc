#include "tools/score_file.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/str_cat.h"

namespace embank {

ScoreFile::ScoreFile(std::string path) : path_(std::move(path)), part_(StrCat(path_, ".part")) {}

ScoreFile::~ScoreFile() {
  if (file_ == nullptr || is_standard_output()) return;
  std::fclose(file_);
  std::remove(part_.c_str());
}

Status ScoreFile::Failed(const char* what, int error) const {
  return UnavailableError(StrCat("--out: cannot ", what, " ", is_standard_output() ? path_ : part_,
                                 ": ", std::generic_category().message(error)));
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
  if (is_closed && std::rename(part_.c_str(), path_.c_str()) == 0) return OkStatus();
  const Status failed = Failed(is_closed ? "rename" : "write", errno);
  std::remove(part_.c_str());
  return failed;
}

}  // namespace embank
