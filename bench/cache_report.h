// A kv run with a budget as a table and as JSON.
#ifndef EMBANK_BENCH_CACHE_REPORT_H_
#define EMBANK_BENCH_CACHE_REPORT_H_

#include <string>

#include "bench/cache_run.h"
#include "bench/machine.h"
#include "bench/options.h"

namespace embank {

std::string CacheTable(const Machine& machine, const KvOptions& options, const CacheReport& report);
std::string CacheJson(const Machine& machine, const KvOptions& options, const CacheReport& report);

}  // namespace embank

#endif  // EMBANK_BENCH_CACHE_REPORT_H_
