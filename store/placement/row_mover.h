// Moves the rows of one row class between DRAM and the log. Without a log they stay where they are.
#ifndef EMBANK_STORE_PLACEMENT_ROW_MOVER_H_
#define EMBANK_STORE_PLACEMENT_ROW_MOVER_H_

#include "store/placement/class_rows.h"
#include "store/placement/compacted_rows.h"
#include "store/placement/eviction.h"
#include "store/placement/log_rows.h"
#include "store/placement/promotion.h"

namespace embank {

class RowMover {
 public:
  // The context outlives it. `has_notes`: as ClassRows'.
  RowMover(const StoreContext& store, SlotClass slot_class, const RowClass& row_class,
           bool has_notes)
      : rows_(store, slot_class, row_class, has_notes),
        eviction_(&rows_),
        log_rows_(&rows_),
        promotion_(&rows_, &eviction_, &log_rows_),
        compacted_(&rows_, &log_rows_, row_class) {}

  // The bytes that the store charges for a class with notes.
  static constexpr uint64_t kFixedBytes = ClassRows::kFixedBytes;

  RowLogs& logs() const { return *rows_.store().logs; }
  // How many of so many rows can be in logs: all, or none without a log.
  size_t InLogMax(size_t rows) const { return logs().empty() ? 0 : rows; }
  ClassRows& rows() { return rows_; }
  const ClassRows& rows() const { return rows_; }
  Eviction& eviction() { return eviction_; }
  LogRows& log_rows() { return log_rows_; }
  Promotion& promotion() { return promotion_; }
  CompactedRows& compacted() { return compacted_; }

  // The eviction orders if lookups have to touch them, as for LRU; else nullptr.
  SlotOrders* OrdersToTouch() { return rows_.orders().needs_touches() ? &rows_.orders() : nullptr; }
  // Touches a row in memory; those in device memory are in no order. Under the lock of its shard.
  void TouchOrder(const KeyIndex::Shard* shard, Location slot) {
    SlotOrders* const orders = OrdersToTouch();
    if (orders == nullptr || !slot.IsInDram()) return;
    orders->Of(shard).Touch(orders->notes().NumberOf(slot));
  }

 private:
  ClassRows rows_;
  Eviction eviction_;
  LogRows log_rows_;
  Promotion promotion_;
  CompactedRows compacted_;
};

}  // namespace embank

#endif  // EMBANK_STORE_PLACEMENT_ROW_MOVER_H_
