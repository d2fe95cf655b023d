// Embank with a budget, in memory only: a table that forgets, through the C API.
#ifndef EMBANK_BENCH_EMBANK_CACHE_H_
#define EMBANK_BENCH_EMBANK_CACHE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/cache_engine.h"

namespace embank {

// `eviction` is an EMBANK_EVICT_*. The statuses of opening a store and creating a table.
StatusOr<std::unique_ptr<CacheEngine>> MakeEmbankCache(const CacheConfig& config, int32_t eviction);

}  // namespace embank

#endif  // EMBANK_BENCH_EMBANK_CACHE_H_
