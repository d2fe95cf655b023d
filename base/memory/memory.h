// The source of the store's memory, and the budget that limits it.
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

// Refusals of memory happen in the middle of batches, where a failed allocation would break the
// batch's promise. So they are statuses without a message, which allocate nothing. The code that
// answers the caller adds the message.
inline Status NoMemory() { return Status(StatusCode::kResourceExhausted, ""); }

// Whether this machine has no transparent huge pages. Memory that wants them works without them,
// but slower.
bool HugePagesOff();

// A hard limit in bytes. Thread-safe.
class MemoryBudget {
 public:
  // limit_bytes == 0: no limit.
  explicit MemoryBudget(uint64_t limit_bytes)
      : limit_bytes_(limit_bytes == 0 ? kNoLimit : limit_bytes) {}
  // A part of another budget, with a limit of 0 until Extend.
  MemoryBudget() : limit_bytes_(0) {}

  // Charges `bytes` or nothing. kResourceExhausted: less than `leaving` bytes of the limit would be
  // left.
  Status Charge(uint64_t bytes, uint64_t leaving = 0);
  void Release(uint64_t bytes);

  // Raises the limit by so many bytes.
  void Extend(uint64_t bytes) { limit_bytes_.fetch_add(bytes, std::memory_order_relaxed); }
  // Lowers the limit by at most `bytes`, as far as nothing is charged; returns by how much.
  uint64_t Shrink(uint64_t bytes);

  bool has_limit() const { return limit_bytes_.load(std::memory_order_relaxed) != kNoLimit; }
  // The limit; 0: there is none.
  uint64_t limit_bytes() const {
    return has_limit() ? limit_bytes_.load(std::memory_order_relaxed) : 0;
  }
  uint64_t used_bytes() const { return used_bytes_.load(std::memory_order_relaxed); }
  uint64_t free_bytes() const {
    const uint64_t used = used_bytes();
    return limit_bytes_.load(std::memory_order_relaxed) - used;
  }

  // Whether refusals are noted. An open that fails reports the last one; later they are routine.
  void NoteRefusals(bool notes) { notes_refusals_.store(notes, std::memory_order_relaxed); }
  // The bytes of the last noted refusal, with those that it would have left free, and the bytes
  // that were used then. 0: there is none.
  uint64_t refused_bytes() const { return refused_bytes_.load(std::memory_order_relaxed); }
  uint64_t used_when_refused() const { return used_when_refused_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint64_t kNoLimit = ~uint64_t{0};

  std::atomic<uint64_t> limit_bytes_;
  std::atomic<uint64_t> used_bytes_{0};
  std::atomic<bool> notes_refusals_{false};
  std::atomic<uint64_t> refused_bytes_{0};
  std::atomic<uint64_t> used_when_refused_{0};
};

// Pages from the operating system, injected so that tests can make any call fail. Thread-safe.
// Every call can return kResourceExhausted, and has then changed nothing.
class MemorySource {
 public:
  virtual ~MemorySource() = default;

  // Maps zeroed memory; `bytes` is a multiple of kSmallPageBytes. From kHugePageBytes on, it is
  // aligned to huge pages and advised to use them.
  virtual StatusOr<std::byte*> Map(uint64_t bytes) = 0;
  // Reserves addresses without memory, aligned to huge pages; `bytes` is a multiple of
  // kHugePageBytes.
  virtual StatusOr<std::byte*> Reserve(uint64_t bytes) = 0;
  // Puts zeroed memory behind a reserved part: whole huge pages.
  virtual Status Commit(std::byte* address, uint64_t bytes) = 0;
  // Releases the memory of a committed part and keeps its addresses.
  virtual void Decommit(std::byte* address, uint64_t bytes) = 0;
  // Releases memory of Map, or addresses of Reserve.
  virtual void Unmap(std::byte* address, uint64_t bytes) = 0;
};

// The system's memory, by mmap and madvise. It has no state; the process has one.
MemorySource* SystemMemorySource();

// Bytes of memory of this machine.
uint64_t PhysicalMemoryBytes();

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_MEMORY_H_
