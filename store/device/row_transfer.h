// A piece of a batch on its way between staging buffer, device memory and a caller's array there.
//
//   | list: rows from the host ->  <- rows in device memory | the rows' bytes |
//
// A kernel reads and writes the rows in the buffer, over the link.
#ifndef EMBANK_STORE_DEVICE_ROW_TRANSFER_H_
#define EMBANK_STORE_DEVICE_ROW_TRANSFER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/types.h"
#include "gpu/device.h"
#include "store/payload/payload_memory.h"

namespace embank {

// For one thread. The work that it enqueues is on its way when it ends.
class RowTransfer {
 public:
  // Takes a staging buffer for rows of so many bytes each; waits until one is free. The caller
  // holds no lock, and no second buffer.
  RowTransfer(PayloadMemory* memory, uint32_t row_bytes);
  // Gives the buffer back; its next user waits for the work.
  ~RowTransfer();
  RowTransfer(const RowTransfer&) = delete;
  RowTransfer& operator=(const RowTransfer&) = delete;

  // The rows that such a transfer takes, and the distance between two of them in its buffer.
  static size_t RowsMax(const PayloadMemory& memory, uint32_t row_bytes);
  static uint64_t StrideBytes(uint32_t row_bytes);

  bool is_full() const { return size_ + payload_count_ == rows_max_; }
  // The places of rows from the host, one of StrideBytes each.
  RowSpan rows() const { return {rows_, stride_bytes_}; }
  // Adds the row at a place; it belongs to the row `index` of the caller's array. Each place is
  // added once at most.
  void Add(size_t place, uint32_t index);
  // Adds a row in device memory whose payload is at this offset.
  void AddPayload(uint64_t payload_offset_bytes, uint32_t index);

  // Enqueues the copy of all added rows to the caller's array.
  void SendTo(DeviceArray callers);
  // Copies the rows of Add from the caller's array, and waits for them. kUnavailable: the device is
  // lost.
  Status FetchFrom(DeviceArray callers);
  // Enqueues the copy of the caller's rows to the vectors of the rows of AddPayload, and that of
  // `rest` to all that is behind the vectors. There are no rows of Add.
  void WritePayloads(DeviceArray callers, std::span<const std::byte> rest);

 private:
  std::span<const DeviceRow> list() const { return {list_, size_}; }
  std::span<const DeviceRow> payload_list() const {
    return {list_ + rows_max_ - payload_count_, payload_count_};
  }
  void NoteEnqueued() { event_ = memory_.device().Record(); }

  PayloadMemory& memory_;
  const uint32_t row_bytes_;
  const uint64_t stride_bytes_;
  const std::span<std::byte> buffer_;
  const size_t rows_max_;
  DeviceRow* const list_;
  std::byte* const rows_;
  size_t size_ = 0;
  size_t payload_count_ = 0;
  DeviceEvent event_ = 0;
};

// Rows in host memory that belong to rows of the caller's array: the i-th of `count` to the row
// index_of(i), which is asked for in order.
using IndexOf = FunctionRef<uint32_t(uint64_t)>;

// Enqueues the copy of rows of host memory to the caller's array, through staging buffers. The
// caller holds no lock, no buffer and no gate.
void SendRows(PayloadMemory* memory, ConstRowSpan from, uint32_t row_bytes, uint64_t count,
              IndexOf index_of, DeviceArray callers);
// Copies rows of the caller's array to host memory, and waits for them. kUnavailable: the device is
// lost.
Status FetchRows(PayloadMemory* memory, DeviceArray callers, uint32_t row_bytes, uint64_t count,
                 IndexOf index_of, RowSpan to);

}  // namespace embank

#endif  // EMBANK_STORE_DEVICE_ROW_TRANSFER_H_
