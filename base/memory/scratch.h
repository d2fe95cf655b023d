// Uninitialised memory of one call.
#ifndef EMBANK_BASE_MEMORY_SCRATCH_H_
#define EMBANK_BASE_MEMORY_SCRATCH_H_

#include <cstddef>
#include <cstdlib>
#include <span>
#include <type_traits>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/status.h"

namespace embank {

// Uninitialised scratch of one call: `inline_count` values without an allocation, more from malloc.
template <typename T, size_t inline_count>
class Scratch {
 public:
  static_assert(std::is_trivial_v<T>);
  Scratch() = default;
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  ~Scratch() {
    // Most scratch is inline: a small call would call free ten times for nothing.
    if (heap_ != nullptr) std::free(heap_);
  }

  // Makes space for `count` values, once. kResourceExhausted: out of memory.
  Status Allocate(size_t count) {
    EMBANK_CHECK(heap_ == nullptr);
    if (count > inline_count) {
      heap_ = static_cast<T*>(std::malloc(count * sizeof(T)));
      if (heap_ == nullptr) return NoMemory();
    }
    count_ = count;
    return OkStatus();
  }
  std::span<T> values() { return {begin(), count_}; }
  std::span<const T> values() const { return {const_cast<Scratch*>(this)->begin(), count_}; }

 private:
  T* begin() { return heap_ != nullptr ? heap_ : inline_; }

  T* heap_ = nullptr;
  size_t count_ = 0;
  T inline_[inline_count];
};

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_SCRATCH_H_
