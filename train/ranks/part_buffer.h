// A buffer of an exchange, and its parts, one behind the other.
#ifndef EMBANK_TRAIN_RANKS_PART_BUFFER_H_
#define EMBANK_TRAIN_RANKS_PART_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "train/pipeline/grown_array.h"
#include "train/ranks/exchange.h"

namespace embank {

// One thread. It keeps its memory.
class PartBuffer {
 public:
  // Lays out a part of so many bytes for each rank, padded to units. What the buffer has is lost.
  void Lay(std::span<const uint64_t> bytes) {
    parts_.clear();
    uint64_t begin = 0;
    for (const uint64_t of_part : bytes) {
      const uint64_t padded = (of_part + kExchangeUnitBytes - 1) / kExchangeUnitBytes;
      parts_.push_back({begin, padded * kExchangeUnitBytes});
      begin += padded * kExchangeUnitBytes;
    }
    Grow(begin / kExchangeUnitBytes, &units_);
  }
  // Lays out one part of so many bytes, which all `ranks` get.
  void LayOne(uint64_t bytes, uint32_t ranks) {
    Lay({&bytes, 1});
    parts_.assign(ranks, parts_[0]);
  }

  // Sets the padding of a part to 0, where its data are `bytes`.
  void ClearPadding(uint32_t rank, uint64_t bytes) {
    std::memset(data() + parts_[rank].begin + bytes, 0, parts_[rank].bytes - bytes);
  }

  std::byte* data() { return units_.data()->bytes; }
  std::span<const ExchangePart> parts() const { return parts_; }
  ExchangeSource source() { return {data(), parts_}; }
  ExchangeTarget target() { return {data(), parts_}; }

 private:
  struct alignas(kExchangeUnitBytes) Unit {
    std::byte bytes[kExchangeUnitBytes];
  };

  std::vector<Unit> units_;
  std::vector<ExchangePart> parts_;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_PART_BUFFER_H_
