// RocksDB's sharded LRU as a peer with a budget. Built where a RocksDB with the cache interface of
// version 7 is installed.
#ifndef EMBANK_BENCH_ROCKSDB_CACHE_H_
#define EMBANK_BENCH_ROCKSDB_CACHE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/cache_engine.h"

namespace embank {

// Each key is looked up by itself, as its interface has it. The charge of a row is its bytes, with
// RocksDB's own for the entry.
// UNIMPLEMENTED: it is not in this build.
StatusOr<std::unique_ptr<CacheEngine>> MakeRocksdbLru(const CacheConfig& config);

// Whether it is in this build.
bool HasRocksdbLru();

}  // namespace embank

#endif  // EMBANK_BENCH_ROCKSDB_CACHE_H_
