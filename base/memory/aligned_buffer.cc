#include "base/memory/aligned_buffer.h"

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

StatusOr<AlignedBuffer> AlignedBuffer::Create(MemorySource* source, MemoryBudget* budget,
                                              uint64_t bytes) {
  EMBANK_CHECK(bytes > 0);
  const uint64_t charged_bytes = ChargedBytes(bytes);
  EMBANK_RETURN_IF_ERROR(budget->Charge(charged_bytes));
  StatusOr<std::byte*> data = source->Map(charged_bytes);
  if (!data.ok()) {
    budget->Release(charged_bytes);
    return data.status();
  }
  EMBANK_CHECK(reinterpret_cast<uintptr_t>(*data) % kSmallPageBytes == 0);
  AlignedBuffer buffer;
  buffer.source_ = source;
  buffer.budget_ = budget;
  buffer.data_ = *data;
  buffer.size_bytes_ = charged_bytes;
  return buffer;
}

AlignedBuffer& AlignedBuffer::operator=(AlignedBuffer&& other) noexcept {
  if (this == &other) return *this;
  Reset();
  source_ = other.source_;
  budget_ = other.budget_;
  data_ = std::exchange(other.data_, nullptr);
  size_bytes_ = std::exchange(other.size_bytes_, 0);
  return *this;
}

void AlignedBuffer::Reset() {
  if (data_ == nullptr) return;
  source_->Unmap(data_, size_bytes_);
  budget_->Release(size_bytes_);
  data_ = nullptr;
  size_bytes_ = 0;
}

}  // namespace embank
