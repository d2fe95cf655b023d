// A directory of a test's own, gone with everything in it when the test ends.
#ifndef EMBANK_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_
#define EMBANK_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>

namespace embank::test {

class ScratchDirectory {
 public:
  ScratchDirectory() : path_(testing::TempDir() + "embank_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "no directory " << path_;
  }
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SCRATCH_DIRECTORY_H_
