#include "store/payload/staged_rows.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

constexpr uint64_t kRowAlignment = 16;

}  // namespace

StagedRows::StagedRows(PayloadMemory* memory, uint32_t row_bytes, uint32_t padded_bytes)
    : memory_(*memory),
      row_bytes_(row_bytes),
      stride_bytes_(RoundUp(std::max(row_bytes, padded_bytes), kRowAlignment)),
      buffer_(memory->staging().Take()),
      rows_max_(buffer_.size() / (sizeof(DeviceRow) + stride_bytes_)),
      list_(reinterpret_cast<DeviceRow*>(buffer_.data())),
      rows_(buffer_.data() + rows_max_ * sizeof(DeviceRow)) {
  EMBANK_CHECK(rows_max_ > 0);
}

StagedRows::~StagedRows() {
  static_cast<void>(Wait());  // the owner has asked, or has given up
  memory_.staging().Return(buffer_);
}

std::byte* StagedRows::Add(uint64_t offset_bytes) {
  EMBANK_CHECK(!is_enqueued_ && !is_full());
  list_[size_] = {.offset_bytes = offset_bytes, .index = static_cast<uint32_t>(size_)};
  std::byte* const row = Row(size_++);
  std::memset(row + row_bytes_, 0, stride_bytes_ - row_bytes_);
  return row;
}

void StagedRows::Clear() {
  static_cast<void>(Wait());
  size_ = 0;
}

void StagedRows::Gather(uint32_t part_offset_bytes) {
  memory_.device().Gather({memory_.payloads(), list()}, {}, {part_offset_bytes, row_bytes_},
                          array());
  NoteEnqueued();
}

void StagedRows::Scatter(uint32_t part_offset_bytes) {
  memory_.device().Scatter(memory_.payloads(), list(), {part_offset_bytes, row_bytes_}, array());
  NoteEnqueued();
}

void StagedRows::Step(const RowLayout& layout, const UpdateRule& rule) {
  EMBANK_CHECK(row_bytes_ == StepBytes(layout.dim));
  memory_.device().StepRows(memory_.payloads(), {list_, size_}, layout, rule, array(),
                            {rows_ + SeedOffset(layout.dim), stride_bytes_});
  NoteEnqueued();
}

void StagedRows::NoteEnqueued() {
  EMBANK_CHECK(size_ > 0);
  event_ = memory_.device().Record();
  is_enqueued_ = true;
}

Status StagedRows::Wait() {
  if (!is_enqueued_) return OkStatus();
  is_enqueued_ = false;
  if (Seeded(SeededBug::kNoWaitForDevice)) return OkStatus();
  return memory_.device().Wait(event_);
}

}  // namespace embank
