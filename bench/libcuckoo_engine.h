// libcuckoo as a peer.
#ifndef EMBANK_BENCH_LIBCUCKOO_ENGINE_H_
#define EMBANK_BENCH_LIBCUCKOO_ENGINE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/engine.h"

namespace embank {

// One cuckoohash_map; the shards' locks guard the rows only.
StatusOr<std::unique_ptr<Engine>> MakeLibcuckooEngine(const EngineConfig& config);

}  // namespace embank

#endif  // EMBANK_BENCH_LIBCUCKOO_ENGINE_H_
