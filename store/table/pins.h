// Which rows of a table stay in memory for a while, whatever turn they have to leave it: those that
// a prefetch asked for.
//
//   lookup batches:   b   b + 1   ...   b + 7   b + 8
//   a pin of batch b: |---- it stands -----------| lapsed
//
// A row's pin is a mark in its slot's note. Here the pins that stand are counted by the batch of
// their begin, so that those of one batch lapse together, and nobody has to look for their rows.
// Only speed depends on pins.
#ifndef EMBANK_STORE_TABLE_PINS_H_
#define EMBANK_STORE_TABLE_PINS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "base/memory/memory.h"

namespace embank {

// Thread-safe; the pin of one row is its shard's lock's.
class Pins {
 public:
  using Mark = uint16_t;
  static constexpr Mark kNone = 0;
  // How many lookup batches of its table a pin outlasts.
  static constexpr uint32_t kBatches = 8;

  // `budget` is what the pinned rows of all tables may take, of `row_bytes` each here.
  Pins(MemoryBudget* budget, uint32_t row_bytes) : budget_(budget), row_bytes_(row_bytes) {}
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  // A pin that begins now, of a row that has come up; kNone: the budget is used up.
  Mark Add() { return Charge(0); }
  // The same of a row that was in memory before, instead of the pin that it may have; such rows
  // leave half of the budget to those that come up. Else that pin, as it was.
  Mark Renew(Mark pin);
  // Ends a pin, if it stands still.
  void Release(Mark pin);
  bool IsCurrent(Mark pin) const;
  // A lookup batch has ended.
  void EndBatch();

 private:
  // More than the batches of pins that stand: who is late does not meet the next round.
  static constexpr uint32_t kRounds = 16;
  static constexpr Mark kPinned = 0x8000;
  static constexpr uint32_t kBatchMask = 0x7FFF;
  static_assert(kRounds >= 2 * kBatches && kPinned % kRounds == 0);

  Mark Charge(uint64_t leaving_bytes);

  MemoryBudget* const budget_;
  const uint32_t row_bytes_;
  std::atomic<uint32_t> batch_{0};
  std::array<std::atomic<uint32_t>, kRounds> counts_{};  // by the low bits of pins
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_PINS_H_
