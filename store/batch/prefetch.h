// Bringing rows up before they are asked for.
#ifndef EMBANK_STORE_BATCH_PREFETCH_H_
#define EMBANK_STORE_BATCH_PREFETCH_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Reads those rows of `keys` that are in the log alone and promotes them to memory, and pins the
// rows there (store/table/pins.h), as far as pins go. Pushes no more rows out than half of those in
// memory; what is beyond comes up while there are free slots. Creates nothing, counts no heat; what
// cannot be read stays where it is. In a store without a log it does nothing. Takes locks of
// shards, one after the other, and waits for reads. Thread-safe.
// kFailedPrecondition (dropped), kResourceExhausted (scratch).
Status Prefetch(Table* table, KeySpan keys);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_PREFETCH_H_
