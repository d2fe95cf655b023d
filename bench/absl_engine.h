// absl::flat_hash_map as a peer.
#ifndef EMBANK_BENCH_ABSL_ENGINE_H_
#define EMBANK_BENCH_ABSL_ENGINE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/engine.h"

namespace embank {

// One map per shard, under the shard's lock, with prefetch().
StatusOr<std::unique_ptr<Engine>> MakeAbslEngine(const EngineConfig& config);

}  // namespace embank

#endif  // EMBANK_BENCH_ABSL_ENGINE_H_
