// Prints the results of a device run.
#ifndef EMBANK_BENCH_DEVICE_REPORT_H_
#define EMBANK_BENCH_DEVICE_REPORT_H_

#include <string>

#include "bench/device_run.h"
#include "bench/machine.h"
#include "bench/options.h"

namespace embank {

std::string DeviceTable(const Machine& machine, const DeviceOptions& options,
                        const DeviceReport& report);
// {"machine", "commit", "parameters", "device", "hot_rows", "cases": [...]}.
std::string DeviceJson(const Machine& machine, const DeviceOptions& options,
                       const DeviceReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_DEVICE_REPORT_H_
