// Embank on an SSD as an engine, through the C door only.
#ifndef EMBANK_BENCH_EMBANK_SSD_ENGINE_H_
#define EMBANK_BENCH_EMBANK_SSD_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "bench/ssd_engine.h"

namespace embank {

// Calls work on the calling threads only; an opening uses as many threads as will call.
absl::StatusOr<std::unique_ptr<SsdEngine>> MakeEmbankSsdEngine(const SsdEngineConfig& config);

}  // namespace embank

#endif  // EMBANK_BENCH_EMBANK_SSD_ENGINE_H_
