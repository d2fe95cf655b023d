// Sums of the gradients of some keys, made by the device in one staging buffer.
//
//   | keys: positions of each | rows: payload of each | seeds | positions | sums, for the host |
#ifndef EMBANK_STORE_DEVICE_GRADIENT_SUMS_H_
#define EMBANK_STORE_DEVICE_GRADIENT_SUMS_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "gpu/device.h"
#include "store/payload/payload_memory.h"

namespace embank {

// For one thread. The work that it enqueues is on its way when it ends.
class GradientSums {
 public:
  // Takes a staging buffer; waits until one is free. The caller holds no lock, and no second
  // buffer. `gradients` is in device memory, with dim floats in each row; each of them is clipped
  // to `limit` (0: is not).
  GradientSums(PayloadMemory* memory, uint32_t dim, float limit, DeviceArray gradients);
  // Gives the buffer back; its next user waits for the work.
  ~GradientSums();
  GradientSums(const GradientSums&) = delete;
  GradientSums& operator=(const GradientSums&) = delete;

  // The keys that one buffer takes.
  static size_t KeysMax(const PayloadMemory& memory, uint32_t dim);

  size_t size() const { return size_; }
  // Whether there is space for one more key with so many positions.
  bool HasSpaceFor(uint64_t count) const {
    return size_ < keys_max_ && count <= positions_.size() - used_positions_;
  }
  // Adds a key with `count` positions, at least one. Returns the space for their numbers. Payload
  // and seed of the rounding are those of a row that steps.
  std::span<uint32_t> Add(uint32_t count, uint64_t payload_offset_bytes = 0,
                          uint64_t rounding_seed = 0);
  // Removes all keys, for others. Waits for the device.
  void Clear();

  // Sums for the host, and waits. kUnavailable: the device is lost.
  Status SumToHost();
  // The sum of the i-th key, until Clear.
  const float* Sum(size_t i) const {
    return reinterpret_cast<const float*>(sums_ + i * stride_bytes_);
  }
  uint64_t stride_bytes() const { return stride_bytes_; }

  // Sums and steps all keys, whose rows are in device memory, and waits. kUnavailable: the device
  // is lost.
  Status SumAndStep(const RowLayout& layout, const UpdateRule& rule);
  // Steps one row with a gradient of the host, and waits; then it is row 0. There are no keys.
  // kUnavailable: the device is lost.
  Status StepWith(const float* gradient, uint64_t payload_offset_bytes, uint64_t rounding_seed,
                  const RowLayout& layout, const UpdateRule& rule);
  // After these: whether the i-th step was made.
  bool IsStepped(size_t i) const { return rows_[i].count != 0; }

 private:
  std::span<const DeviceRow> keys() const { return {keys_, size_}; }
  std::span<DeviceRow> rows() const { return {rows_, size_}; }
  DeviceArray seeds() const { return {reinterpret_cast<std::byte*>(seeds_), sizeof(uint64_t)}; }
  void NoteEnqueued() { event_ = memory_.device().Record(); }

  PayloadMemory& memory_;
  const uint32_t dim_;
  const float limit_;
  const uint64_t stride_bytes_;
  const DeviceArray gradients_;
  const std::span<std::byte> buffer_;
  const size_t keys_max_;
  DeviceRow* const keys_;
  DeviceRow* const rows_;
  uint64_t* const seeds_;
  const std::span<uint32_t> positions_;
  std::byte* const sums_;
  size_t size_ = 0;
  size_t used_positions_ = 0;
  DeviceEvent event_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_GRADIENT_SUMS_H_
