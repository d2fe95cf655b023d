// Applying gradients that are in device memory.
#ifndef EMBANK_STORE_DEVICE_DEVICE_GRADIENTS_H_
#define EMBANK_STORE_DEVICE_DEVICE_GRADIENTS_H_

#include "base/status.h"
#include "gpu/device.h"
#include "store/table/table.h"

namespace embank {

// Does what ApplyGradients does (store/batch/gradients.h), with the bits that it gives, and with
// `gradients` in memory of the store's device, aligned to 4 bytes. The device sums the gradients of
// equal keys. Rows in device memory are stepped there; for the others one sum of each key passes
// through a staging buffer. The call waits for the search for gradients that are not finite, and
// for these sums. Work behind it on the stream may change `gradients`. Thread-safe. Statuses are
// those of ApplyGradients, and:
// kInvalidArgument, kFailedPrecondition: the stream cannot be joined; nothing was done.
// kUnavailable: the device is lost.
Status ApplyGradientsFromDevice(Table* table, KeySpan keys, DeviceArray gradients, void* stream,
                                OutcomeSpan outcomes);

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_DEVICE_GRADIENTS_H_
