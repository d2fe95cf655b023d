// Lookups whose rows go to device memory.
#ifndef EMBANK_STORE_DEVICE_DEVICE_LOOKUP_H_
#define EMBANK_STORE_DEVICE_DEVICE_LOOKUP_H_

#include <cstdint>
#include <memory>
#include <span>

#include "base/status.h"
#include "gpu/device.h"
#include "store/batch/batch.h"
#include "store/table/table.h"

namespace embank {

// Does what Lookup does (store/batch/lookup.h), with `rows` in memory of the store's device. Rows
// in device memory are copied there, all others pass through a staging buffer. Returns when all
// work is enqueued and all outcomes are set; work behind it on the stream has the rows.
// Thread-safe. Statuses are those of Lookup, and: kInvalidArgument, kFailedPrecondition: the stream
// cannot be joined; nothing was done. kUnavailable: the device is lost.
Status LookupToDevice(Table* table, KeySpan keys, MissingRule rule, DeviceArray rows, void* stream,
                      OutcomeSpan outcomes);

// A lookup in parts, for callers that look several batches up on one stream, which they join and
// release, and count (store/packed).
class DeviceLookupBatch {
 public:
  // Borrows all of them. The row of the i-th key has the number row_numbers[i]; empty: i. Throws
  // std::bad_alloc.
  DeviceLookupBatch(Table* table, KeySpan keys, MissingRule rule, DeviceArray rows,
                    std::span<const uint32_t> row_numbers, OutcomeSpan outcomes);
  ~DeviceLookupBatch();
  DeviceLookupBatch(const DeviceLookupBatch&) = delete;
  DeviceLookupBatch& operator=(const DeviceLookupBatch&) = delete;

  // Allocates scratch. kResourceExhausted; nothing was changed.
  Status Allocate();
  // Answers all keys, enqueues the copies, and pays the debts. kUnavailable: the device is lost.
  Status Run();
  const OutcomeTally& tally() const;  // after Run

 private:
  struct Work;
  std::unique_ptr<Work> work_;
};

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_DEVICE_LOOKUP_H_
