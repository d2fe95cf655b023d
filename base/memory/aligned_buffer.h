// Owned memory in whole pages, charged to a budget.
#ifndef EMBANK_BASE_MEMORY_ALIGNED_BUFFER_H_
#define EMBANK_BASE_MEMORY_ALIGNED_BUFFER_H_

#include <span>
#include <type_traits>
#include <utility>

#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_or.h"

namespace embank {

// Zeroed memory of whole pages (huge ones from 2 MiB on), given back on destruction. Move-only.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept { *this = std::move(other); }
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept;
  ~AlignedBuffer() { Reset(); }

  // Makes a buffer of at least `bytes` (> 0), rounded up to pages; source and budget must outlive
  // it. kResourceExhausted: the budget or the machine has no memory.
  static StatusOr<AlignedBuffer> Create(MemorySource* source, MemoryBudget* budget, uint64_t bytes);
  // Returns the bytes that Create(bytes) charges.
  static constexpr uint64_t ChargedBytes(uint64_t bytes) {
    return RoundUp(bytes, bytes < kHugePageBytes ? kSmallPageBytes : kHugePageBytes);
  }

  std::byte* data() const { return data_; }
  uint64_t size_bytes() const { return size_bytes_; }
  template <typename T>
  std::span<T> As() const {
    static_assert(std::is_trivial_v<T>);
    return {reinterpret_cast<T*>(data_), size_bytes_ / sizeof(T)};
  }

 private:
  void Reset();

  MemorySource* source_ = nullptr;
  MemoryBudget* budget_ = nullptr;
  std::byte* data_ = nullptr;
  uint64_t size_bytes_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_ALIGNED_BUFFER_H_
