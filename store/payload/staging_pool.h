// Buffers in pinned memory, through which rows pass between host and device.
#ifndef EMBANK_STORE_PAYLOAD_STAGING_POOL_H_
#define EMBANK_STORE_PAYLOAD_STAGING_POOL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "gpu/device.h"

namespace embank {

// Thread-safe.
class StagingPool {
 public:
  // The size of the buffers of a store with so much device memory: each holds at least four of the
  // largest rows.
  static uint64_t BufferBytes(uint64_t hbm_bytes);
  static constexpr size_t kBuffers = 3;

  // Device and budget outlive the pool. kResourceExhausted, kUnavailable.
  static StatusOr<std::unique_ptr<StagingPool>> Create(Device* device, MemoryBudget* budget,
                                                       uint64_t buffer_bytes);
  ~StagingPool();
  StagingPool(const StagingPool&) = delete;
  StagingPool& operator=(const StagingPool&) = delete;

  // Takes a buffer; waits until one is free, and until the device does not use it any more. The
  // caller holds no lock, and no second buffer.
  std::span<std::byte> Take();
  // Gives a buffer back, which the device does not use any more behind this moment (0: now).
  void Return(std::span<std::byte> buffer, DeviceEvent last_use = 0);

 private:
  struct FreeBuffer {
    std::byte* memory;
    DeviceEvent last_use;
  };

  StagingPool(Device* device, MemoryBudget* budget, uint64_t buffer_bytes)
      : device_(device), budget_(budget), buffer_bytes_(buffer_bytes) {}

  Device* const device_;
  MemoryBudget* const budget_;
  const uint64_t buffer_bytes_;
  std::byte* memory_ = nullptr;
  Mutex mutex_;
  ConditionVariable returned_;
  // In the order of their return, so that the device is done with the first one soonest.
  std::vector<FreeBuffer> free_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_STAGING_POOL_H_
