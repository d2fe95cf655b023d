#include "store/new_rows.h"

#include <algorithm>
#include <span>

namespace embank {

NewRows::~NewRows() {
  if (slots_taken_ > 0) {
    table_->parts().tier->Free(table_->slot_class(), std::span(slots_).first(slots_taken_));
  }
  if (rows_added_ > 0) table_->AddRows(rows_added_);
}

bool NewRows::TakeSlots() {
  const size_t wanted = std::min(kSlotsAtOnce, std::max<size_t>(rows_left_, 1));
  slots_taken_ =
      table_->parts().tier->Allocate(table_->slot_class(), std::span(slots_).first(wanted));
  return slots_taken_ > 0;
}

std::byte* NewRows::Add(const RowId& id, uint32_t heat) {
  shard_->mutex.AssertHeld();
  // The index first: it may give empty pages of the tier back to the budget.
  if (!table_->parts().index->ReserveOne(shard_).ok()) return nullptr;
  if (slots_taken_ == 0 && !TakeSlots()) return nullptr;
  const Location location = slots_[--slots_taken_];
  std::byte* const row = table_->parts().tier->Row(location);
  *table_->layout().Header(row) = {
      .key = id.key, .identity = id.table, .usage = PackUsage(0, heat, table_->heat_epoch())};
  table_->parts().index->Insert(shard_, id, location);
  if (rows_left_ > 0) --rows_left_;
  ++rows_added_;
  return row;
}

}  // namespace embank
