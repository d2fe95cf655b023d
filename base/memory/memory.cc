#include "base/memory/memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {
namespace {

class PosixMemorySource final : public MemorySource {
 public:
  StatusOr<std::byte*> Map(uint64_t bytes) override {
    EMBANK_CHECK(bytes > 0 && bytes % kSmallPageBytes == 0);
    if (bytes < kHugePageBytes) return MapPages(bytes, PROT_READ | PROT_WRITE);
    EMBANK_ASSIGN_OR_RETURN(std::byte* const address, MapAligned(bytes, PROT_READ | PROT_WRITE));
    AdviseHugePages(address, bytes);
    return address;
  }

  StatusOr<std::byte*> Reserve(uint64_t bytes) override {
    EMBANK_CHECK(bytes > 0 && bytes % kHugePageBytes == 0);
    return MapAligned(bytes, PROT_NONE);
  }

  Status Commit(std::byte* address, uint64_t bytes) override {
    EMBANK_CHECK(bytes % kHugePageBytes == 0);
    if (mprotect(address, bytes, PROT_READ | PROT_WRITE) != 0) return NoMemory();
    AdviseHugePages(address, bytes);
    return OkStatus();
  }

  void Decommit(std::byte* address, uint64_t bytes) override {
    EMBANK_CHECK(bytes % kHugePageBytes == 0);
    // A fresh mapping in place: both the memory and its commit charge go back.
    void* const mapped = mmap(address, bytes, PROT_NONE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) {
      madvise(address, bytes, MADV_DONTNEED);
    } else {
      KeepFromChildren(address, bytes);
    }
  }

  void Unmap(std::byte* address, uint64_t bytes) override {
    EMBANK_CHECK(munmap(address, bytes) == 0);
  }

 private:
  static StatusOr<std::byte*> MapPages(uint64_t bytes, int protection) {
    const int reserve = protection == PROT_NONE ? MAP_NORESERVE : 0;
    void* const address =
        mmap(nullptr, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | reserve, -1, 0);
    if (address == MAP_FAILED) return NoMemory();
    KeepFromChildren(address, bytes);
    return static_cast<std::byte*>(address);
  }

  // A child of fork() has no use for the store's pages. Shared with it, each would be copied at its
  // next change, and the device would read into the page that the child has.
  static void KeepFromChildren(void* address, uint64_t bytes) {
    madvise(address, bytes, MADV_DONTFORK);
  }

  // Maps one huge page more than needed, and unmaps the memory around the aligned part.
  static StatusOr<std::byte*> MapAligned(uint64_t bytes, int protection) {
    EMBANK_ASSIGN_OR_RETURN(std::byte* const begin, MapPages(bytes + kHugePageBytes, protection));
    const uint64_t misaligned = reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
    const uint64_t head_bytes = misaligned == 0 ? 0 : kHugePageBytes - misaligned;
    if (head_bytes > 0) munmap(begin, head_bytes);
    munmap(begin + head_bytes + bytes, kHugePageBytes - head_bytes);
    return begin + head_bytes;
  }

  // A hint: where there are none (HugePagesOff) it fails, and nothing else changes.
  static void AdviseHugePages(std::byte* address, uint64_t bytes) {
    madvise(address, bytes, MADV_HUGEPAGE);
  }
};

}  // namespace

bool HugePagesOff() {
  static const bool off = [] {
    std::FILE* file = std::fopen("/sys/kernel/mm/transparent_hugepage/enabled", "re");
    if (file == nullptr) return true;
    char text[64] = {};
    const size_t n = std::fread(text, 1, sizeof text - 1, file);
    std::fclose(file);
    return n == 0 || std::strstr(text, "[never]") != nullptr;
  }();
  return off;
}

Status MemoryBudget::Charge(uint64_t bytes, uint64_t leaving) {
  const uint64_t limit = limit_bytes_.load(std::memory_order_relaxed);
  const uint64_t needed = bytes + leaving;
  uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  do {
    if (needed > limit || used > limit - needed) {
      if (notes_refusals_.load(std::memory_order_relaxed)) {
        refused_bytes_.store(needed, std::memory_order_relaxed);
        used_when_refused_.store(used, std::memory_order_relaxed);
      }
      return NoMemory();
    }
  } while (!used_bytes_.compare_exchange_weak(used, used + bytes, std::memory_order_relaxed));
  return OkStatus();
}

uint64_t MemoryBudget::Shrink(uint64_t bytes) {
  uint64_t used = used_bytes_.load(std::memory_order_relaxed);
  // The bytes that the limit loses are charged first, so that no other thread gets them meanwhile.
  uint64_t taken = 0;
  do {
    taken = std::min(bytes, limit_bytes_.load(std::memory_order_relaxed) - used);
  } while (!used_bytes_.compare_exchange_weak(used, used + taken, std::memory_order_relaxed));
  limit_bytes_.fetch_sub(taken, std::memory_order_relaxed);
  used_bytes_.fetch_sub(taken, std::memory_order_relaxed);
  return taken;
}

void MemoryBudget::Release(uint64_t bytes) {
  const uint64_t before = used_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  EMBANK_CHECK(before >= bytes);
}

MemorySource* SystemMemorySource() {
  static PosixMemorySource* const source = new PosixMemorySource;
  return source;
}

uint64_t PhysicalMemoryBytes() {
  return static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES)) *
         static_cast<uint64_t>(sysconf(_SC_PAGE_SIZE));
}

}  // namespace embank
