// Prints the results of a survive run.
#ifndef EMBANK_BENCH_SURVIVE_REPORT_H_
#define EMBANK_BENCH_SURVIVE_REPORT_H_

#include <string>
#include <vector>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/survive_run.h"

namespace embank {

// "batches", "checkpoint", "recovery".
const char* KilledInName(KilledIn where);

// 0 without any.
double LongestSeconds(const std::vector<double>& seconds);
double MedianSeconds(const std::vector<double>& seconds);

std::string SurviveTable(const Machine& machine, const SurviveOptions& options,
                         const SurviveReport& report);
// {"machine", "commit", "parameters", "kills": [...], and the figures}.
std::string SurviveJson(const Machine& machine, const SurviveOptions& options,
                        const SurviveReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_SURVIVE_REPORT_H_
