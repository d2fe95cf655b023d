#include "bench/embank_cache.h"

#include <utility>

#include "base/status_macros.h"
#include "bench/c_store.h"

namespace embank {
namespace {

class EmbankCache final : public CacheEngine {
 public:
  explicit EmbankCache(CStore store) : store_(std::move(store)) {}

  Status Lookup(KeySpan keys, BatchAnswer answer) override {
    return ToStatus(embank_lookup(store_.table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                                  answer.rows, 0, answer.outcomes));
  }
  StatusOr<CacheMemory> Memory() const override {
    EMBANK_ASSIGN_OR_RETURN(const CStoreMemory memory, MemoryOf(store_));
    return CacheMemory{memory.used_bytes, memory.index_bytes, memory.rows};
  }

 private:
  const CStore store_;
};

}  // namespace

StatusOr<std::unique_ptr<CacheEngine>> MakeEmbankCache(const CacheConfig& config,
                                                       int32_t eviction) {
  embank_store_options options;
  embank_store_options_init(&options, sizeof(options));
  options.dram_bytes = config.dram_bytes;
  options.seed = config.seed;
  options.worker_threads = 1;
  EMBANK_ASSIGN_OR_RETURN(CStore store,
                          OpenCStore(options, config.shape, eviction, EMBANK_FULL_FORGET));
  return std::make_unique<EmbankCache>(std::move(store));
}

}  // namespace embank
