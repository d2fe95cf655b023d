// An allocator for the peers' maps: large arrays are on huge pages, like Embank's, and every byte
// is counted.
#ifndef EMBANK_BENCH_HUGE_PAGE_ALLOCATOR_H_
#define EMBANK_BENCH_HUGE_PAGE_ALLOCATOR_H_

#include <cstddef>
#include <new>

#include "base/check.h"
#include "base/memory/memory.h"

namespace embank {

// A standard allocator. Copies share the counter, which must outlive them. Thread-safe.
template <typename T>
class HugePageAllocator {
 public:
  using value_type = T;

  explicit HugePageAllocator(MemoryBudget* counter) : counter_(counter) {}
  template <typename U>
  HugePageAllocator(const HugePageAllocator<U>& other) : counter_(other.counter()) {}

  // Space for `count` values. A benchmark that has no memory left stops here.
  T* allocate(size_t count) {
    const size_t bytes = ChargedBytes(count);
    EMBANK_CHECK(counter_->Charge(bytes).ok());
    if (bytes < kHugePageBytes) {
      return static_cast<T*>(::operator new (bytes, std::align_val_t{alignof(T)}));
    }
    StatusOr<std::byte*> memory = SystemMemorySource()->Map(bytes);
    EMBANK_CHECK(memory.ok());
    return reinterpret_cast<T*>(*memory);
  }

  // Frees memory that allocate(count) returned.
  void deallocate(T* memory, size_t count) {
    const size_t bytes = ChargedBytes(count);
    counter_->Release(bytes);
    if (bytes < kHugePageBytes) {
      ::operator delete (memory, std::align_val_t{alignof(T)});
    } else {
      SystemMemorySource()->Unmap(reinterpret_cast<std::byte*>(memory), bytes);
    }
  }

  // The counter of bytes.
  MemoryBudget* counter() const { return counter_; }

  template <typename U>
  bool operator==(const HugePageAllocator<U>& other) const {
    return counter_ == other.counter();
  }

 private:
  static size_t ChargedBytes(size_t count) {
    const size_t bytes = count * sizeof(T);
    return bytes < kHugePageBytes ? bytes : RoundUp(bytes, kHugePageBytes);
  }

  MemoryBudget* counter_;
};

}  // namespace embank

#endif  // EMBANK_BENCH_HUGE_PAGE_ALLOCATOR_H_
