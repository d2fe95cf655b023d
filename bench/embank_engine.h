// Embank as an engine, through the C API only.
#ifndef EMBANK_BENCH_EMBANK_ENGINE_H_
#define EMBANK_BENCH_EMBANK_ENGINE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/engine.h"

namespace embank {

// A store in memory without a budget, whose calls work on the calling threads only, as the peers'
// do.
StatusOr<std::unique_ptr<Engine>> MakeEmbankEngine(const EngineConfig& config);

}  // namespace embank

#endif  // EMBANK_BENCH_EMBANK_ENGINE_H_
