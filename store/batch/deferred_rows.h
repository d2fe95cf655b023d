// The rows of a shard group that are in the log when the group has the shard's lock: nothing is
// read from a device under that lock. They are changed one by one behind the others, when their
// records have been read.
//
// A key's first row that is deferred is in the log until then: nobody else promotes it under the
// lock, and all later positions of the key are deferred behind it. So they act in order.
#ifndef EMBANK_STORE_BATCH_DEFERRED_ROWS_H_
#define EMBANK_STORE_BATCH_DEFERRED_ROWS_H_

#include <cstdint>
#include <span>

#include "base/check.h"
#include "store/batch/row_memory.h"
#include "store/batch/shard_plan.h"
#include "store/placement/row_mover.h"
#include "store/table/table.h"

namespace embank {

// One thread's.
class DeferredRows {
 public:
  explicit DeferredRows(const ShardGroup& group) : group_(group) {}
  DeferredRows(const DeferredRows&) = delete;
  DeferredRows& operator=(const DeferredRows&) = delete;

  // Whether a match is of the log; then it notes the caller's number of the row.
  bool Defer(uint32_t number, const Match& match) {
    if (!match.any() || match.location().tier() == Tier::kDram) return false;
    EMBANK_CHECK(count_ < group_.later.size());
    group_.later[count_++] = number;
    return true;
  }

  // Calls use(number, id, found) for each of them in order, under the lock of the shard, which the
  // caller does not hold. key_of(number) is the row's key.
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
inline FoundRow FoundInDram(const Match& match) {
  return {.outcome = match.any() ? Outcome::kFound : Outcome::kAbsent, .match = match};
}

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_DEFERRED_ROWS_H_
