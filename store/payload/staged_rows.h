// A chunk of rows on their way between host and device, in one staging buffer.
//
//   | list: one DeviceRow for each row | the rows' bytes |
#ifndef EMBANK_STORE_PAYLOAD_STAGED_ROWS_H_
#define EMBANK_STORE_PAYLOAD_STAGED_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "base/status.h"
#include "gpu/device.h"
#include "store/payload/payload_memory.h"

namespace embank {

// For one thread.
class StagedRows {
 public:
  // Takes a buffer for rows of so many bytes each; waits until one is free. The caller holds no
  // lock, and no second buffer. Behind each row there are zeros up to `padded_bytes`.
  StagedRows(PayloadMemory* memory, uint32_t row_bytes, uint32_t padded_bytes = 0);
  // Waits until the device does not use the buffer any more.
  ~StagedRows();
  StagedRows(const StagedRows&) = delete;
  StagedRows& operator=(const StagedRows&) = delete;

  size_t size() const { return size_; }
  bool is_full() const { return size_ == rows_max_; }
  size_t rows_max() const { return rows_max_; }
  // Adds a row whose payload is at this offset; returns the address of its bytes in the buffer,
  // which are aligned to 16.
  std::byte* Add(uint64_t offset_bytes);
  std::byte* Row(size_t i) const { return rows_ + i * stride_bytes_; }
  void Clear();

  // Enqueue work on all rows of the chunk. Wait or Clear comes before the next Add.
  void Gather(uint32_t part_offset_bytes);
  void Scatter(uint32_t part_offset_bytes);

  // ---- rows that are gradients: `dim` floats, and the seed of the rounding behind them ----

  // The size of such a row.
  static uint32_t StepBytes(uint32_t dim) { return SeedOffset(dim) + sizeof(uint64_t); }
  void SetRoundingSeed(size_t i, uint32_t dim, uint64_t seed) {
    std::memcpy(Row(i) + SeedOffset(dim), &seed, sizeof seed);
  }
  // Enqueues the steps.
  void Step(const RowLayout& layout, const UpdateRule& rule);
  // After Wait: whether the i-th step was made.
  bool IsStepped(size_t i) const { return list_[i].count != 0; }

  // Waits for the work that was enqueued. kUnavailable: the device is lost.
  Status Wait();

 private:
  // Seeds are aligned, as rows are.
  static uint32_t SeedOffset(uint32_t dim) { return (dim + dim % 2) * uint32_t{sizeof(float)}; }

  std::span<const DeviceRow> list() const { return {list_, size_}; }
  DeviceArray array() const { return {rows_, stride_bytes_}; }
  void NoteEnqueued();

  PayloadMemory& memory_;
  const uint32_t row_bytes_;
  const uint64_t stride_bytes_;
  const std::span<std::byte> buffer_;
  const size_t rows_max_;
  DeviceRow* const list_;
  std::byte* const rows_;
  size_t size_ = 0;
  bool is_enqueued_ = false;
  DeviceEvent event_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_PAYLOAD_STAGED_ROWS_H_
