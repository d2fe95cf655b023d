// The device memory of a store: the device, the payloads of HBM rows, and the buffers between.
#ifndef EMBANK_STORE_PAYLOAD_PAYLOAD_MEMORY_H_
#define EMBANK_STORE_PAYLOAD_PAYLOAD_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/function_ref.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"
#include "gpu/device.h"
#include "store/payload/staging_pool.h"
#include "tiers/hbm/payload_slots.h"

namespace embank {

class PayloadMemory {
 public:
  // Allocates `hbm_bytes` of the device, and scratch; the budget pays for host memory, and outlives
  // this.
  // kInvalidArgument: hbm_bytes holds not even one row. kResourceExhausted, kUnavailable.
  static StatusOr<std::unique_ptr<PayloadMemory>> Create(std::unique_ptr<Device> device,
                                                         MemoryBudget* budget, uint64_t hbm_bytes);
  ~PayloadMemory();
  PayloadMemory(const PayloadMemory&) = delete;
  // The bytes of host memory that it charges.
  static uint64_t HostBytesMax(uint64_t hbm_bytes) {
    return PayloadSlots::HostBytesMax(hbm_bytes) +
           StagingPool::kBuffers * StagingPool::BufferBytes(hbm_bytes);
  }
  PayloadMemory& operator=(const PayloadMemory&) = delete;

  Device& device() { return *device_; }
  const Device& device() const { return *device_; }
  // The begin of the payloads; offsets of slots count from here.
  std::byte* payloads() { return payloads_; }
  PayloadSlots& slots() { return slots_; }
  const PayloadSlots& slots() const { return slots_; }
  StagingPool& staging() { return *staging_; }
  // Calls use(scratch), which enqueues work that first fills the scratch and then empties it. The
  // scratch is device memory as large as a staging buffer. One thread at a time enqueues such work,
  // and the stream keeps it in order. Without locks.
  void UseScratch(FunctionRef<void(std::byte*)> use);
  uint64_t hbm_bytes() const { return hbm_bytes_; }

 private:
  PayloadMemory(std::unique_ptr<Device> device, MemoryBudget* budget, uint64_t hbm_bytes)
      : device_(std::move(device)), budget_(budget), hbm_bytes_(hbm_bytes), slots_(hbm_bytes) {}

  const std::unique_ptr<Device> device_;
  MemoryBudget* const budget_;
  const uint64_t hbm_bytes_;
  std::byte* payloads_ = nullptr;
  uint64_t charged_bytes_ = 0;
  PayloadSlots slots_;
  std::unique_ptr<StagingPool> staging_;
  Mutex scratch_mutex_;
  std::byte* scratch_ EMBANK_GUARDED_BY(scratch_mutex_) = nullptr;
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_PAYLOAD_MEMORY_H_
