// Times the calls for rows in device memory, with several shares of their rows in the HBM tier.
#ifndef EMBANK_BENCH_DEVICE_RUN_H_
#define EMBANK_BENCH_DEVICE_RUN_H_

#include <cstdint>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "bench/options.h"
#include "bench/progress.h"

namespace embank {

// Microseconds of a call, medians of the rounds. The next call follows at once. With --link-gbps
// they are those of the link, on which each call waits for the last one and the host takes no time;
// only lookups are measured.
struct DeviceFigure {
  double hit_share = 0.0;          // of the keys, that have rows in HBM
  uint64_t batch = 0;              // keys of a call
  double lookup_us = 0.0;          // embank_lookup_device
  double gradients_us = 0.0;       // embank_apply_gradients_device
  double host_lookup_us = 0.0;     // embank_lookup, and embank_device_copy of its rows
  double host_gradients_us = 0.0;  // embank_device_copy to the host, and embank_apply_gradients
  double model_us = 0.0;           // of a lookup (bench/link_model.h), with --link-gbps
};

struct DeviceReport {
  std::string device;  // "twin" where it is host memory
  uint64_t hot_rows = 0;
  std::vector<DeviceFigure> figures;
};

// `options` are valid. Makes all rows of a table in memory, of which a share is in HBM, and times
// calls with distinct keys, in turns. The statuses of the store. FAILED_PRECONDITION: the rows did
// not get to HBM.
StatusOr<DeviceReport> RunDevice(const DeviceOptions& options, Progress* progress);

}  // namespace embank

#endif  // EMBANK_BENCH_DEVICE_RUN_H_
