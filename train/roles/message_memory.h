// The memory of messages: zero bytes are copied between what a role writes and what travels.
#ifndef EMBANK_TRAIN_ROLES_MESSAGE_MEMORY_H_
#define EMBANK_TRAIN_ROLES_MESSAGE_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"

namespace embank {

// Messages and their arrays begin at multiples of it: a line of the cache, and whole units of an
// exchange.
inline constexpr uint64_t kMessageAlignment = 64;

class MessageMemory {
 public:
  // Makes memory of `bytes`, whose contents are not defined. From kHugePageBytes on it is pages of
  // the source, huge ones where the machine has them; where the source has none, and below, it is
  // of the heap. The source outlives it. Throws std::bad_alloc.
  explicit MessageMemory(uint64_t bytes, MemorySource* source = SystemMemorySource());

  std::byte* data() const { return data_; }
  bool is_on_heap() const { return heap_ != nullptr; }

 private:
  struct Free {
    void operator()(std::byte* memory) const {
      ::operator delete (memory, std::align_val_t{kMessageAlignment});
    }
  };

  MemoryBudget budget_{0};
  AlignedBuffer pages_;
  std::unique_ptr<std::byte, Free> heap_;
  std::byte* data_ = nullptr;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_ROLES_MESSAGE_MEMORY_H_
