// Free slots for the rows of a class: slots that the tier has, or slots of evicted rows.
//
//   TakeSlots:  a free slot of the class | else the shard's next victims, appended if dirty
//   Vacate:     a row moves out of a page that is needed elsewhere, into such a slot
//
// A victim that was looked up since it returned to DRAM leaves its heat in the heat sketch
// (store/placement/heat_sketch.h). A class keeps the pages that it got while there were any. A
// class that comes when others have them all has no slot to evict, and its rows live in the log.
#ifndef EMBANK_STORE_PLACEMENT_EVICTION_H_
#define EMBANK_STORE_PLACEMENT_EVICTION_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "store/placement/class_rows.h"

namespace embank {

class Eviction {
 public:
  // `rows` outlives it.
  explicit Eviction(ClassRows* rows) : store_(rows->store()), rows_(*rows) {}
  Eviction(const Eviction&) = delete;
  Eviction& operator=(const Eviction&) = delete;

  // ---- the caller holds the lock of the shard ----

  // Takes slots for rows of the shard, and evicts rows for them if it must; returns how many. 0:
  // other threads use the slots in DRAM, or the log takes no rows, or there is none.
  size_t TakeSlots(KeyIndex::Shard* shard, std::span<Location> slots)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Does the same where the class has no free slots.
  size_t EvictForSlots(KeyIndex::Shard* shard, std::span<Location> slots)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  // Takes slots that are free already; returns how many.
  size_t TakeFreeSlots(std::span<Location> slots) {
    return store_.tier->Allocate(rows_.slot_class(), slots);
  }

  // Empties a slot of a closed page (DramTier::ClosePage), if the row is still in it: the row takes
  // another slot of the class, or is evicted. False: the log takes no row. The caller has a write
  // guard of the gate.
  bool Vacate(KeyIndex::Shard* shard, const RowInSlot& row)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  // ---- thread-safe ----

  // The number of slots so far that rows wanted and the tier did not have. It shows how short of
  // memory the class is.
  uint64_t slots_wanted() const { return slots_wanted_.load(std::memory_order_relaxed); }
  // Whether the class has wanted a page's worth of slots since EndWantedPage.
  bool HasWantedPage() const {
    const uint64_t ended = wanted_pages_end_.load(std::memory_order_relaxed);
    return slots_wanted() - ended >= DramTier::SlotsPerPage(rows_.slot_bytes(), true);
  }
  void EndWantedPage() { wanted_pages_end_.store(slots_wanted(), std::memory_order_relaxed); }

 private:
  size_t EvictFrom(KeyIndex::Shard* shard, std::span<Location> slots, bool* log_takes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  size_t EvictFromAnother(KeyIndex::Shard* shard, std::span<Location> slots, bool* log_takes);
  bool EvictOne(KeyIndex::Shard* shard, bool pinned_too, Location* slot, bool* log_takes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  bool Evict(KeyIndex::Shard* shard, Location slot) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void PrefetchNext(uint32_t victim) const;
  bool TakeSlotElsewhere(KeyIndex::Shard* shard, Location* slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  void MoveToSlot(KeyIndex::Shard* shard, const RowInSlot& row, Location to)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);

  const StoreContext& store_;
  ClassRows& rows_;
  // Every call reads the members above; evictions change those below.
  alignas(64) std::atomic<uint64_t> slots_wanted_{0};
  std::atomic<uint64_t> wanted_pages_end_{0};
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_EVICTION_H_
