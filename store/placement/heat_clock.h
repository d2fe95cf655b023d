// The clock by which the heat of a store's rows ages. The store's lookups advance it, epoch by
// epoch, and renew the epochs in row headers so that they can be compared.
#ifndef EMBANK_STORE_PLACEMENT_HEAT_CLOCK_H_
#define EMBANK_STORE_PLACEMENT_HEAT_CLOCK_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "store/index/key_index.h"
#include "store/table/store_rows.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/row_header.h"

namespace embank {

// So many positions end an epoch of heat: every row of the store could have been looked up eight
// times. At least a million: the heat of small stores would be gone in a moment.
constexpr uint64_t HeatEpochPositions(uint64_t rows) {
  return std::max(uint64_t{1} << 20, 8 * rows);
}

class HeatClock {
 public:
  // All of them must outlive it. `rows`: the store whose lookups it counts.
  HeatClock(KeyIndex* index, DramTier* tier, const StoreRows* rows)
      : index_(index), tier_(tier), rows_(rows) {}
  HeatClock(const HeatClock&) = delete;
  HeatClock& operator=(const HeatClock&) = delete;

  // Thread-safe.
  HeatEpoch now() const { return static_cast<HeatEpoch>(epoch_.load(std::memory_order_relaxed)); }

  // Epochs that have ended so far. Thread-safe.
  uint64_t epochs() const { return epoch_.load(std::memory_order_relaxed); }

  // Counts positions that a lookup has answered, after its batch. Begins an epoch when it is time,
  // and renews the stamps of some rows that are due. Locks shards of the index, shared. The caller
  // holds no lock and is inside no EpochTable::Guard. Thread-safe.
  void Count(uint64_t positions);

  // Ends so many epochs now, early, and renews all stamps that are due with them: a 64th of the
  // rows for each epoch. Locks and threads are those of Count, but it waits for writers.
  void EndEpochs(uint32_t count);

 private:
  enum class Wait { kOverdue, kAlways };

  bool RenewSomeStamps(KeyHash due, Wait wait);
  void RenewStamps(KeyIndex::Shard* shard, KeyHash first, KeyHash last)
      EMBANK_SHARED_LOCKS_REQUIRED(shard->mutex);

  KeyIndex* const index_;
  DramTier* const tier_;
  const StoreRows* const rows_;
  // On a cache line apart from data that every batch reads.
  alignas(64) std::atomic<uint64_t> positions_{0};  // since the epoch began
  std::atomic<KeyHash> renewed_{0};  // where renewal continues; wraps from the last hash to the
                                     // first
  alignas(64) std::atomic<uint64_t> epoch_{0};
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_HEAT_CLOCK_H_
