// Whether a device and the twin make the same bits of the same work.
#ifndef EMBANK_TOOLS_GPU_IDENTITY_H_
#define EMBANK_TOOLS_GPU_IDENTITY_H_

#include <cstdint>
#include <string>

#include "gpu/device.h"

namespace embank {

struct IdentityCounts {
  uint64_t steps = 0;  // cases of each kind of work
  uint64_t copies = 0;
  uint64_t sums = 0;
  uint64_t searches = 0;
  uint64_t bytes = 0;       // that were compared
  uint64_t mismatches = 0;  // cases that differ
  std::string first_mismatch;
};

// Runs random cases of all rules, types and dims on both: 1 to 4,096 elements, in `is_short` runs
// few of them.
IdentityCounts CompareDevices(Device* device, Device* twin, bool is_short);

}  // namespace embank

#endif  // EMBANK_TOOLS_GPU_IDENTITY_H_
