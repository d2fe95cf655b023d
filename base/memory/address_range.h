// A range of addresses, reserved without memory, of which parts are committed.
#ifndef EMBANK_BASE_MEMORY_ADDRESS_RANGE_H_
#define EMBANK_BASE_MEMORY_ADDRESS_RANGE_H_

#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/check.h"
#include "base/memory/memory.h"
#include "base/status.h"
#include "base/status_macros.h"
#include "base/status_or.h"

namespace embank {

// Owns the addresses and the memory behind them; releases both on destruction. Move-only.
class AddressRange {
 public:
  // `bytes` is a multiple of kHugePageBytes; the source must outlive it. kResourceExhausted.
  static StatusOr<AddressRange> Reserve(MemorySource* source, uint64_t bytes) {
    EMBANK_ASSIGN_OR_RETURN(std::byte* const data, source->Reserve(bytes));
    return AddressRange(source, data, bytes);
  }
  AddressRange(AddressRange&& other) noexcept
      : source_(other.source_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}
  AddressRange& operator=(AddressRange&&) = delete;
  ~AddressRange() {
    if (data_ != nullptr) source_->Unmap(data_, bytes_);
  }

  std::byte* data() const { return data_; }
  uint64_t bytes() const { return bytes_; }

  // Commits memory for a part, in whole huge pages, or releases it. kResourceExhausted.
  Status Commit(uint64_t offset_bytes, uint64_t bytes) const {
    EMBANK_CHECK(offset_bytes <= bytes_ && bytes <= bytes_ - offset_bytes);
    return source_->Commit(data_ + offset_bytes, bytes);
  }
  void Decommit(uint64_t offset_bytes, uint64_t bytes) const {
    EMBANK_CHECK(offset_bytes <= bytes_ && bytes <= bytes_ - offset_bytes);
    source_->Decommit(data_ + offset_bytes, bytes);
  }

 private:
  AddressRange(MemorySource* source, std::byte* data, uint64_t bytes)
      : source_(source), data_(data), bytes_(bytes) {}

  MemorySource* const source_;
  std::byte* data_;
  const uint64_t bytes_;
};

}  // namespace embank

#endif  // EMBANK_BASE_MEMORY_ADDRESS_RANGE_H_
