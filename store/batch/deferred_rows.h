// The rows of a shard group that are in the log when the group has the shard's lock. No device is
// read under that lock, so they are changed one by one behind the others, when their records have
// been read.
//
// The first deferred row of a key stays in the log until then: no other thread promotes it under
// the lock, and all later positions of the key are deferred behind it. So they act in order.
#ifndef EMBANK_STORE_BATCH_DEFERRED_ROWS_H_
#define EMBANK_STORE_BATCH_DEFERRED_ROWS_H_

#include <cstdint>
#include <span>

#include "base/check.h"
#include "store/batch/row_group.h"
#include "store/batch/row_memory.h"
#include "store/batch/shard_plan.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"

namespace embank {

// For one thread.
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
    BorrowedRowMemory memory(table.parts().read_memory);
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
// in the log behind the others. make_step(rows_max) makes a step under each taking of the lock, and
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

#endif  // EMBANK_STORE_BATCH_DEFERRED_ROWS_H_
