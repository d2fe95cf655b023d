// Device memory that a store makes for its caller, and copies to and from it.
#ifndef EMBANK_STORE_DEVICE_CALLER_MEMORY_H_
#define EMBANK_STORE_DEVICE_CALLER_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <set>

#include "base/status.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "gpu/device.h"

namespace embank {

// Thread-safe.
class CallerMemory {
 public:
  // The device outlives this.
  explicit CallerMemory(Device* device) : device_(*device) {}
  // Frees all that the caller has not freed.
  ~CallerMemory();
  CallerMemory(const CallerMemory&) = delete;
  CallerMemory& operator=(const CallerMemory&) = delete;

  // Makes device memory, aligned to 256 bytes, with any contents. Not 0 bytes.
  // kResourceExhausted, kUnavailable: as Device::Allocate.
  StatusOr<std::byte*> Allocate(uint64_t bytes);
  // Waits for the device, and frees memory of Allocate. kInvalidArgument: it is not, and nothing is
  // done.
  Status Free(std::byte* memory);
  // Copies bytes behind all that is on the stream, and waits until they are there. At least one
  // side is in device memory. Statuses are those of CallerStream::Join.
  Status Copy(std::byte* to, const std::byte* from, uint64_t bytes, void* stream);

 private:
  Device& device_;
  Mutex mutex_;
  std::set<std::byte*> allocated_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_CALLER_MEMORY_H_
