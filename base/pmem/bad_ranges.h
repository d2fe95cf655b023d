// Parts of a file that stand on damaged blocks of its device, as far as the kernel knows.
#ifndef EMBANK_BASE_PMEM_BAD_RANGES_H_
#define EMBANK_BASE_PMEM_BAD_RANGES_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status_or.h"

namespace embank {

// Bytes of a file.
struct BadRange {
  uint64_t begin;
  uint64_t end;
  bool operator==(const BadRange&) const = default;
};

// Finds the damaged parts of the file of an open descriptor.
using BadRangeFinder = std::function<StatusOr<std::vector<BadRange>>(int descriptor)>;

// The damaged parts by the kernel's list of the device (badblocks) and the file system's list of
// the file's extents. None also: the device has no such list, or the file system none of extents.
// A load of a byte in one of them would be SIGBUS.
// kUnavailable: a list is there and cannot be read.
StatusOr<std::vector<BadRange>> BadRangesOf(int descriptor);
// As BadRangesOf; `sysfs` is where the kernel shows its devices, for others "/sys".
StatusOr<std::vector<BadRange>> BadRangesBelow(const std::string& sysfs, int descriptor);

}  // namespace embank

#endif  // EMBANK_BASE_PMEM_BAD_RANGES_H_
