// The files of a store on a simulated disk, in the directory "log".
#ifndef EMBANK_TESTS_SUPPORT_STORE_FILES_H_
#define EMBANK_TESTS_SUPPORT_STORE_FILES_H_

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "tests/support/simulated_disk.h"

namespace embank::test {

inline std::string ManifestPath(int checkpoint) {
  return "log/MANIFEST-0000000" + std::to_string(checkpoint);
}

inline std::vector<std::string> SegmentPaths(const SimulatedDisk& disk) {
  std::vector<std::string> paths = disk.Files();
  std::erase_if(paths,
                [](const std::string& path) { return path.find("segment-") == std::string::npos; });
  return paths;
}

inline std::map<std::string, std::vector<std::byte>> Everything(const SimulatedDisk& disk) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const std::string& path : disk.Files()) files[path] = disk.Contents(path);
  return files;
}

// Changes some bits of a byte.
inline void FlipBits(SimulatedDisk* disk, const std::string& path, uint64_t offset, int bits) {
  const std::byte is[] = {disk->Contents(path)[offset] ^ static_cast<std::byte>(bits)};
  disk->Corrupt(path, offset, is);
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_STORE_FILES_H_
