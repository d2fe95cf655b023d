// The source of a replay's keys: a trace, or a generator.
#ifndef EMBANK_BENCH_KEY_SOURCE_H_
#define EMBANK_BENCH_KEY_SOURCE_H_

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status_or.h"
#include "base/types.h"
#include "bench/trace.h"

namespace embank {

// One thread.
class KeySource {
 public:
  virtual ~KeySource() = default;

  // Returns the next keys; fewer than wanted only at the end, 0 behind it. Statuses of TraceReader.
  virtual StatusOr<size_t> Read(std::span<Key> keys) = 0;

  // The part of it that was read, 0..1.
  virtual double FractionRead() const = 0;

  // A short description.
  virtual std::string Description() const = 0;
};

// A trace file. Statuses of TraceReader::Open.
StatusOr<std::unique_ptr<KeySource>> OpenTraceSource(const std::string& path,
                                                     std::optional<TraceFormat> format);

// Reads the first `keys_max` keys, so many at once. Statuses of KeySource::Read.
StatusOr<std::vector<Key>> ReadKeys(KeySource* source, uint64_t keys_at_once, uint64_t keys_max);

// 2^21 positions, Zipf 1.05 over a million ids that are hashed to 64 bits.
StatusOr<std::unique_ptr<KeySource>> MakeGeneratedSource(uint64_t seed);

}  // namespace embank

#endif  // EMBANK_BENCH_KEY_SOURCE_H_
