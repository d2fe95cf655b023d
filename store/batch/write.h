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

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_WRITE_H_
