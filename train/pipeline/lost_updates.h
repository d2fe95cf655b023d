// Updates of rows that are lost on purpose, so that a training shows whether its model notices:
// Persia (Lian et al. 2022), section 4.2.4, drops the buffers of a worker that fails, since the
// loss of a few updates does no harm.
#ifndef EMBANK_TRAIN_PIPELINE_LOST_UPDATES_H_
#define EMBANK_TRAIN_PIPELINE_LOST_UPDATES_H_

#include <atomic>
#include <cstdint>

#include "base/hash.h"
#include "base/types.h"

namespace embank {

// Thread-safe.
class LostUpdates {
 public:
  // `share` of all updates, at least 0 and below 1.
  LostUpdates(double share, uint64_t seed) : share_(share), seed_hash_(Mix(seed + kGoldenRatio)) {}

  bool has_any() const { return share_ > 0.0; }
  // Whether a step loses the update of the row with this hash. That follows from the seed, the
  // number of the step and the row alone, and so does not depend on threads, ranks or slices.
  bool Has(uint64_t step, KeyHash hash) const {
    const uint64_t bits = Mix(hash ^ HashKey(seed_hash_, step)) >> 11;  // 53, as a double has
    return static_cast<double>(bits) * 0x1p-53 < share_;
  }

  // Counts rows whose updates a step has lost.
  void Count(uint64_t rows) { count_.fetch_add(rows, std::memory_order_relaxed); }
  uint64_t count() const { return count_.load(std::memory_order_relaxed); }

 private:
  const double share_;
  const uint64_t seed_hash_;
  std::atomic<uint64_t> count_{0};
};

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_LOST_UPDATES_H_
