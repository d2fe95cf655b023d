// The memory of a twin: device memory behind tokens, and pinned memory. A token is the real address
// with its unused high bits changed: token + offset works, and its use by host code faults.
//
//   real    0000 7f12 3456 7000
//   token   5a5a 7f12 3456 7000
#ifndef EMBANK_GPU_TWIN_MEMORY_H_
#define EMBANK_GPU_TWIN_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"

namespace embank {

// The memory from an address to the end of its allocation, as host code sees it.
struct TwinRange {
  std::byte* begin;
  uint64_t bytes;
  bool is_device;

  // Returns the address of a part of it. A part that is not inside is a defect of the caller's.
  std::byte* At(uint64_t offset_bytes, uint64_t part_bytes) const {
    EMBANK_CHECK(offset_bytes <= bytes && part_bytes <= bytes - offset_bytes);
    return begin + offset_bytes;
  }
};

enum class TwinMemoryKind { kDevice, kPinned };

// Thread-safe.
class TwinMemory {
 public:
  // limit_bytes is that of device memory; 0: the machine's. The source outlives this.
  TwinMemory(MemorySource* source, uint64_t limit_bytes);
  ~TwinMemory();
  TwinMemory(const TwinMemory&) = delete;
  TwinMemory& operator=(const TwinMemory&) = delete;

  // kResourceExhausted: as Device::Allocate.
  StatusOr<std::byte*> Allocate(TwinMemoryKind kind, uint64_t bytes);
  // The address is from Allocate with the same kind, and nobody uses the memory any more.
  void Free(TwinMemoryKind kind, std::byte* address);

  // Whether all these bytes are inside one allocation of device memory.
  bool Owns(const void* address, uint64_t bytes) const;
  // Returns the memory behind an address of device or pinned memory. Another address is a defect of
  // the caller's.
  TwinRange Resolve(const void* address) const;
  static bool IsToken(const void* address) {
    return reinterpret_cast<uintptr_t>(address) >> kTokenShift != 0;
  }

  // Makes the n-th call of Allocate from now on fail (1: the next one; 0: none).
  void FailAllocation(uint64_t n);

  // Calls of Allocate so far.
  uint64_t allocations() const;

  // Bytes of device memory: the limit, and the part of it that is not allocated.
  uint64_t total_bytes() const { return limit_bytes_; }
  uint64_t free_bytes() const;

 private:
  // Real addresses of user memory have 47 bits (x86-64) or 48 (ARM). ARM may ignore the top eight.
  static constexpr uint32_t kTokenShift = 48;
  static constexpr uintptr_t kTokenBits = uintptr_t{0x5A5A} << kTokenShift;

  struct Allocation {
    uint64_t bytes;
    uint64_t mapped_bytes;
    TwinMemoryKind kind;
  };
  using Allocations = std::map<uintptr_t, Allocation>;  // by address, of device memory by token

  static std::byte* Real(uintptr_t address);
  StatusOr<std::byte*> Map(TwinMemoryKind kind, uint64_t bytes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The allocation that has the address, or end().
  Allocations::const_iterator Find(const void* address) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  MemorySource* const source_;
  const uint64_t limit_bytes_;
  mutable Mutex mutex_;
  Allocations allocations_ EMBANK_GUARDED_BY(mutex_);
  uint64_t device_bytes_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t fails_in_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t allocation_calls_ EMBANK_GUARDED_BY(mutex_) = 0;
};

}  // namespace embank

#endif  // EMBANK_GPU_TWIN_MEMORY_H_
