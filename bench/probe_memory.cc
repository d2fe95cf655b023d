#include "bench/probe_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <utility>

#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_macros.h"

namespace embank {

StatusOr<ProbeMemory> ProbeMemory::Create(uint64_t bytes, PageKind pages) {
  ProbeMemory memory;
  const uint64_t whole_bytes = RoundUp(std::max<uint64_t>(1, bytes), kHugePageBytes);
  EMBANK_ASSIGN_OR_RETURN(memory.data_, SystemMemorySource()->Map(whole_bytes));
  memory.bytes_ = whole_bytes;
  if (pages == PageKind::kSmall && madvise(memory.data_, whole_bytes, MADV_NOHUGEPAGE) != 0) {
    return ResourceExhaustedError("the machine does not give pages of 4 KiB when asked to");
  }
  return memory;
}

ProbeMemory::~ProbeMemory() {
  if (data_ != nullptr) SystemMemorySource()->Unmap(data_, bytes_);
}

ProbeMemory::ProbeMemory(ProbeMemory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

ProbeMemory& ProbeMemory::operator=(ProbeMemory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

}  // namespace embank
