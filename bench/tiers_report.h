// Prints the results of a tiers run.
#ifndef EMBANK_BENCH_TIERS_REPORT_H_
#define EMBANK_BENCH_TIERS_REPORT_H_

#include <string>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/tiers_run.h"

namespace embank {

std::string TiersTable(const Machine& machine, const TiersOptions& options,
                       const TiersReport& report);
// {"machine", "commit", "parameters", "tiers": [...], and the figures}.
std::string TiersJson(const Machine& machine, const TiersOptions& options,
                      const TiersReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_TIERS_REPORT_H_
