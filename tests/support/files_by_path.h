// Files of a file system by their paths, for tests that hold no directory.
#ifndef EMBANK_TESTS_SUPPORT_FILES_BY_PATH_H_
#define EMBANK_TESTS_SUPPORT_FILES_BY_PATH_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>

#include "base/files/file_system.h"

namespace embank::test {

// Opens an existing file.
inline std::unique_ptr<Directory> OpenedDirectory(FileSystem* files, const std::string& path) {
  StatusOr<std::unique_ptr<Directory>> directory = files->OpenDirectory(path);
  EXPECT_TRUE(directory.ok()) << directory.status();
  return directory.ok() ? *std::move(directory) : nullptr;
}

// Works in an existing directory.
inline StatusOr<std::unique_ptr<File>> OpenByPath(FileSystem* files, const std::string& path,
                                                  FileAccess access, FileCaching caching) {
  return OpenedDirectory(files, DirectoryOf(path))
      ->Open(path.substr(path.rfind('/') + 1), access, caching);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_FILES_BY_PATH_H_
