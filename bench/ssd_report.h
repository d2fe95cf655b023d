// The results of an ssd run, for people (a table of at most 80 columns) and for programs (JSON).
#ifndef EMBANK_BENCH_SSD_REPORT_H_
#define EMBANK_BENCH_SSD_REPORT_H_

#include <string>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/ssd_run.h"

namespace embank {

std::string SsdTable(const Machine& machine, const SsdOptions& options, const SsdReport& report);
// {"machine", "commit", "parameters", "runs": [...], "notes": [...]}: every run has all figures,
// null where it has not measured one.
std::string SsdJson(const Machine& machine, const SsdOptions& options, const SsdReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_SSD_REPORT_H_
