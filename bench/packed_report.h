// Prints the results of a packed run.
#ifndef EMBANK_BENCH_PACKED_REPORT_H_
#define EMBANK_BENCH_PACKED_REPORT_H_

#include <string>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/packed_run.h"

namespace embank {

std::string PackedTable(const Machine& machine, const PackedOptions& options,
                        const PackedReport& report);
// {"machine", "commit", "parameters", "cases": [...]}.
std::string PackedJson(const Machine& machine, const PackedOptions& options,
                       const PackedReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_PACKED_REPORT_H_
