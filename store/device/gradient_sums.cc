#include "store/device/gradient_sums.h"

#include <cstring>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/types.h"

namespace embank {
namespace {

constexpr uint64_t kSumAlignment = 16;
// An eighth of a buffer is for positions: 8,192 of them in the smallest one.
constexpr uint64_t kPositionsPart = 8;

uint64_t StrideOf(uint32_t dim) { return RoundUp(dim * sizeof(float), kSumAlignment); }

uint64_t PositionsBytes(uint64_t buffer_bytes) { return buffer_bytes / kPositionsPart; }

size_t KeysIn(uint64_t buffer_bytes, uint64_t stride_bytes) {
  constexpr size_t kListBytes = 2 * sizeof(DeviceRow) + sizeof(uint64_t);
  // Sums are aligned behind an odd number of seeds.
  return (buffer_bytes - PositionsBytes(buffer_bytes) - sizeof(uint64_t)) /
         (kListBytes + stride_bytes);
}

}  // namespace

size_t GradientSums::KeysMax(const PayloadMemory& memory, uint32_t dim) {
  return KeysIn(StagingPool::BufferBytes(memory.hbm_bytes()), StrideOf(dim));
}

GradientSums::GradientSums(PayloadMemory* memory, uint32_t dim, float limit, DeviceArray gradients)
    : memory_(*memory),
      dim_(dim),
      limit_(limit),
      stride_bytes_(StrideOf(dim)),
      gradients_(gradients),
      buffer_(memory->staging().Take()),
      keys_max_(KeysIn(buffer_.size(), stride_bytes_)),
      keys_(reinterpret_cast<DeviceRow*>(buffer_.data())),
      rows_(keys_ + keys_max_),
      seeds_(reinterpret_cast<uint64_t*>(rows_ + keys_max_)),
      positions_(reinterpret_cast<uint32_t*>(seeds_ + keys_max_ + keys_max_ % 2),
                 PositionsBytes(buffer_.size()) / sizeof(uint32_t)),
      sums_(reinterpret_cast<std::byte*>(positions_.data()) + positions_.size_bytes()) {
  EMBANK_CHECK(keys_max_ > 0 && keys_max_ == KeysMax(memory_, dim));
  EMBANK_CHECK(sums_ + keys_max_ * stride_bytes_ <= buffer_.data() + buffer_.size());
}

GradientSums::~GradientSums() { memory_.staging().Return(buffer_, event_); }

std::span<uint32_t> GradientSums::Add(uint32_t count, uint64_t payload_offset_bytes,
                                      uint64_t rounding_seed) {
  EMBANK_CHECK(count > 0 && HasSpaceFor(count) && event_ == 0);
  const auto begin = static_cast<uint32_t>(used_positions_);
  keys_[size_] = {.offset_bytes = 0, .index = begin, .count = count};
  rows_[size_] = {.offset_bytes = payload_offset_bytes, .index = static_cast<uint32_t>(size_)};
  seeds_[size_] = rounding_seed;
  ++size_;
  used_positions_ += count;
  return positions_.subspan(begin, count);
}

void GradientSums::Clear() {
  if (event_ != 0) static_cast<void>(memory_.device().Wait(event_));
  event_ = 0;
  size_ = 0;
  used_positions_ = 0;
}

Status GradientSums::SumToHost() {
  memory_.device().SumRows(keys(), positions_.data(), dim_, limit_, gradients_,
                           {sums_, stride_bytes_});
  NoteEnqueued();
  return memory_.device().Wait(event_);
}

Status GradientSums::SumAndStep(const RowLayout& layout, const UpdateRule& rule) {
  EMBANK_CHECK(layout.dim == dim_);
  Device& device = memory_.device();
  memory_.UseScratch([&](std::byte* scratch) {
    const DeviceArray sums = {scratch, stride_bytes_};
    device.SumRows(keys(), positions_.data(), dim_, limit_, gradients_, sums);
    device.StepRows(memory_.payloads(), rows(), layout, rule, sums, seeds());
  });
  NoteEnqueued();
  return device.Wait(event_);
}

Status GradientSums::StepWith(const float* gradient, uint64_t payload_offset_bytes,
                              uint64_t rounding_seed, const RowLayout& layout,
                              const UpdateRule& rule) {
  EMBANK_CHECK(size_ == 0 && layout.dim == dim_);
  std::memcpy(sums_, gradient, dim_ * sizeof(float));
  rows_[0] = {.offset_bytes = payload_offset_bytes, .index = 0};
  seeds_[0] = rounding_seed;
  memory_.device().StepRows(memory_.payloads(), {rows_, 1}, layout, rule, {sums_, stride_bytes_},
                            seeds());
  NoteEnqueued();
  return memory_.device().Wait(event_);
}

}  // namespace embank
