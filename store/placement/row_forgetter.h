// Forgets rows of one slot class, to bound a store in memory. If a new row has no space, the
// coldest row by the class's policy is erased, and the new row takes its slot.
//
//   batch -> shard group -> a turn:   | newest ... coldest |   the shard's eviction order
//                                     | rows of this batch |   stand aside, put back at the end
//
// The coldest row is in the new row's shard. It is in another shard only if its own has much less
// than its part of memory, or only rows of the batch. Pages stay with their class: a class that
// comes when others have them all has nothing to forget, and its rows are refused.
#ifndef EMBANK_STORE_PLACEMENT_ROW_FORGETTER_H_
#define EMBANK_STORE_PLACEMENT_ROW_FORGETTER_H_

#include <cstdint>

#include "store/index/key_index.h"
#include "store/placement/batch_keys.h"
#include "store/placement/class_rows.h"
#include "store/placement/slot_orders.h"
#include "store/table/table_directory.h"
#include "tiers/dram/dram_tier.h"

namespace embank {

class RowForgetter {
 public:
  // The rows of a class whose slots have notes, without a log. They outlive it.
  explicit RowForgetter(ClassRows* rows)
      : store_(rows->store()), rows_(*rows), orders_(rows->orders()) {}

  // The rows that one shard group of a batch forgets. A turn begins and ends under the shard's
  // lock. Rows of the batch are forgotten only when there are no others, the coldest first.
  class Turn {
   public:
    // `keys`: the keys of the batch; nullptr: it has none.
    Turn(RowForgetter* forgetter, KeyIndex::Shard* shard, const BatchKeys* keys)
        : forgetter_(forgetter), shard_(shard), keys_(keys) {}
    ~Turn() { forgetter_->orders_.Of(shard_).PutBack(); }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Forgets a row, and takes its slot. False: there is none, or other shards are in use.
    bool TakeSlot(Location* slot);
    // Does the same with a row of the shard itself, which frees a place in the index.
    bool TakeSlotHere(Location* slot);

   private:
    using Order = SlotOrders::Order;

    bool TakeOther(Location* slot);
    bool TakeFromAnother(uint64_t rows_min, bool own_too, Location* slot);
    uint32_t RemoveColdest(Order* order, uint64_t aside_max) const;

    RowForgetter* const forgetter_;
    KeyIndex::Shard* const shard_;
    const BatchKeys* const keys_;
    bool others_are_own_ = false;  // all visible rows of other shards belong to the batch
  };

 private:
  Location Forget(KeyIndex::Shard* shard, uint32_t slot)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex);
  RowHeader* HeaderOf(uint32_t slot) const {
    return reinterpret_cast<RowHeader*>(store_.tier->Row(orders_.notes().LocationOf(slot)));
  }

  const StoreContext& store_;
  ClassRows& rows_;
  SlotOrders& orders_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_ROW_FORGETTER_H_
