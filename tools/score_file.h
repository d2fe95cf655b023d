// A text file that is whole or not there: it is written beside its place, and renamed at the end.
// What is no regular file, such as a device or a pipe, is written as it is.
#ifndef EMBANK_TOOLS_SCORE_FILE_H_
#define EMBANK_TOOLS_SCORE_FILE_H_

#include <cstdio>
#include <string>
#include <string_view>

#include "base/status.h"

namespace embank {

// One thread. Without Finish it removes what it has written.
class ScoreFile {
 public:
  // A file at `path`, or the standard output for "-". Texts stay in what is no regular file.
  explicit ScoreFile(const std::string& path);
  ~ScoreFile();
  ScoreFile(const ScoreFile&) = delete;
  ScoreFile& operator=(const ScoreFile&) = delete;

  // Opens the file beside the place. Each call: UNAVAILABLE names the file and the error.
  Status Open();
  Status Write(std::string_view text);
  // Closes it and puts it in its place, where it replaces another one.
  Status Finish();

 private:
  bool is_standard_output() const { return path_ == "-"; }
  Status Failed(const char* what, int error) const;

  const std::string path_;
  const bool is_replaced_;  // at the end
  const std::string part_;  // what is written
  std::FILE* file_ = nullptr;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_SCORE_FILE_H_
