#include "gpu/twin_memory.h"

#include <bit>
#include <cstring>
#include <new>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// Memory of a device has any contents. Larger allocations stay as they are mapped, so that they
// take no memory before they are used.
constexpr uint64_t kPoisonedBytesMax = uint64_t{16} << 20;
constexpr int kPoison = 0xA5;

Status TooLittle(uint64_t free_bytes, uint64_t bytes) {
  return NoThrowStatus(StatusCode::kResourceExhausted, [&] {
    return StrCat("the device has ", free_bytes, " bytes free, and ", bytes, " are needed");
  });
}

}  // namespace

TwinMemory::TwinMemory(MemorySource* source, uint64_t limit_bytes)
    : source_(source), limit_bytes_(limit_bytes != 0 ? limit_bytes : PhysicalMemoryBytes()) {}

TwinMemory::~TwinMemory() {
  MutexLock lock(&mutex_);
  for (const auto& [address, allocation] : allocations_) {
    source_->Unmap(Real(address), allocation.mapped_bytes);
  }
}

std::byte* TwinMemory::Real(uintptr_t address) {
  const bool is_token = address >> kTokenShift != 0;
  const uintptr_t real = is_token ? address ^ kTokenBits : address;
  EMBANK_CHECK(real >> kTokenShift == 0);
  return std::bit_cast<std::byte*>(real);
}

StatusOr<std::byte*> TwinMemory::Allocate(TwinMemoryKind kind, uint64_t bytes) {
  EMBANK_CHECK(bytes != 0);
  MutexLock lock(&mutex_);
  EMBANK_CHECK(device_bytes_ <= limit_bytes_);
  ++allocation_calls_;
  const uint64_t free = limit_bytes_ - device_bytes_;
  if (fails_in_ != 0 && --fails_in_ == 0) return TooLittle(free, bytes);
  if (kind == TwinMemoryKind::kDevice && bytes > free) return TooLittle(free, bytes);
  return Map(kind, bytes);
}

StatusOr<std::byte*> TwinMemory::Map(TwinMemoryKind kind, uint64_t bytes) {
  const uint64_t mapped_bytes = RoundUp(bytes, kSmallPageBytes);
  StatusOr<std::byte*> real = source_->Map(mapped_bytes);
  if (!real.ok()) return TooLittle(limit_bytes_ - device_bytes_, bytes);
  uintptr_t address = reinterpret_cast<uintptr_t>(*real);
  EMBANK_CHECK(address >> kTokenShift == 0);
  if (kind == TwinMemoryKind::kDevice) address ^= kTokenBits;
  try {
    allocations_[address] = {bytes, mapped_bytes, kind};
  } catch (const std::bad_alloc&) {
    source_->Unmap(*real, mapped_bytes);
    return NoMemory();
  }
  if (bytes <= kPoisonedBytesMax) std::memset(*real, kPoison, bytes);
  if (kind == TwinMemoryKind::kDevice) device_bytes_ += bytes;
  return std::bit_cast<std::byte*>(address);
}

void TwinMemory::Free(TwinMemoryKind kind, std::byte* address) {
  MutexLock lock(&mutex_);
  const auto found = allocations_.find(reinterpret_cast<uintptr_t>(address));
  EMBANK_CHECK(found != allocations_.end() && found->second.kind == kind);
  EMBANK_CHECK(kind != TwinMemoryKind::kDevice || device_bytes_ >= found->second.bytes);
  source_->Unmap(Real(found->first), found->second.mapped_bytes);
  if (kind == TwinMemoryKind::kDevice) device_bytes_ -= found->second.bytes;
  allocations_.erase(found);
}

TwinMemory::Allocations::const_iterator TwinMemory::Find(const void* address) const {
  auto next = allocations_.upper_bound(reinterpret_cast<uintptr_t>(address));
  if (next == allocations_.begin()) return allocations_.end();
  --next;
  const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - next->first;
  return offset < next->second.bytes ? next : allocations_.end();
}

bool TwinMemory::Owns(const void* address, uint64_t bytes) const {
  MutexLock lock(&mutex_);
  const auto found = Find(address);
  if (found == allocations_.end() || found->second.kind != TwinMemoryKind::kDevice) return false;
  return bytes <= found->second.bytes - (reinterpret_cast<uintptr_t>(address) - found->first);
}

TwinRange TwinMemory::Resolve(const void* address) const {
  MutexLock lock(&mutex_);
  const auto found = Find(address);
  EMBANK_CHECK(found != allocations_.end());
  const uintptr_t offset = reinterpret_cast<uintptr_t>(address) - found->first;
  return {Real(found->first) + offset, found->second.bytes - offset,
          found->second.kind == TwinMemoryKind::kDevice};
}

void TwinMemory::FailAllocation(uint64_t n) {
  MutexLock lock(&mutex_);
  fails_in_ = n;
}

uint64_t TwinMemory::allocations() const {
  MutexLock lock(&mutex_);
  return allocation_calls_;
}

uint64_t TwinMemory::free_bytes() const {
  MutexLock lock(&mutex_);
  return limit_bytes_ - device_bytes_;
}

}  // namespace embank
