// Promotes rows to memory before they are used.
#ifndef EMBANK_STORE_BATCH_PREFETCH_H_
#define EMBANK_STORE_BATCH_PREFETCH_H_

#include "base/status.h"
#include "store/table/table.h"

namespace embank {

// Promotes those rows of `keys` that are in the log alone to memory, and pins them there
// (store/table/pins.h), as far as pins are free. Evicts at most half of the rows in memory; further
// rows are promoted only into free slots. `keys_of_call`, if not 0: the table is one of several,
// and its keys have their part of that half. Creates nothing, counts no heat, and leaves rows that
// cannot be read where they are. In a store without a log it does nothing. Takes locks of shards,
// one after the other, and waits for reads. Thread-safe.
// kFailedPrecondition: the table was dropped.
// kResourceExhausted: no memory for scratch.
Status Prefetch(Table* table, KeySpan keys, uint64_t keys_of_call = 0);

}  // namespace embank

#endif  // EMBANK_STORE_BATCH_PREFETCH_H_
