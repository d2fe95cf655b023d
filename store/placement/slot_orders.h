// The orders in which the rows of one slot class leave memory: one for each shard, linked through
// the notes of their slots.
#ifndef EMBANK_STORE_PLACEMENT_SLOT_ORDERS_H_
#define EMBANK_STORE_PLACEMENT_SLOT_ORDERS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "store/index/key_index.h"
#include "store/placement/heat_clock.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/dram/eviction_order.h"
#include "tiers/dram/slot_notes.h"
#include "tiers/row/row_header.h"

namespace embank {

class SlotOrders {
 public:
  using Order = EvictionOrder<SlotOrders>;

  // Without notes there are no orders. Tier and clock must outlive the orders.
  SlotOrders(const DramTier& tier, const HeatClock& heat_clock, uint32_t slot_bytes,
             EvictionPolicy policy, bool has_notes)
      : rows_(tier.rows()),
        heat_clock_(heat_clock),
        notes_(tier, slot_bytes),
        needs_touches_(has_notes && policy == EvictionPolicy::kLru) {
    for (uint32_t i = 0; has_notes && i < KeyIndex::kShardCount; ++i) {
      orders_.push_back(std::make_unique<Order>(policy, this));
    }
  }
  SlotOrders(const SlotOrders&) = delete;
  SlotOrders& operator=(const SlotOrders&) = delete;

  // The bytes that the store charges for the orders.
  static constexpr uint64_t kFixedBytes = uint64_t{16} << 10;
  static_assert(KeyIndex::kShardCount * sizeof(Order) < kFixedBytes);

  const SlotNotes& notes() const { return notes_; }
  // Whether lookups have to touch their rows: there are orders, and the policy is LRU.
  bool needs_touches() const { return needs_touches_; }
  // Under the shard's lock.
  Order& Of(const KeyIndex::Shard* shard) { return *orders_[shard->number]; }

  // ---- functions that the orders call ----

  EvictionLinks& Links(uint32_t slot) { return notes_.Of(slot).links; }
  // As EvictionOrder requires.
  bool TakeReferenced(uint32_t slot) {
    const std::atomic_ref usage(HeaderOf(slot)->usage);
    const bool referenced =
        (usage.fetch_and(~kReferencedFlag, std::memory_order_relaxed) & kReferencedFlag) != 0;
    if (referenced) notes_.Of(slot).untouched = 0;
    return referenced;
  }
  // As EvictionOrder requires.
  bool IsReferenced(uint32_t slot) {
    const std::atomic_ref usage(HeaderOf(slot)->usage);
    return (usage.load(std::memory_order_relaxed) & kReferencedFlag) != 0;
  }
  // As EvictionOrder requires.
  uint32_t Heat(uint32_t slot) { return HeatOf(LoadMark(HeaderOf(slot)).usage, heat_clock_.now()); }

 private:
  RowHeader* HeaderOf(uint32_t slot) const {
    return reinterpret_cast<RowHeader*>(rows_.At(notes_.LocationOf(slot)));
  }

  const RowAddresses rows_;
  const HeatClock& heat_clock_;
  const SlotNotes notes_;
  const bool needs_touches_;
  std::vector<std::unique_ptr<Order>> orders_;  // by shard; each under its lock
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_SLOT_ORDERS_H_
