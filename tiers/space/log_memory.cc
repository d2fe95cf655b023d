#include "tiers/space/log_memory.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

LogMemory::~LogMemory() {
  // Segments gave back to the parts what they had of them.
  EMBANK_CHECK(user_owners_.used_bytes() == 0 && compaction_owners_.used_bytes() == 0 &&
               footer_.used_bytes() == 0);
  budget_->Release(user_owners_.free_bytes() + compaction_owners_.free_bytes() +
                   footer_.free_bytes() + bits_bytes_);
}

uint64_t LogMemory::OwnerBytes(const SegmentGeometry& geometry) {
  return uint64_t{geometry.slots} * (sizeof(Key) + sizeof(TableId));
}

uint64_t LogMemory::BitWords(const SegmentGeometry& geometry) {
  return 2 * (RoundUp(geometry.slots, 64) / 64);
}

uint64_t LogMemory::ClassBytesMax(const SegmentGeometry& geometry) {
  return 2 * AlignedBuffer::ChargedBytes(OwnerBytes(geometry)) +
         AlignedBuffer::ChargedBytes(geometry.footer_bytes);
}

Status LogMemory::AddClass(const SegmentGeometry& geometry) {
  if (!budget_->has_limit()) return OkStatus();
  const uint64_t owner_bytes = AlignedBuffer::ChargedBytes(OwnerBytes(geometry));
  const uint64_t footer_bytes = AlignedBuffer::ChargedBytes(geometry.footer_bytes);
  const uint64_t more_owner_bytes =
      std::max(owner_bytes, largest_owner_bytes_) - largest_owner_bytes_;
  const uint64_t more_footer_bytes =
      std::max(footer_bytes, largest_footer_bytes_) - largest_footer_bytes_;
  EMBANK_RETURN_IF_ERROR(budget_->Charge(owner_bytes + more_owner_bytes + more_footer_bytes));
  user_owners_.Extend(owner_bytes);
  compaction_owners_.Extend(more_owner_bytes);
  footer_.Extend(more_footer_bytes);
  largest_owner_bytes_ += more_owner_bytes;
  largest_footer_bytes_ += more_footer_bytes;
  return OkStatus();
}

StatusOr<AlignedBuffer> LogMemory::Allocate(MemoryBudget* first, MemoryBudget* then,
                                            uint64_t bytes) {
  StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(source_, first, bytes);
  return buffer.ok() ? std::move(buffer) : AlignedBuffer::Create(source_, then, bytes);
}

// A class's own part first: what another class has beyond its own comes from the budget.
StatusOr<AlignedBuffer> LogMemory::Owners(LogStream stream, const SegmentGeometry& geometry) {
  const uint64_t bytes = OwnerBytes(geometry);
  if (stream == LogStream::kUser) return Allocate(&user_owners_, budget_, bytes);
  return Allocate(budget_, &compaction_owners_, bytes);
}

StatusOr<AlignedBuffer> LogMemory::Footer(const SegmentGeometry& geometry) {
  return Allocate(budget_, &footer_, geometry.footer_bytes);
}

StatusOr<ChargedWords> LogMemory::Bits(LogStream stream, const SegmentGeometry& geometry) {
  const uint64_t bytes = BitBytes(geometry);
  // Dirty rows have reserved them.
  const bool is_reserved = stream == LogStream::kUser && bits_bytes_ >= bytes;
  if (!is_reserved) EMBANK_RETURN_IF_ERROR(budget_->Charge(bytes));
  ChargedWords bits;
  if (!bits.Allocate(budget_, bytes, BitWords(geometry))) {
    if (!is_reserved) budget_->Release(bytes);
    return NoMemory();
  }
  if (is_reserved) bits_bytes_ -= bytes;
  return bits;
}

bool LogMemory::ReserveBits(uint64_t bytes) {
  if (!budget_->has_limit()) return true;
  if (bytes > bits_bytes_) {
    const uint64_t more = bytes - bits_bytes_;
    const uint64_t step = RoundUp(more, kBitsStepBytes);
    if (budget_->Charge(step).ok()) {
      bits_bytes_ += step;
    } else if (budget_->Charge(more).ok()) {
      bits_bytes_ = bytes;
    } else {
      return false;
    }
  } else if (bits_bytes_ - bytes >= 2 * kBitsStepBytes) {
    const uint64_t less = bits_bytes_ - bytes - kBitsStepBytes;
    bits_bytes_ -= less;
    budget_->Release(less);
  }
  return true;
}

}  // namespace embank
