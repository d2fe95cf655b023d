// Lookups whose rows go to device memory.
#ifndef EMBANK_STORE_DEVICE_DEVICE_LOOKUP_H_
#define EMBANK_STORE_DEVICE_DEVICE_LOOKUP_H_

#include "base/status.h"
#include "gpu/device.h"
#include "store/table/table.h"

namespace embank {

// Does what Lookup does (store/batch/lookup.h), with `rows` in memory of the store's device. Rows
// in device memory are copied there, all others pass through a staging buffer. Returns when all
// work is enqueued and all outcomes are set; work behind it on the stream has the rows.
// Thread-safe. Statuses are those of Lookup, and: kInvalidArgument, kFailedPrecondition: the stream
// cannot be joined; nothing was done. kUnavailable: the device is lost.
Status LookupToDevice(Table* table, KeySpan keys, MissingRule rule, DeviceArray rows, void* stream,
                      OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_DEVICE_LOOKUP_H_
