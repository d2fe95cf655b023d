#include "store/device/caller_memory.h"

#include "base/check.h"
#include "base/status_macros.h"
#include "store/device/caller_stream.h"

namespace embank {

CallerMemory::~CallerMemory() {
  MutexLock lock(&mutex_);
  for (std::byte* const memory : allocated_) device_.Free(memory);
}

StatusOr<std::byte*> CallerMemory::Allocate(uint64_t bytes) {
  EMBANK_CHECK(bytes > 0);
  // The note comes first: it may throw, and then nothing is left over.
  MutexLock lock(&mutex_);
  const auto place = allocated_.insert(nullptr).first;
  StatusOr<std::byte*> memory = device_.Allocate(bytes);
  auto node = allocated_.extract(place);
  if (!memory.ok()) return memory;
  node.value() = *memory;
  EMBANK_CHECK(allocated_.insert(std::move(node)).inserted);
  return memory;
}

Status CallerMemory::Free(std::byte* memory) {
  {
    MutexLock lock(&mutex_);
    if (allocated_.erase(memory) == 0) {
      return InvalidArgumentError(
          "memory is not what embank_device_allocate of this store returned, or it was freed");
    }
  }
  device_.Free(memory);
  return OkStatus();
}

Status CallerMemory::Copy(std::byte* to, const std::byte* from, uint64_t bytes, void* stream) {
  EMBANK_RETURN_IF_ERROR(CallerStream(&device_, stream).Join());
  device_.Copy(to, from, bytes);
  return device_.Wait(device_.Record());
}

}  // namespace embank
