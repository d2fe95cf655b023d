// Writing and erasing whole rows.
#ifndef EMBANK_STORE_BATCH_WRITE_H_
#define EMBANK_STORE_BATCH_WRITE_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Writes rows, creating absent ones, and resets their optimizer state; of equal keys the last wins.
// Thread-safe; blocks on locks of the index only. kFailedPrecondition (dropped), kResourceExhausted
// (scratch; or refused keys when `outcomes` is empty, the rest being done).
Status Upsert(Table* table, KeySpan keys, ConstRowSpan rows, OutcomeSpan outcomes);

// Erases rows and frees their slots. Thread-safe. kFailedPrecondition, kResourceExhausted
// (scratch).
Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes);

// Erases all rows of a table that was marked as dropped; the footers of segments say which rows of
// the log are its own. No checkpoint is under way. Blocks on locks of the index, and reads the log.
// kResourceExhausted, kDataLoss, the statuses of files: some rows are left, for another call.
Status EraseAll(Table* table);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_WRITE_H_
