// How fast a device is: copies, gathers and steps of rows of dim 128, and the link to the host.
#ifndef EMBANK_TOOLS_GPU_RATES_H_
#define EMBANK_TOOLS_GPU_RATES_H_

#include <cstdint>

#include "gpu/device.h"

namespace embank {

// Bytes that are read and written, in 1e9 bytes per second; medians.
struct GpuRates {
  uint64_t rows = 0;        // of each list
  double copy = 0;          // within device memory
  double gather = 0;        // of float32 rows of dim 128 at random places
  double adagrad_step = 0;  // of such rows with their state
  double to_device = 0;     // over the link, from pinned memory
  double to_host = 0;
  // Lookups of 8,192 rows: time when all come over the link, and when 95 of 100 are on the device.
  double all_missed_us = 0;
  double most_hit_us = 0;
};

// Measures with lists of so many rows; about 4 KiB of device memory for each.
GpuRates MeasureRates(Device* device, uint32_t rows);

}  // namespace embank

#endif  // EMBANK_TOOLS_GPU_RATES_H_
