// Reading and writing the optimizer state of rows.
#ifndef EMBANK_STORE_BATCH_STATE_H_
#define EMBANK_STORE_BATCH_STATE_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Copies each row's state (layout().state_floats floats) out; absent keys leave theirs as it is.
// Thread-safe. kFailedPrecondition: dropped, or a table without state. kResourceExhausted: scratch.
// kNotFound: absent keys when `outcomes` is empty, the rest being done.
Status GetState(Table* table, KeySpan keys, RowSpan state, OutcomeSpan outcomes);

// Copies each row's state in; of equal keys the last wins. Statuses as GetState, and
// kInvalidArgument: an Adam step count is outside 0 .. 2^24, nothing was done.
Status SetState(Table* table, KeySpan keys, ConstRowSpan state, OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_STATE_H_
