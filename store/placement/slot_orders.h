// The orders in which the rows of one slot class leave memory: one for each shard, linked through
// the notes of their slots.
#ifndef EMBANK_STORE_PLACEMENT_SLOT_ORDERS_H_
#define EMBANK_STORE_PLACEMENT_SLOT_ORDERS_H_

#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/check.h"
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

  // Adds a slot to the order of its shard, under the shard's lock.
  void Add(const KeyIndex::Shard* shard, uint32_t slot) {
    Of(shard).Add(slot);
    const uint64_t bit = uint64_t{1} << shard->number;
    if ((may_have_rows_.load(std::memory_order_relaxed) & bit) == 0) {
      may_have_rows_.fetch_or(bit, std::memory_order_relaxed);
    }
  }
  // Notes that the order of a shard is empty, under the shard's lock.
  void NoteEmpty(const KeyIndex::Shard* shard) {
    EMBANK_CHECK(Of(shard).count() == 0);
    may_have_rows_.fetch_and(~(uint64_t{1} << shard->number), std::memory_order_relaxed);
  }
  // The result of a visit: something was taken, the shard has no rows, or it gives none now.
  enum class Visited { kTaken, kEmpty, kInVain };
  // Calls visit(number) for shards other than `own` that may have rows, until one call answers
  // kTaken or `tries_max` have answered kInVain; returns whether one has taken something. Begins
  // behind the shard at which the last search has ended. A shard without rows is visited once at
  // most (NoteEmpty), so that a class with few rows in memory finds them at once. Thread-safe.
  template <typename Visit>
  bool VisitGivers(uint32_t own, uint32_t tries_max, Visit visit) {
    uint64_t givers = may_have_rows_.load(std::memory_order_relaxed) & ~(uint64_t{1} << own);
    for (uint32_t tries = 0; tries < tries_max && givers != 0;) {
      const uint32_t begin = next_giver_.load(std::memory_order_relaxed);
      const uint32_t behind = static_cast<uint32_t>(std::countr_zero(std::rotr(givers, begin)));
      const uint32_t number = (begin + behind) % KeyIndex::kShardCount;
      givers &= ~(uint64_t{1} << number);
      next_giver_.store((number + 1) % KeyIndex::kShardCount, std::memory_order_relaxed);
      givers_visited_.fetch_add(1, std::memory_order_relaxed);
      const Visited visited = visit(number);
      if (visited == Visited::kTaken) return true;
      if (visited == Visited::kInVain) ++tries;
    }
    return false;
  }
  // The number of visits so far.
  uint64_t givers_visited() const { return givers_visited_.load(std::memory_order_relaxed); }

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
  // Every call reads the members above; searches change those below.
  alignas(64) std::atomic<uint64_t> may_have_rows_{0};  // a bit for each shard
  std::atomic<uint32_t> next_giver_{0};
  std::atomic<uint64_t> givers_visited_{0};
  static_assert(KeyIndex::kShardCount == 64);
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_SLOT_ORDERS_H_
