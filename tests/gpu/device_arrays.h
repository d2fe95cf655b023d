// Device and pinned memory of a test, which is freed at its end.
#ifndef EMBANK_TESTS_GPU_DEVICE_ARRAYS_H_
#define EMBANK_TESTS_GPU_DEVICE_ARRAYS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "gpu/device.h"

namespace embank::test {

class DeviceArrays {
 public:
  explicit DeviceArrays(Device* device) : device_(device) {}
  ~DeviceArrays() {
    for (std::byte* const memory : memory_) device_->Free(memory);
    for (std::byte* const memory : pinned_) device_->FreePinned(memory);
  }
  DeviceArrays(const DeviceArrays&) = delete;
  DeviceArrays& operator=(const DeviceArrays&) = delete;

  std::byte* Memory(uint64_t bytes) {
    memory_.push_back(device_->Allocate(bytes).value());
    return memory_.back();
  }
  // Device memory with these bytes, at an offset from its alignment.
  std::byte* Upload(std::span<const std::byte> bytes, uint64_t offset_bytes = 0) {
    std::byte* const memory = Memory(bytes.size() + offset_bytes) + offset_bytes;
    device_->Copy(memory, bytes.data(), bytes.size());
    (void)device_->Wait(device_->Record());
    return memory;
  }
  std::vector<std::byte> Download(const std::byte* memory, uint64_t bytes) {
    std::vector<std::byte> copy(bytes);
    device_->Copy(copy.data(), memory, bytes);
    (void)device_->Wait(device_->Record());
    return copy;
  }
  template <typename T>
  std::span<T> Pinned(size_t count) {
    pinned_.push_back(device_->AllocatePinned(count * sizeof(T)).value());
    return {reinterpret_cast<T*>(pinned_.back()), count};
  }
  template <typename T>
  std::span<T> PinnedCopy(const std::vector<T>& values) {
    const std::span<T> copy = Pinned<T>(values.size());
    std::copy(values.begin(), values.end(), copy.begin());
    return copy;
  }

 private:
  Device* const device_;
  std::vector<std::byte*> memory_;
  std::vector<std::byte*> pinned_;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_GPU_DEVICE_ARRAYS_H_
