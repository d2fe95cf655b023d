#include "bench/libcuckoo_engine.h"

#include "bench/cuckoo_map.h"
#include "bench/peer_engine.h"

namespace embank {

StatusOr<std::unique_ptr<Engine>> MakeLibcuckooEngine(const EngineConfig& config) {
  return PeerEngine<CuckooMap>::Create(config);
}

}  // namespace embank
