// A peer with a budget: an exact LRU in shards, over absl::flat_hash_map and Embank's rows.
#ifndef EMBANK_BENCH_LRU_CACHE_H_
#define EMBANK_BENCH_LRU_CACHE_H_

#include <memory>

#include "base/status_or.h"
#include "bench/cache_engine.h"

namespace embank {

// It has as many rows as fit into config.dram_bytes with its maps and lists, and all of its memory
// from the beginning. With one thread it has one shard, else 32 for each thread (PeerShardBits).
// RESOURCE_EXHAUSTED: the budget holds less than a row for each shard.
StatusOr<std::unique_ptr<CacheEngine>> MakeLruCache(const CacheConfig& config);

}  // namespace embank

#endif  // EMBANK_BENCH_LRU_CACHE_H_
