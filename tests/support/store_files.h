// The files of a store on a simulated disk, in the directory "log", and of its PMem.
#ifndef EMBANK_TESTS_SUPPORT_STORE_FILES_H_
#define EMBANK_TESTS_SUPPORT_STORE_FILES_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/checkpoint/manifest.h"
#include "tests/support/simulated_disk.h"
#include "tiers/segment/segment_format.h"

namespace embank::test {

inline std::string ManifestPath(int checkpoint) {
  return "log/MANIFEST-0000000" + std::to_string(checkpoint);
}

inline std::string SegmentPath(uint64_t id) {
  return (id < kPmemSegmentIdMin ? std::string("log") : kSimulatedPmemPath) + "/" + SegmentName(id);
}

// The path of a file that a report names.
inline std::string PathOfNamed(const std::string& file) {
  const bool is_in_pmem = file >= SegmentName(kPmemSegmentIdMin);
  return (is_in_pmem ? std::string(kSimulatedPmemPath) : "log") + "/" + file;
}

inline bool IsInPmem(const std::string& path) {
  return path.starts_with(std::string(kSimulatedPmemPath) + "/");
}

// The files of the store and of its PMem.
inline std::map<std::string, std::vector<std::byte>> FilesOfStore(const SimulatedDisk& disk) {
  std::map<std::string, std::vector<std::byte>> files;
  for (const std::string& path : disk.Files()) {
    if (IsInPmem(path) || path.starts_with("log/")) files[path] = disk.Contents(path);
  }
  return files;
}

inline std::vector<std::string> SegmentPaths(const SimulatedDisk& disk) {
  std::vector<std::string> paths = disk.Files();
  std::erase_if(paths,
                [](const std::string& path) { return path.find("segment-") == std::string::npos; });
  return paths;
}

// Those that a checkpoint has rows in, as its manifest names them: those of PMem first.
inline std::vector<std::string> SegmentPathsOf(const SimulatedDisk& disk, int checkpoint) {
  std::vector<std::string> paths;
  const StatusOr<Manifest> manifest = DecodeManifest(disk.Contents(ManifestPath(checkpoint)));
  EXPECT_TRUE(manifest.ok()) << manifest.status();
  if (!manifest.ok()) return paths;
  for (const SegmentRows& rows : manifest->segments) {
    paths.push_back(SegmentPath(rows.header.segment_id));
  }
  std::stable_partition(paths.begin(), paths.end(), IsInPmem);
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
