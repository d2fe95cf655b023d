// A file that a test writes, gone with the test.
#ifndef EMBANK_TESTS_BENCH_TEMPORARY_FILE_H_
#define EMBANK_TESTS_BENCH_TEMPORARY_FILE_H_

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "base/str_cat.h"

namespace embank {

class TemporaryFile {
 public:
  // `ending` is the end of its name, which tells a trace's format.
  explicit TemporaryFile(const std::string& ending, const std::string& contents = "")
      : path_(StrCat(testing::TempDir(), "embank-", getpid(), "-", ++count_, ending)) {
    std::ofstream(path_, std::ios::binary) << contents;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& path() const { return path_; }
  std::string Contents() const {
    std::ostringstream contents;
    contents << std::ifstream(path_, std::ios::binary).rdbuf();
    return contents.str();
  }

 private:
  static inline int count_ = 0;
  const std::string path_;
};

}  // namespace embank

#endif  // EMBANK_TESTS_BENCH_TEMPORARY_FILE_H_
