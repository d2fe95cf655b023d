#include "store/batch/new_rows.h"

#include <algorithm>
#include <cstring>
#include <span>

#include "store/payload/payload_rows.h"
#include "store/placement/compaction.h"
#include "store/placement/row_mover.h"
#include "store/table/row_memory.h"
#include "tiers/row/row_write.h"

namespace embank {

NewRows::~NewRows() {
  if (slots_taken_ > 0) {
    table_->store().tier->Free(table_->slot_class(), std::span(slots_).first(slots_taken_));
    table_->mover()->rows().Release(slots_taken_);
  }
  if (rows_added_ > 0) table_->AddRows(rows_added_);
}

bool NewRows::TakeSlots() {
  shard_->mutex.AssertHeld();
  if (no_slots_) return ForgetOne();
  const StoreContext& store = table_->store();
  // One, two, four, ...: a group that creates few rows keeps few slots from the others.
  RowMover* const mover = table_->mover();
  size_t count = std::min(slots_wanted_, std::max<size_t>(rows_left_, 1));
  // Each of the rows will be dirty.
  count = mover->rows().Reserve(count);
  const auto wanted = std::span(slots_).first(count);
  slots_wanted_ = std::min(2 * slots_wanted_, kSlotsAtOnce);
  slots_taken_ = store.tier->Allocate(table_->slot_class(), wanted);
  // Memory that a shrunken index left behind is budget that rows may have.
  if (slots_taken_ == 0 && count > 0 && store.index->memory()->Release() > 0) {
    slots_taken_ = store.tier->Allocate(table_->slot_class(), wanted);
  }
  if (slots_taken_ == 0 && count > 0) {
    slots_taken_ = mover->eviction().EvictForSlots(shard_, wanted);
  }
  mover->rows().Release(count - slots_taken_);
  no_slots_ = slots_taken_ == 0;
  return !no_slots_ || ForgetOne();
}

// One row at a time, because positions act in order.
bool NewRows::ForgetOne() {
  if (turn_ && turn_->TakeSlot(&slots_[0])) slots_taken_ = 1;
  return slots_taken_ > 0;
}

// Like ReserveOne, for a table in memory that forgets, whose row has a slot. Forgetting a row for
// that may have moved places.
bool NewRows::MakePlace(KeyHash hash) {
  shard_->mutex.AssertHeld();
  KeyIndex* const index = table_->store().index;
  const bool fits = index->capacity()->ReserveOne(shard_, hash).ok();
  // If only its own place is full, no other row frees it.
  if (shard_->RowsToForget() == 0 || slots_taken_ == slots_.size()) return fits;
  Location slot;
  if (!turn_->TakeSlotHere(&slot)) return fits;
  slots_[slots_taken_++] = slot;
  return index->capacity()->ReserveOne(shard_, hash).ok();
}

bool NewRows::Add(const RowId& id, uint32_t heat, FunctionRef<void(std::byte*)> fill) {
  shard_->mutex.AssertHeld();
  const StoreContext& store = table_->store();
  if (is_full_) return false;
  // The index first: it may give empty pages of the tier back to the budget.
  if (!turn_ && !ReservePlace(id.hash)) return false;
  if (slots_taken_ == 0 && !TakeSlots()) return AddInLog(id, heat, fill);
  if (turn_ && !MakePlace(id.hash)) return false;
  const Location location = slots_[--slots_taken_];
  if (slots_taken_ > 0) __builtin_prefetch(store.tier->Row(slots_[slots_taken_ - 1]), 1);
  std::byte* const row = store.tier->Row(location);
  RowHeader* const header = table_->layout().Header(row);
  // Readers of the slot's former row may still look at it.
  std::atomic_ref(header->key).store(id.key, std::memory_order_relaxed);
  std::atomic_ref(header->usage)
      .store(PackUsage(0, heat, store.heat_clock->now()), std::memory_order_relaxed);
  ChangeRow(table_->layout(), id.table, row, fill);
  store.index->Insert(shard_, id.hash, location);
  table_->mover()->rows().OnInsert(shard_, location);
  if (rows_left_ > 0) --rows_left_;
  if (!turn_) {
    NoteAdded();
    return true;
  }
  // Counted at once: the row may be forgotten, and subtracted, before the group ends.
  table_->AddRows(1);
  return true;
}

// With a path, if the index cannot grow, another row has to go for each row that the index has
// refused or taken.
bool NewRows::ReservePlace(KeyHash hash) {
  shard_->mutex.AssertHeld();
  const StoreContext& store = table_->store();
  const bool fits = store.index->capacity()->ReserveOne(shard_, hash).ok();
  // While pages of rows can become the index's, no row has to go.
  const bool is_last_memory = store.pages == nullptr || store.index->memory()->is_exhausted();
  const bool forgets = is_last_memory && table_->mover()->compacted().forgets();
  rows_to_forget_ = forgets ? shard_->RowsToForget() : 0;
  if (!fits) {
    ++without_place_;
    NoteRowsToForget();
  }
  return fits;
}

void NewRows::NoteRowsToForget() {
  if (rows_to_forget_ > 0) table_->store().compactions.back()->NoteRowsToForget(rows_to_forget_);
}

void NewRows::NoteAdded() {
  NoteRowsToForget();
  ++rows_added_;
}

// A row for which memory has no slot is appended to the log, if there is one. If not, the rest of
// the group is refused at once, unless the table forgets rows for it.
bool NewRows::AddInLog(const RowId& id, uint32_t heat, FunctionRef<void(std::byte*)> fill) {
  shard_->mutex.AssertHeld();
  RowMover* const mover = table_->mover();
  if (mover->logs().empty()) {
    is_full_ = !turn_.has_value();
    return false;
  }
  BorrowedRowMemory memory(table_->store().row_memory);
  std::byte* const image = memory.get()->image.bytes;
  std::memset(image, 0, table_->layout().row_bytes);
  fill(image);
  if (!mover->log_rows().Append(shard_, id, heat, image, {})) return false;
  NoteAdded();
  return true;
}

void FreedRows::Add(KeyIndex::Shard* shard, Location location) {
  table_->mover()->rows().OnErase(shard, *table_, location);
  if (location.HasDevicePayload()) table_->store().payloads->Free(*table_, location);
  if (!location.IsInDram()) return table_->AddRows(-1);
  RetireRow(table_->layout().Header(table_->store().tier->Row(location)));
  if (count_ == slots_.size()) Return();
  slots_[count_++] = location;
}

void FreedRows::Return() {
  if (count_ == 0) return;
  table_->store().tier->Free(table_->slot_class(), std::span(slots_).first(count_));
  table_->AddRows(-static_cast<int64_t>(count_));
  count_ = 0;
}

}  // namespace embank
