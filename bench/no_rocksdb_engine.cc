// In place of rocksdb_engine.cc where the package is missing.
#include "base/status.h"
#include "bench/rocksdb_engine.h"

namespace embank {

StatusOr<std::unique_ptr<SsdEngine>> MakeRocksdbEngine(const SsdEngineConfig&, RocksdbCache) {
  return UnimplementedError(
      "RocksDB is not in this build: install librocksdb-dev and configure again");
}

}  // namespace embank
