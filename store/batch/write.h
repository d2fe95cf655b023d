// Writing and erasing whole rows.
#ifndef EMBANK_STORE_BATCH_WRITE_H_
#define EMBANK_STORE_BATCH_WRITE_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Writes rows, creating absent ones, and resets their optimizer state; the last of equal keys wins.
// Thread-safe; waits for locks of the index only.
// kFailedPrecondition: the table was dropped.
// kResourceExhausted: no memory for scratch; or keys are refused and `outcomes` is empty, and the
// rest was done.
Status Upsert(Table* table, KeySpan keys, ConstRowSpan rows, OutcomeSpan outcomes);

// Erases rows and frees their slots. Thread-safe. kFailedPrecondition; kResourceExhausted: no
// memory for scratch.
Status Erase(Table* table, KeySpan keys, OutcomeSpan outcomes);

// Erases all rows of a table that was marked as dropped; the footers of segments tell which rows of
// the log are the table's. No checkpoint is under way. Waits for locks of the index, and reads the
// log. kResourceExhausted, kDataLoss, the statuses of files: some rows are left, for another call.
Status EraseAll(Table* table);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_WRITE_H_
