#include "tests/support/allocation_faults.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

#include "tests/support/unfaulted.h"

namespace {

std::atomic<bool> armed{false};
std::atomic<bool> once{true};
std::atomic<uint64_t> first_failure{0};
std::atomic<uint64_t> until_failure{0};
std::atomic<uint64_t> failed{0};

bool MustFail() { return embank::test::AllocationFaults::MustFail(); }

}  // namespace

extern "C" {

// The linker sends the program's own calls here (--wrap); the real ones keep their names behind.
void* __real_malloc(size_t bytes);
void* __real_calloc(size_t count, size_t bytes);
void* __real_realloc(void* old, size_t bytes);
void* __real_aligned_alloc(size_t alignment, size_t bytes);
int __real_posix_memalign(void** out, size_t alignment, size_t bytes);

void* __wrap_malloc(size_t bytes) { return MustFail() ? nullptr : __real_malloc(bytes); }
void* __wrap_calloc(size_t count, size_t bytes) {
  return MustFail() ? nullptr : __real_calloc(count, bytes);
}
void* __wrap_realloc(void* old, size_t bytes) {
  return MustFail() ? nullptr : __real_realloc(old, bytes);
}
void* __wrap_aligned_alloc(size_t alignment, size_t bytes) {
  return MustFail() ? nullptr : __real_aligned_alloc(alignment, bytes);
}
int __wrap_posix_memalign(void** out, size_t alignment, size_t bytes) {
  return MustFail() ? ENOMEM : __real_posix_memalign(out, alignment, bytes);
}

}  // extern "C"

namespace {

void* NewOrNull(size_t bytes) { return MustFail() ? nullptr : __real_malloc(bytes); }

void* NewOrNull(size_t bytes, std::align_val_t alignment) {
  auto align = static_cast<size_t>(alignment);
  if (MustFail()) return nullptr;
  return __real_aligned_alloc(align, (bytes + align - 1) / align * align);
}

void* OrThrow(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(size_t bytes) { return OrThrow(NewOrNull(bytes)); }
void* operator new[](size_t bytes) { return OrThrow(NewOrNull(bytes)); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return NewOrNull(bytes); }
void* operator new[](size_t bytes, const std::nothrow_t&) noexcept { return NewOrNull(bytes); }
void* operator new(size_t bytes, std::align_val_t a) { return OrThrow(NewOrNull(bytes, a)); }
void* operator new[](size_t bytes, std::align_val_t a) { return OrThrow(NewOrNull(bytes, a)); }
void* operator new(size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return NewOrNull(bytes, a);
}
void* operator new[](size_t bytes, std::align_val_t a, const std::nothrow_t&) noexcept {
  return NewOrNull(bytes, a);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

namespace embank::test {

AllocationFaults::AllocationFaults(uint64_t n, FaultKind kind) {
  once = kind == FaultKind::kOnce;
  first_failure = n;
  until_failure = n;
  failed = 0;
  armed = true;
}

AllocationFaults::~AllocationFaults() { armed = false; }

uint64_t AllocationFaults::Failed() { return failed; }

uint64_t AllocationFaults::Seen() { return first_failure - until_failure; }

bool AllocationFaults::MustFail() {
  if (!armed.load() || Unfaulted::any()) return false;
  uint64_t left = until_failure.load();
  while (left > 0 && !until_failure.compare_exchange_weak(left, left - 1)) {
  }
  const bool fails = left == 1 || (left == 0 && !once.load());
  if (fails) failed.fetch_add(1);
  return fails;
}

}  // namespace embank::test
