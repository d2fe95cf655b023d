// A temporary directory of a run, in one that the user names.
#ifndef EMBANK_BENCH_RUN_DIRECTORY_H_
#define EMBANK_BENCH_RUN_DIRECTORY_H_

#include <string>

#include "base/status.h"

namespace embank {

// Removed at the end, with everything in it.
class RunDirectory {
 public:
  // `option`: the one that names the parent.
  RunDirectory(const char* option, const std::string& parent);
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  // INVALID_ARGUMENT names the option: the directory could not be made.
  const Status& status() const { return status_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  Status status_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_RUN_DIRECTORY_H_
