// Tells the eviction orders of LRU which rows a batch looks up. The other policies need no telling.
#ifndef EMBANK_STORE_BATCH_RECENCY_H_
#define EMBANK_STORE_BATCH_RECENCY_H_

#include "store/placement/row_mover.h"

namespace embank {

// The eviction orders of a table's rows if lookups have to touch them; else nullptr.
inline SlotOrders* OrdersToTouch(const Table& table) {
  SlotOrders& orders = table.mover()->rows().orders();
  return orders.needs_touches() ? &orders : nullptr;
}

// Touches a row in memory; those in device memory are in no order. Under the lock of its shard.
inline void TouchOrder(const Table& table, const KeyIndex::Shard* shard, Location slot) {
  SlotOrders* const orders = OrdersToTouch(table);
  if (orders != nullptr && slot.IsInDram()) orders->Of(shard).Touch(orders->notes().NumberOf(slot));
}

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_RECENCY_H_
