// Where the store's memory comes from, and the budget it must stay within.
#ifndef EMBANK_BASE_MEMORY_MEMORY_H_
#define EMBANK_BASE_MEMORY_MEMORY_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/status.h"
#include "base/status_or.h"

namespace embank {

inline constexpr uint64_t kSmallPageBytes = 4096;
inline constexpr uint64_t kHugePageBytes = uint64_t{2} << 20;

constexpr uint64_t RoundUp(uint64_t value, uint64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

constexpr uint64_t RoundDown(uint64_t value, uint64_t multiple) {
  return value / multiple * multiple;
}

// Refusals here and in what is built on it happen in the middle of batches, where an allocation
// that fails would undo what the batch has promised: they are statuses without a message, which
// allocate nothing. Who answers a caller says what was refused.
inline Status NoMemory() { return Status(StatusCode::kResourceExhausted, ""); }

// Whether this machine has no transparent huge pages: what asks for them works, slower.
bool HugePagesOff();

// A hard limit in bytes. Thread-safe.
class MemoryBudget {
 public:
  // limit_bytes == 0: no limit.
  explicit MemoryBudget(uint64_t limit_bytes)
      : limit_bytes_(limit_bytes == 0 ? kNoLimit : limit_bytes) {}
  // A part of another budget, of which it has nothing until Extend.
  MemoryBudget() : limit_bytes_(0) {}

  // Takes `bytes`, or nothing: kResourceExhausted when they would leave less than `leaving` to the
  // limit.
  Status Charge(uint64_t bytes, uint64_t leaving = 0);
  void Release(uint64_t bytes);

  // The limit is so many bytes higher from now on.
  void Extend(uint64_t bytes) { limit_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // Takes the limit down by as much of `bytes` as nothing is charged for; how much.
  uint64_t Shrink(uint64_t bytes);

  bool has_limit() const { return limit_bytes_.load(std::memory_order_relaxed) != kNoLimit; }
  // 0: there is none.
  uint64_t limit_bytes() const {
    return has_limit() ? limit_bytes_.load(std::memory_order_relaxed) : 0;
  }
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t free_bytes() const {
    const uint64_t used = used_bytes();
    return limit_bytes_.load(std::memory_order_relaxed) - used;
  }

 private:
  static constexpr uint64_t kNoLimit = ~uint64_t{0};

  std::atomic<uint64_t> limit_bytes_;
  std::atomic<uint64_t> used_bytes_{0};
};

// Pages from the operating system, injected so that tests can make any call fail. Thread-safe.
// Every call can return kResourceExhausted, and has then changed nothing.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // Zeroed memory, `bytes` a multiple of kSmallPageBytes. From kHugePageBytes on it is aligned to
  // huge pages and asks for them.
  virtual StatusOr<std::byte*> Map(uint64_t bytes) = 0;
  // Addresses without memory, aligned to huge pages; `bytes` is a multiple of kHugePageBytes.
  virtual StatusOr<std::byte*> Reserve(uint64_t bytes) = 0;
  // Puts zeroed memory behind a reserved part: whole huge pages.
  virtual Status Commit(std::byte* address, uint64_t bytes) = 0;
  // Gives the memory of a committed part back and keeps its addresses.
  virtual void Decommit(std::byte* address, uint64_t bytes) = 0;
  // Ends what Map or Reserve began.
  virtual void Unmap(std::byte* address, uint64_t bytes) = 0;
};

// mmap and madvise. One for the process: it has no state.
MemorySource* SystemMemorySource();

// Bytes of memory of this machine.
uint64_t PhysicalMemoryBytes();

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_MEMORY_H_
