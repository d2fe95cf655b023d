// The files below a directory, to see that a program has left them as they were.
#ifndef EMBANK_TESTS_SUPPORT_FILES_BELOW_H_
#define EMBANK_TESTS_SUPPORT_FILES_BELOW_H_

#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace embank::test {

// The bytes of all files below a directory, by their paths.
inline std::map<std::string, std::string> BytesBelow(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (!entry.is_regular_file()) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    files[entry.path()] = {std::istreambuf_iterator<char>(file), {}};
  }
  return files;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_FILES_BELOW_H_
