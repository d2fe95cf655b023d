// The distinct keys of every batch of a stream, computed beforehand.
#ifndef EMBANK_BENCH_DISTINCT_KEYS_H_
#define EMBANK_BENCH_DISTINCT_KEYS_H_

#include <cstdint>
#include <vector>

#include "base/types.h"

namespace embank {

// Constant after construction.
class DistinctKeys {
 public:
  // Splits `positions` into batches of `batch` (the last may be shorter); they must outlive this.
  DistinctKeys(KeySpan positions, uint64_t batch);

  // The distinct keys of a batch of the positions, in order of first appearance.
  KeySpan Of(KeySpan batch) const;

 private:
  const KeySpan positions_;
  const uint64_t batch_;
  std::vector<Key> keys_;
  std::vector<uint64_t> begin_;  // by batch, and the end
};

}  // namespace embank

#endif  // EMBANK_BENCH_DISTINCT_KEYS_H_
