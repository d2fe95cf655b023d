// An engine of a kv run with a budget: it keeps the rows that its memory holds, and
// forgets others for new ones.
#ifndef EMBANK_BENCH_CACHE_ENGINE_H_
#define EMBANK_BENCH_CACHE_ENGINE_H_

#include <cstdint>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bench/engine.h"

namespace embank {

// The peers' names beside "embank-lru", "embank-clock" and "embank-lfu".
inline constexpr char kLruPeerName[] = "absl-lru";
inline constexpr char kRocksdbLruName[] = "rocksdb-lru";  // where it is in the build

struct CacheConfig {
  TableShape shape;
  uint64_t seed = 1;
  uint32_t threads = 1;     // that will call
  uint64_t dram_bytes = 0;  // of index, rows and all that orders them
};

// The memory of an engine, and the rows in it.
struct CacheMemory {
  uint64_t used_bytes = 0;   // at most CacheConfig.dram_bytes, and what whole pages round up
  uint64_t index_bytes = 0;  // 0: it is not known
  uint64_t rows = 0;
};

// All calls may come from CacheConfig.threads threads at once.
class CacheEngine {
 public:
  virtual ~CacheEngine() = default;

  // Lookup that creates absent rows, for which others are forgotten.
  virtual Status Lookup(KeySpan keys, BatchAnswer answer) = 0;

  virtual StatusOr<CacheMemory> Memory() const = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_CACHE_ENGINE_H_
