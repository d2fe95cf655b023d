// Lookups of many features at once.
#ifndef EMBANK_STORE_PACKED_PACKED_LOOKUP_H_
#define EMBANK_STORE_PACKED_PACKED_LOOKUP_H_

#include <span>

#include "base/status.h"
#include "store/packed/feature.h"

namespace embank {

// Looks the keys of all features up, in order (store/batch/lookup.h), and pools their rows
// (docs/arithmetic.md). A pooled key without a row adds nothing under kSkip; so does one whose row
// cannot be read. All tables are of one store. The features of one table count as one batch.
// Thread-safe.
// If several features have a status, the gravest is returned, with the feature's number
// (call_status.h).
// kFailedPrecondition: a table was dropped; nothing was done.
// kResourceExhausted: no memory for scratch; or keys are refused of a feature without outcomes, and
// the rest was done.
// kDataLoss: rows cannot be read of a feature without outcomes; the rest was done.
// kUnavailable also: they cannot be read now.
// kUnavailable: the device of the store is lost.
Status LookupPacked(std::span<const LookupFeature> features, MissingRule rule);

// Does the same with all rows in memory of the store's device, of which the tables' store has one.
// Without pooling, HBM rows are copied there (store/device/device_lookup.h). Bags are pooled in
// host memory, and their rows sent. Returns when all work is enqueued and all outcomes are set.
// Where it pools HBM rows, it waits for the device calls before it, and for all work of their
// streams that came before them; after a feature of the same table without pooling also for the
// earlier work of its own stream. Else it waits for staging buffers at most.
// Statuses are those of LookupPacked, and: kInvalidArgument, kFailedPrecondition: the stream cannot
// be joined; nothing was done.
Status LookupPackedToDevice(std::span<const LookupFeature> features, MissingRule rule,
                            void* stream);

}  // namespace embank

#endif  // EMBANK_STORE_PACKED_PACKED_LOOKUP_H_
