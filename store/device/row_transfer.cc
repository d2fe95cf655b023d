#include "store/device/row_transfer.h"

#include <cstring>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/status_macros.h"

namespace embank {
namespace {

constexpr uint64_t kRowAlignment = 16;

size_t RowsIn(uint64_t buffer_bytes, uint64_t stride_bytes) {
  return buffer_bytes / (sizeof(DeviceRow) + stride_bytes);
}

}  // namespace

uint64_t RowTransfer::StrideBytes(uint32_t row_bytes) { return RoundUp(row_bytes, kRowAlignment); }

size_t RowTransfer::RowsMax(const PayloadMemory& memory, uint32_t row_bytes) {
  return RowsIn(StagingPool::BufferBytes(memory.hbm_bytes()), StrideBytes(row_bytes));
}

RowTransfer::RowTransfer(PayloadMemory* memory, uint32_t row_bytes)
    : memory_(*memory),
      row_bytes_(row_bytes),
      stride_bytes_(StrideBytes(row_bytes)),
      buffer_(memory->staging().Take()),
      rows_max_(RowsIn(buffer_.size(), stride_bytes_)),
      list_(reinterpret_cast<DeviceRow*>(buffer_.data())),
      rows_(buffer_.data() + rows_max_ * sizeof(DeviceRow)) {
  static_assert(sizeof(DeviceRow) % kRowAlignment == 0);
  EMBANK_CHECK(rows_max_ > 0 && rows_max_ == RowsMax(memory_, row_bytes));
}

RowTransfer::~RowTransfer() { memory_.staging().Return(buffer_, event_); }

void RowTransfer::Add(size_t place, uint32_t index) {
  EMBANK_CHECK(!is_full() && place < rows_max_ && event_ == 0);
  list_[size_++] = {.offset_bytes = place * stride_bytes_, .index = index};
}

void RowTransfer::AddPayload(uint64_t payload_offset_bytes, uint32_t index) {
  EMBANK_CHECK(!is_full() && event_ == 0);
  ++payload_count_;
  list_[rows_max_ - payload_count_] = {.offset_bytes = payload_offset_bytes, .index = index};
}

void RowTransfer::SendTo(DeviceArray callers) {
  memory_.device().Gather({rows_, list()}, {memory_.payloads(), payload_list()}, {0, row_bytes_},
                          callers);
  NoteEnqueued();
}

Status RowTransfer::FetchFrom(DeviceArray callers) {
  EMBANK_CHECK(payload_count_ == 0);
  Device& device = memory_.device();
  device.Scatter(rows_, list(), {0, row_bytes_}, callers);
  NoteEnqueued();
  return device.Wait(event_);
}

void RowTransfer::WritePayloads(DeviceArray callers, std::span<const std::byte> rest) {
  EMBANK_CHECK(size_ == 0 && rows_ + rest.size() <= buffer_.data() + buffer_.size());
  Device& device = memory_.device();
  device.Scatter(memory_.payloads(), payload_list(), {0, row_bytes_}, callers);
  if (!rest.empty()) {
    std::memcpy(rows_, rest.data(), rest.size());
    // All rows get the same bytes: those of a list at distance 0.
    device.Scatter(memory_.payloads(), payload_list(),
                   {row_bytes_, static_cast<uint32_t>(rest.size())}, {rows_, 0});
  }
  NoteEnqueued();
}

void SendRows(PayloadMemory* memory, ConstRowSpan from, uint32_t row_bytes, uint64_t count,
              IndexOf index_of, DeviceArray callers) {
  for (uint64_t done = 0; done < count;) {
    RowTransfer transfer(memory, row_bytes);
    for (size_t place = 0; done < count && !transfer.is_full(); ++place, ++done) {
      std::memcpy(transfer.rows().Row(place), from.Row(done), row_bytes);
      transfer.Add(place, index_of(done));
    }
    transfer.SendTo(callers);
  }
}

Status FetchRows(PayloadMemory* memory, DeviceArray callers, uint32_t row_bytes, uint64_t count,
                 IndexOf index_of, RowSpan to) {
  for (uint64_t done = 0; done < count;) {
    RowTransfer transfer(memory, row_bytes);
    const uint64_t begin = done;
    for (size_t place = 0; done < count && !transfer.is_full(); ++place, ++done) {
      transfer.Add(place, index_of(done));
    }
    EMBANK_RETURN_IF_ERROR(transfer.FetchFrom(callers));
    for (uint64_t i = begin; i < done; ++i) {
      std::memcpy(to.Row(i), transfer.rows().Row(i - begin), row_bytes);
    }
  }
  return OkStatus();
}

}  // namespace embank
