#include "bench/embank_engine.h"

#include <utility>

#include "base/status_macros.h"
#include "bench/c_store.h"

namespace embank {
namespace {

class EmbankEngine final : public Engine {
 public:
  explicit EmbankEngine(CStore store) : store_(std::move(store)) {}

  Status Fill(KeySpan keys, BatchAnswer answer) override {
    return LookupWith(EMBANK_MISSING_CREATE, keys, answer);
  }
  Status Lookup(KeySpan keys, BatchAnswer answer) override {
    return LookupWith(EMBANK_MISSING_SKIP, keys, answer);
  }
  Status Update(KeySpan keys, const float* gradients, uint8_t* outcomes) override {
    return ToStatus(
        embank_apply_gradients(store_.table, keys.data(), keys.size(), gradients, 0, outcomes));
  }
  StatusOr<EngineMemory> Memory() const override {
    EMBANK_ASSIGN_OR_RETURN(const CStoreMemory memory, MemoryOf(store_));
    return EngineMemory{memory.index_bytes, memory.used_bytes};
  }

 private:
  Status LookupWith(int32_t missing, KeySpan keys, BatchAnswer answer) {
    return ToStatus(embank_lookup(store_.table, keys.data(), keys.size(), missing, answer.rows, 0,
                                  answer.outcomes));
  }

  const CStore store_;
};

}  // namespace

StatusOr<std::unique_ptr<Engine>> MakeEmbankEngine(const EngineConfig& config) {
  constexpr uint32_t kWorkerThreads = 1;
  TableShape shape = config.shape;
  shape.expected_rows = config.rows_announced;
  EMBANK_ASSIGN_OR_RETURN(CStore store, OpenCStore(shape, config.seed, kWorkerThreads));
  return std::make_unique<EmbankEngine>(std::move(store));
}

}  // namespace embank
