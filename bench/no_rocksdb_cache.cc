// In place of rocksdb_cache.cc where the package is missing, or has another cache interface.
#include "base/status.h"
#include "bench/rocksdb_cache.h"

namespace embank {

StatusOr<std::unique_ptr<CacheEngine>> MakeRocksdbLru(const CacheConfig&) {
  return UnimplementedError("RocksDB 7 is not in this build: install librocksdb-dev");
}

bool HasRocksdbLru() { return false; }

}  // namespace embank
