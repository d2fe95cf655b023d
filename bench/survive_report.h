// What a survive run prints.
#ifndef EMBANK_BENCH_SURVIVE_REPORT_H_
#define EMBANK_BENCH_SURVIVE_REPORT_H_

#include <string>

#include "bench/machine.h"
#include "bench/options.h"
#include "bench/survive_run.h"

namespace embank {

std::string SurviveTable(const Machine& machine, const SurviveOptions& options,
                         const SurviveReport& report);
// {"machine", "commit", "parameters", "kills": [...], and the figures}.
std::string SurviveJson(const Machine& machine, const SurviveOptions& options,
                        const SurviveReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_SURVIVE_REPORT_H_
