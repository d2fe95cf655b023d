// Applying gradients.
#ifndef EMBANK_STORE_BATCH_GRADIENTS_H_
#define EMBANK_STORE_BATCH_GRADIENTS_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

class Batch;
class HotList;
class UniqueKeys;
class WriteScope;
struct ShardGroup;

// Sums the gradients (dim floats each, unaligned) of equal keys and steps each row once, under its
// shard's lock. Thread-safe.
// kInvalidArgument: a gradient is not finite; nothing was done.
// kFailedPrecondition: the table was dropped, or has no optimizer.
// kResourceExhausted: no memory for scratch.
// kNotFound: keys are absent and `outcomes` is empty; the rest was done.
Status ApplyGradients(Table* table, KeySpan keys, ConstRowSpan gradients, OutcomeSpan outcomes);

// ---- the steps of a batch of gradients, for callers whose gradients are in device memory ----

// kFailedPrecondition: the table was dropped, has no optimizer, or belongs to a store that is
// read-only.
Status CheckTakesGradients(const Table& table);
// The status of a batch whose gradient at position `first` is not finite.
Status NotFiniteStatus(const Batch& batch, uint64_t first);
// Sums the gradients of the distinct keys of a shard group, and steps their rows. Notes rows in
// device memory in `hot`, by the index in the group of each key's first position.
void StepGroup(Batch* batch, const ShardGroup& group, const UpdateRule& rule,
               ConstRowSpan gradients, UniqueKeys* unique, HotList* hot);
// Counts a batch that is done, pays its debts, and returns its status.
Status FinishGradients(Batch* batch, WriteScope* scope, uint64_t begin_ns);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_GRADIENTS_H_
