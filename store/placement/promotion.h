// Promotion of rows from the log to DRAM: a slot is taken, the record is copied into it, the entry
// moves. The row is clean then, and its record stays.
//
// A record has the heat of the row when it was written; the heat sketch has the heat with which a
// row left DRAM clean. A promoted row has the larger of both. If the sketch was full, that is the
// record's.
#ifndef EMBANK_STORE_PLACEMENT_PROMOTION_H_
#define EMBANK_STORE_PLACEMENT_PROMOTION_H_

#include <cstdint>
#include <span>

#include "store/placement/class_rows.h"
#include "store/placement/eviction.h"
#include "store/placement/log_rows.h"

namespace embank {

class Promotion {
 public:
  // All of them outlive it.
  Promotion(ClassRows* rows, Eviction* eviction, LogRows* log_rows)
      : store_(rows->store()), rows_(*rows), eviction_(*eviction), log_rows_(*log_rows) {}
  Promotion(const Promotion&) = delete;
  Promotion& operator=(const Promotion&) = delete;

  // Promotes the row of a current match in the log, and counts `touches` lookups; returns the row's
  // match now. None: there is no slot for it. The caller holds the lock of the shard.
  Match Promote(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                std::span<const std::byte> record, uint32_t touches)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // As Promote, but a row of PMem only if DRAM has a free slot for it, or it is hotter than the row
  // that would leave DRAM for it. Otherwise it stays, and the lookups are counted.
  Match PromoteIfHotter(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                        std::span<const std::byte> record, uint32_t touches)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // As Promote, before the row is used: pins the row if its table may pin one more. Unless it
  // `may_evict`, it takes free slots only. False: there is no slot.
  bool PromoteAhead(KeyIndex::Shard* shard, const RowId& id, const Match& match,
                    std::span<const std::byte> record, bool may_evict)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // Prefetches the memory that Promote uses first. Thread-safe. Always inlined: g++ 12 drops calls
  // of functions that only prefetch.
  [[gnu::always_inline]] void Prefetch(KeyHash hash) const {
    __builtin_prefetch(store_.index->ProbeOf(hash).bucket, 1);
    store_.heat_sketch->Prefetch(hash);
  }

 private:
  bool HasMoreHeatThanVictim(KeyIndex::Shard* shard, KeyHash hash,
                             std::span<const std::byte> record, uint32_t touches)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  Match PromoteTo(Location slot, KeyIndex::Shard* shard, const RowId& id, const Match& match,
                  std::span<const std::byte> record, uint32_t touches)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  const StoreContext& store_;
  ClassRows& rows_;
  Eviction& eviction_;
  LogRows& log_rows_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_PROMOTION_H_
