// An engine of a kv run: it keeps rows by key and takes batches.
#ifndef EMBANK_BENCH_ENGINE_H_
#define EMBANK_BENCH_ENGINE_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "base/status_or.h"
#include "base/types.h"
#include "bench/options.h"

namespace embank {

struct EngineConfig {
  TableShape shape;
  uint64_t seed = 1;
  uint32_t threads = 1;         // that will call
  uint64_t rows_announced = 0;  // 0: the engine is not told how many rows will come
};

struct EngineMemory {
  uint64_t index_bytes = 0;  // from keys to rows
  uint64_t total_bytes = 0;  // index, rows, and what is held beyond them
};

// Answered rows and outcomes of a batch: `rows` packed, `outcomes` one per key.
struct BatchAnswer {
  std::byte* rows = nullptr;
  uint8_t* outcomes = nullptr;
};

// Every engine gives the same bits for the same sequence of batches: same initializer, same update
// rules, same sums over equal keys, same heat. All calls may come from EngineConfig.threads threads
// at once.
class Engine {
 public:
  virtual ~Engine() = default;

  // Lookup that creates absent rows and counts heat.
  virtual Status Fill(KeySpan keys, BatchAnswer answer) = 0;
  // Lookup that creates nothing and counts heat.
  virtual Status Lookup(KeySpan keys, BatchAnswer answer) = 0;
  // One optimizer step per distinct key; `gradients` has dim floats per key.
  virtual Status Update(KeySpan keys, const float* gradients, uint8_t* outcomes) = 0;

  // Returns the memory that the engine holds now.
  virtual StatusOr<EngineMemory> Memory() const = 0;
};

}  // namespace embank

#endif  // EMBANK_BENCH_ENGINE_H_
