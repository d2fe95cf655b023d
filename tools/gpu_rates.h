// How fast a device is: copies, gathers and steps of rows of dim 128, and the link to the host.
#ifndef EMBANK_TOOLS_GPU_RATES_H_
#define EMBANK_TOOLS_GPU_RATES_H_

#include <cstdint>
#include <vector>

#include "gpu/device.h"

namespace embank {

// The times of a lookup of rows of dim 128 to device memory.
struct LookupRates {
  uint64_t rows = 0;
  double copied_us = 0;      // their bytes in one copy from pinned memory, for comparison
  double all_missed_us = 0;  // all rows come from pinned memory
  double most_hit_us = 0;    // 95 of 100 are on the device
  double all_hit_us = 0;
};

// Bytes that are read and written, in 1e9 bytes per second; medians.
struct GpuRates {
  uint64_t rows = 0;        // of each list
  double copy = 0;          // within device memory
  double gather = 0;        // of float32 rows of dim 128 at random places
  double adagrad_step = 0;  // of such rows with their state
  double to_device = 0;     // over the link, from pinned memory
  double to_host = 0;
  std::vector<LookupRates> lookups;
};

// Measures with lists of so many rows; about 4 KiB of device memory for each. Lookups are of 8,192
// rows, and of more up to that number.
GpuRates MeasureRates(Device* device, uint32_t rows);

}  // namespace embank

#endif  // EMBANK_TOOLS_GPU_RATES_H_
