// Upserts whose rows come from device memory.
#ifndef EMBANK_STORE_DEVICE_DEVICE_UPSERT_H_
#define EMBANK_STORE_DEVICE_DEVICE_UPSERT_H_

#include "base/status.h"
#include "gpu/device.h"
#include "store/table/table.h"

namespace embank {

// Does what Upsert does (store/batch/write.h), with `rows` in memory of the store's device. Rows in
// device memory are written there, all others pass through a staging buffer, for which the call
// waits. Returns when all work is enqueued; work behind it on the stream may change `rows`.
// Thread-safe. Statuses are those of Upsert, and:
// kInvalidArgument, kFailedPrecondition: the stream cannot be joined; nothing was done.
// kUnavailable: the device is lost.
Status UpsertFromDevice(Table* table, KeySpan keys, DeviceArray rows, void* stream,
                        OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_DEVICE_UPSERT_H_
