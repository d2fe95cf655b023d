// Reading and writing the optimizer state of rows.
#ifndef EMBANK_STORE_BATCH_STATE_H_
#define EMBANK_STORE_BATCH_STATE_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Copies each row's state (layout().state_floats floats) out; the output of an absent key is
// unchanged. Thread-safe.
// kFailedPrecondition: the table was dropped, or has no state.
// kResourceExhausted: no memory for scratch.
// kNotFound: keys are absent and `outcomes` is empty; the rest was done.
Status GetState(Table* table, KeySpan keys, RowSpan state, OutcomeSpan outcomes);

// Copies each row's state in; the last of equal keys wins. Statuses like GetState, and
// kInvalidArgument: an Adam step count is outside 0 .. 2^24; nothing was done.
Status SetState(Table* table, KeySpan keys, ConstRowSpan state, OutcomeSpan outcomes);

// kFailedPrecondition: the table was dropped, or has no state.
Status CheckHasState(const Table& table);
// Checks states that are to be written. kFailedPrecondition, kInvalidArgument: as SetState.
Status CheckStates(const Table& table, KeySpan keys, ConstRowSpan state);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_STATE_H_
