// Sums of the gradients of some keys, made by the device in one staging buffer.
//
//   | keys: positions of each | rows: payload of each | positions | sums, for the host |
#ifndef EMBANK_STORE_DEVICE_GRADIENT_SUMS_H_
#define EMBANK_STORE_DEVICE_GRADIENT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "gpu/device.h"
#include "store/hot/hot_memory.h"

namespace embank {

// For one thread. The work that it enqueues is on its way when it ends.
class GradientSums {
 public:
  // Takes a staging buffer; waits until one is free. The caller holds no lock, and no second
  // buffer. `gradients` is in device memory, with dim floats in each row.
  GradientSums(HotMemory* memory, uint32_t dim, DeviceArray gradients);
  // Gives the buffer back; its next user waits for the work.
  ~GradientSums();
  GradientSums(const GradientSums&) = delete;
  GradientSums& operator=(const GradientSums&) = delete;

  // The keys that one buffer takes.
  static size_t KeysMax(const HotMemory& memory, uint32_t dim);

  size_t size() const { return size_; }
  // Whether there is space for one more key with so many positions.
  bool HasSpaceFor(uint64_t count) const {
    return size_ < keys_max_ && count <= positions_.size() - used_positions_;
  }
  // Adds a key with `count` positions, at least one. Returns the space for their numbers.
  std::span<uint32_t> Add(uint32_t count, uint64_t payload_offset_bytes = 0);
  // Removes all keys, for others. Waits for the device.
  void Clear();

  // Sums for the host, and waits. kUnavailable: the device is lost.
  Status SumToHost();
  // The sum of the i-th key, until Clear.
  const float* Sum(size_t i) const {
    return reinterpret_cast<const float*>(sums_ + i * stride_bytes_);
  }
  uint64_t stride_bytes() const { return stride_bytes_; }

  // Enqueues sums and steps of all keys, whose rows are in device memory.
  void SumAndStep(const RowLayout& layout, const UpdateRule& rule);
  // Enqueues a step of one row with a gradient of the host. There are no keys.
  void StepWith(const float* gradient, uint64_t payload_offset_bytes, const RowLayout& layout,
                const UpdateRule& rule);

 private:
  std::span<const DeviceRow> keys() const { return {keys_, size_}; }
  std::span<const DeviceRow> rows() const { return {rows_, size_}; }
  void NoteEnqueued() { event_ = memory_.device().Record(); }

  HotMemory& memory_;
  const uint32_t dim_;
  const uint64_t stride_bytes_;
  const DeviceArray gradients_;
  const std::span<std::byte> buffer_;
  const size_t keys_max_;
  DeviceRow* const keys_;
  DeviceRow* const rows_;
  const std::span<uint32_t> positions_;
  std::byte* const sums_;
  size_t size_ = 0;
  size_t used_positions_ = 0;
  DeviceEvent event_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_GRADIENT_SUMS_H_
