// Applying gradients.
#ifndef EMBANK_STORE_BATCH_GRADIENTS_H_
#define EMBANK_STORE_BATCH_GRADIENTS_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Sums the gradients (dim floats each, unaligned) of equal keys and steps each row once, in its
// home, under its shard's lock. Thread-safe. kInvalidArgument: a gradient is not finite, nothing
// was done. kFailedPrecondition: dropped, or no optimizer. kResourceExhausted: scratch. kNotFound:
// absent keys when `outcomes` is empty, the rest being done.
Status ApplyGradients(Table* table, KeySpan keys, ConstRowSpan gradients, OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_GRADIENTS_H_
