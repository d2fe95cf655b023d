#include "train/ranks/part_buffer.h"

#include <cstring>

#include "base/memory/grown_array.h"
#include "base/seeded_bug.h"

namespace embank {

void PartBuffer::Lay(std::span<const uint64_t> bytes) {
  parts_.clear();
  is_one_part_ = false;
  uint64_t begin = 0;
  for (const uint64_t of_part : bytes) {
    const uint64_t units = (of_part + kExchangeUnitBytes - 1) / kExchangeUnitBytes;
    parts_.push_back({begin, units * kExchangeUnitBytes});
    begin += units * kExchangeUnitBytes;
  }
  // One more, so that a buffer of empty parts has an address, too.
  Grow(begin / kExchangeUnitBytes + 1, &units_);
}

void PartBuffer::LayOne(uint64_t bytes, uint32_t ranks) {
  Lay({&bytes, 1});
  parts_.assign(ranks, ExchangePart(parts_[0]));
  is_one_part_ = true;
}

void PartBuffer::ClearPadding(uint32_t rank, uint64_t bytes) {
  if (Seeded(SeededBug::kPaddingNotZeroed)) return;
  std::memset(data() + parts_[rank].begin + bytes, 0, parts_[rank].bytes - bytes);
}

}  // namespace embank
