// Embank on an SSD as an engine, through the C API only.
#ifndef EMBANK_BENCH_EMBANK_SSD_ENGINE_H_
#define EMBANK_BENCH_EMBANK_SSD_ENGINE_H_

#include <memory>
#include <optional>
#include <string>

#include "base/status_or.h"
#include "bench/ssd_engine.h"

namespace embank {

// The kind of Embank's store. Rows leave memory by CLOCK, which is the default, or by LFU; or none
// leaves, in a store without a path, which shows the costs of a store whose rows all fit.
enum class EmbankSsdKind { kClock, kLfu, kMemory };

// The kind of an engine's name; nothing: it is another engine.
std::optional<EmbankSsdKind> EmbankSsdKindOf(const std::string& engine);

// With a PMem tier if the configuration names a directory for it; UNAVAILABLE or UNIMPLEMENTED then
// if there can be none. Calls work on the calling threads only; an opening uses as many threads as
// will call. kMemory is never full, and makes no checkpoints: its Checkpoint does nothing, its
// Reopen is UNIMPLEMENTED.
StatusOr<std::unique_ptr<SsdEngine>> MakeEmbankSsdEngine(const SsdEngineConfig& config,
                                                         EmbankSsdKind kind);

}  // namespace embank

#endif  // EMBANK_BENCH_EMBANK_SSD_ENGINE_H_
