// Memory of a device that a check of it uses, freed at the end of a scope.
#ifndef EMBANK_TOOLS_GPU_MEMORY_H_
#define EMBANK_TOOLS_GPU_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/check.h"
#include "gpu/device.h"

namespace embank {

// The program ends where a device has too little memory, or is lost.
class GpuMemory {
 public:
  explicit GpuMemory(Device* device) : device_(device) {}
  ~GpuMemory() {
    for (std::byte* const memory : device_memory_) device_->Free(memory);
    for (std::byte* const memory : pinned_) device_->FreePinned(memory);
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  Device* device() const { return device_; }
  void Wait() { EMBANK_CHECK(device_->Wait(device_->Record()).ok()); }

  std::byte* OnDevice(uint64_t bytes) {
    device_memory_.push_back(device_->Allocate(bytes).value());
    return device_memory_.back();
  }
  std::byte* Pinned(uint64_t bytes) {
    pinned_.push_back(device_->AllocatePinned(bytes).value());
    return pinned_.back();
  }
  // Puts bytes into device memory, at an offset from its alignment.
  std::byte* Upload(std::span<const std::byte> bytes, uint64_t offset_bytes = 0) {
    std::byte* const memory = OnDevice(bytes.size() + offset_bytes) + offset_bytes;
    device_->Copy(memory, bytes.data(), bytes.size());
    Wait();
    return memory;
  }
  // Puts bytes into pinned memory, at an offset from its alignment.
  std::byte* Pin(std::span<const std::byte> bytes, uint64_t offset_bytes = 0) {
    std::byte* const memory = Pinned(bytes.size() + offset_bytes) + offset_bytes;
    std::ranges::copy(bytes, memory);
    return memory;
  }
  template <typename T>
  std::span<T> PinList(const std::vector<T>& list) {
    return {reinterpret_cast<T*>(Pin(std::as_bytes(std::span(list)))), list.size()};
  }
  std::vector<std::byte> Download(const std::byte* memory, uint64_t bytes) {
    std::vector<std::byte> copy(bytes);
    device_->Copy(copy.data(), memory, bytes);
    Wait();
    return copy;
  }

 private:
  Device* const device_;
  std::vector<std::byte*> device_memory_;
  std::vector<std::byte*> pinned_;
};

}  // namespace embank

#endif  // EMBANK_TOOLS_GPU_MEMORY_H_
