// A buffer of an exchange, and its parts, one behind the other.
#ifndef EMBANK_TRAIN_RANKS_PART_BUFFER_H_
#define EMBANK_TRAIN_RANKS_PART_BUFFER_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "train/ranks/exchange.h"

namespace embank {

// One thread. It keeps its memory.
class PartBuffer {
 public:
  // Lays out a part of so many bytes for each rank, padded to units. What the buffer has is lost.
  void Lay(std::span<const uint64_t> bytes);
  // Lays out one part of so many bytes, which all `ranks` get.
  void LayOne(uint64_t bytes, uint32_t ranks);

  // Leaves a part where it is: it is not sent, or not received. It keeps its begin.
  void KeepPart(uint32_t rank) { parts_[rank].bytes = 0; }

  // Sets the padding of a part to 0, where its data are `bytes`.
  void ClearPadding(uint32_t rank, uint64_t bytes);

  // After a call of Lay.
  std::byte* data() { return units_.data()->bytes; }
  std::span<const ExchangePart> parts() const { return parts_; }
  // Whether all ranks get the same part.
  bool is_one_part() const { return is_one_part_; }
  ExchangeSource source() { return {data(), parts_}; }
  ExchangeTarget target() { return {data(), parts_}; }

 private:
  struct alignas(kExchangeUnitBytes) Unit {
    std::byte bytes[kExchangeUnitBytes];
  };

  std::vector<Unit> units_;
  std::vector<ExchangePart> parts_;
  bool is_one_part_ = false;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_RANKS_PART_BUFFER_H_
