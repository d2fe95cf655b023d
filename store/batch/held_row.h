// A row in the hands of a writer, under its shard's lock, wherever it is.
#ifndef EMBANK_STORE_BATCH_HELD_ROW_H_
#define EMBANK_STORE_BATCH_HELD_ROW_H_

#include "base/function_ref.h"
#include "store/batch/row_memory.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"

namespace embank {

// For one position, under the lock. A row in the log comes up to memory; where that has no slot for
// it, it is changed in an image, which goes into the log.
class HeldRow {
 public:
  // `match` is what the index confirms. `memory` is nobody else's while it lives.
  HeldRow(const Table& table, KeyIndex::Shard* shard, const RowId& id, const Match& match,
          BorrowedRowMemory* memory) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex)
      : table_(table), shard_(shard), id_(id), match_(match), memory_(memory) {
    if (!match.any()) return;
    outcome_ = Outcome::kFound;
    if (match.location().tier() == Tier::kDram) {
      row_ = table.parts().tier->Row(match.location());
    } else {
      FetchFromLog();
    }
  }
  // An absent row that is made next may want the memory.
  ~HeldRow() {
    if (in_image_) memory_->GiveBack();
  }
  HeldRow(const HeldRow&) = delete;
  HeldRow& operator=(const HeldRow&) = delete;

  // kFound; kAbsent: there is no such row; kDataLoss: its record cannot be read.
  Outcome outcome() const { return outcome_; }
  // Of a row that is found: to be looked at.
  std::byte* row() { return row_; }
  // Of a row that is found: change(row) changes it there (tiers/row/row_write.h). kFound, or
  // kRefused: the log has no room for a change, the row is as it was.
  template <typename ChangeBytes>
  Outcome Change(ChangeBytes change) EMBANK_NO_THREAD_SAFETY_ANALYSIS {
    RowMover* const mover = table_.mover();
    const bool in_memory = !in_image_;
    if (mover != nullptr && in_memory && !mover->NoteChanging(match_.location())) {
      return Outcome::kRefused;
    }
    change(row_);
    if (in_memory || mover->PutInLog(shard_, id_, heat_, row_, match_)) return Outcome::kFound;
    return Outcome::kRefused;
  }
  // Of a row whose record cannot be read: puts another one in its place, whose vector and state
  // fill(image) writes. kFound; kRefused: the log has no room for it; kDataLoss: nobody knows
  // whether the record is the row's. Then nothing was changed.
  Outcome Replace(FunctionRef<void(std::byte*)> fill) EMBANK_NO_THREAD_SAFETY_ANALYSIS;

 private:
  void FetchFromLog() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  void ReadFromLog() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);

  const Table& table_;
  KeyIndex::Shard* const shard_;
  const RowId id_;
  Match match_;
  Outcome outcome_ = Outcome::kAbsent;
  std::byte* row_ = nullptr;
  bool in_image_ = false;
  uint32_t heat_ = 0;
  BorrowedRowMemory* const memory_;
};

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_HELD_ROW_H_
