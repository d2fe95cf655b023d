// A row that a writer changes, under the lock of its shard, in DRAM or in the log.
//
// No device is read under that lock. The rows of a shard group that are in the log when the group
// has the lock are deferred: they are changed one by one after the others, when their records have
// been read. The first deferred row of a key stays in the log until then: no other thread promotes
// it under the lock, and all later positions of the key are deferred after it. So they act in
// order.
#ifndef EMBANK_STORE_BATCH_ROW_FOR_UPDATE_H_
#define EMBANK_STORE_BATCH_ROW_FOR_UPDATE_H_

#include <cstdint>

#include "base/check.h"
#include "base/function_ref.h"
#include "store/batch/row_group.h"
#include "store/batch/shard_plan.h"
#include "store/placement/row_mover.h"
#include "store/table/row_memory.h"
#include "store/table/table.h"

namespace embank {

// Made for one position, under the lock. A row in the log is promoted. If DRAM has no slot for it,
// it is changed in an image, which is appended to the log.
class RowForUpdate {
 public:
  // `found` is the row under this lock; it and `id` outlive this. No other code uses `memory` while
  // this lives.
  RowForUpdate(const Table& table, KeyIndex::Shard* shard, const RowId& id, const FoundRow& found,
               BorrowedRowMemory* memory) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard->mutex)
      : table_(table), shard_(shard), id_(id), found_(found), memory_(memory) {
    if (found.outcome != Outcome::kFound) return;
    location_ = found.match.location();
    if (!location_.IsInLog()) {
      row_ = table.store().tier->Row(location_);
    } else {
      PromoteOrCopy();
    }
  }
  // The memory becomes free for an absent row that is created next.
  ~RowForUpdate() {
    if (in_image_) memory_->Return();
  }
  RowForUpdate(const RowForUpdate&) = delete;
  RowForUpdate& operator=(const RowForUpdate&) = delete;

  // kFound; kAbsent: there is no such row; kDataLoss, kUnavailable: its record cannot be read.
  Outcome outcome() const { return found_.outcome; }
  // The bytes of a found row, to be read.
  std::byte* row() { return row_; }
  // Where the index has the row: in DRAM, or in the log if row() is an image.
  Location location() const { return location_; }
  // Calls change(row) on a found row (tiers/row/row_write.h), which returns kFound, or another
  // outcome if it left the row as it is. Returns that outcome, or
  //   kRefused: the log has no space for a change, and the row is as it was.
  // `heat`: of a row in the log from now on; nullptr: it keeps its own.
  template <typename ChangeBytes>
  Outcome Change(ChangeBytes change,
                 const uint32_t* heat = nullptr) EMBANK_NO_THREAD_SAFETY_ANALYSIS {
    RowMover* const mover = table_.mover();
    if (in_image_) {
      const Outcome outcome = change(row_);
      if (outcome != Outcome::kFound) return outcome;
      return Append(row_, heat == nullptr ? heat_ : *heat);
    }
    if (!mover->rows().BeforeUpdate(location_)) return Outcome::kRefused;
    return change(row_);
  }
  // Replaces a row whose record cannot be read by a new one with this heat; fill(image) writes its
  // vector and state.
  //   kFound: the row was replaced.
  //   kRefused: the log has no space for it, and nothing was changed.
  //   kDataLoss, kUnavailable: nobody knows whether the record is the row's, and nothing was
  //   changed.
  Outcome Replace(FunctionRef<void(std::byte*)> fill,
                  uint32_t heat = 0) EMBANK_NO_THREAD_SAFETY_ANALYSIS;

 private:
  Outcome Append(const std::byte* image, uint32_t heat)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);
  void PromoteOrCopy() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(shard_->mutex);

  const Table& table_;
  KeyIndex::Shard* const shard_;
  // References: copies are moved as 16 bytes right behind narrower stores of their parts. The
  // processor cannot forward such stores, and waits for all older ones, also for those of other
  // rows.
  const RowId& id_;
  const FoundRow& found_;
  Location location_ = {};
  std::byte* row_ = nullptr;
  bool in_image_ = false;
  uint32_t heat_ = 0;
  BorrowedRowMemory* const memory_;
};

// The deferred rows of a group. For one thread.
class DeferredRows {
 public:
  explicit DeferredRows(const ShardGroup& group) : group_(group) {}
  DeferredRows(const DeferredRows&) = delete;
  DeferredRows& operator=(const DeferredRows&) = delete;

  // Whether a match is in the log; then it notes the caller's number of the row.
  bool Defer(uint32_t number, const Match& match) {
    if (!match.any() || !match.location().IsInLog()) return false;
    EMBANK_CHECK(count_ < group_.later.size());
    group_.later[count_++] = number;
    return true;
  }

  // Calls use(number, id, found) for each deferred row in order, under the lock of the shard, which
  // the caller does not hold. key_of(number) is the row's key.
  template <typename KeyOf, typename Use>
  void ForEach(const Table& table, const KeyOf& key_of, const Use& use) const {
    if (count_ == 0) return;
    BorrowedRowMemory memory(table.store().read_memory);
    for (const uint32_t number : group_.later.first(count_)) {
      const Key key = key_of(number);
      const RowId id = table.IdOf(key, table.HashOf(key));
      table.mover()->log_rows().Find(group_.shard, id, &memory.get()->record,
                                     [&](const FoundRow& found) { use(number, id, found); });
    }
  }

 private:
  const ShardGroup& group_;
  size_t count_ = 0;
};

// The row of a match that is not in the log.
inline FoundRow FoundInMemory(const Match& match) {
  return {.outcome = match.any() ? Outcome::kFound : Outcome::kAbsent, .match = match};
}

// Calls step(position, id, found) for each position of a group, under the shard's lock, for those
// in the log after the others. make_step(rows_max) makes a step under each taking of the lock, and
// the step is destroyed before the lock is released.
template <typename MakeStep>
void ForEachRow(const Batch& batch, const ShardGroup& group, const MakeStep& make_step) {
  DeferredRows deferred(group);
  {
    MutexLock lock(&group.shard->mutex);
    auto&& step = make_step(group.size());
    ForEachMatch(batch.table(), batch, group,
                 [&](uint32_t position, const RowId& id, const Match& match) {
                   if (deferred.Defer(position, match)) return;
                   step(position, id, FoundInMemory(match));
                 });
  }
  deferred.ForEach(
      batch.table(), [&](uint32_t position) { return batch.keys()[position]; },
      [&](uint32_t position, const RowId& id, const FoundRow& found) {
        make_step(1)(position, id, found);
      });
}

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_ROW_FOR_UPDATE_H_
