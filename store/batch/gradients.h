// Applying gradients.
#ifndef EMBANK_STORE_BATCH_GRADIENTS_H_
#define EMBANK_STORE_BATCH_GRADIENTS_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Sums the gradients (dim floats each, unaligned) of equal keys and steps each row once, under its
// shard's lock. Thread-safe.
// kInvalidArgument: a gradient is not finite; nothing was done.
// kFailedPrecondition: the table was dropped, or has no optimizer.
// kResourceExhausted: no memory for scratch.
// kNotFound: keys are absent and `outcomes` is empty; the rest was done.
Status ApplyGradients(Table* table, KeySpan keys, ConstRowSpan gradients, OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_GRADIENTS_H_
