// Prefetches of many features at once.
#ifndef EMBANK_STORE_PACKED_PACKED_PREFETCH_H_
#define EMBANK_STORE_PACKED_PACKED_PREFETCH_H_

#include <span>

#include "base/status.h"
#include "store/packed/feature.h"

namespace embank {

// Prefetches the keys of all features, table by table (store/batch/prefetch.h). Tables whose rows
// share memory share the rows that a prefetch evicts, by their keys. Thread-safe.
// kFailedPrecondition: a table was dropped; nothing was done.
// kResourceExhausted: no memory for scratch; rows of former tables may have been read.
Status PrefetchPacked(std::span<const Feature> features);

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_PACKED_PREFETCH_H_
