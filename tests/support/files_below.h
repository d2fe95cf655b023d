// The files below a directory, to see that a program has left them as they were.
#ifndef EMBANK_TESTS_SUPPORT_FILES_BELOW_H_
#define EMBANK_TESTS_SUPPORT_FILES_BELOW_H_

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

namespace embank::test {

// The bytes of a file; none: it is gone, as a segment may be while a store is open. In one read:
// tests read many megabytes, and are not optimised. Throws for a file that cannot be read.
inline std::string BytesOf(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  if (!file.is_open() && !std::filesystem::exists(path)) return "";
  const std::streamoff size = file.tellg();
  std::string bytes(size > 0 ? static_cast<size_t>(size) : 0, '\0');
  file.seekg(0);
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.is_open() || size < 0 || file.bad()) {
    throw std::filesystem::filesystem_error("no bytes", path,
                                            std::make_error_code(std::errc::io_error));
  }
  bytes.resize(static_cast<size_t>(file.gcount()));
  return bytes;
}

// The bytes of all files below a directory, by their paths.
inline std::map<std::string, std::string> BytesBelow(const std::string& directory) {
  std::map<std::string, std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) files[entry.path()] = BytesOf(entry.path());
  }
  return files;
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_FILES_BELOW_H_
