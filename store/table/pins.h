// The pins of a table: rows that stay in memory for a while, whatever the eviction order says,
// because a prefetch read them.
//
//   lookup batches:   b   b + 1   ...   b + 11   b + 12
//   a pin of batch b: |---- it stands ------------| lapsed
//
// A row's pin is a pin mark in its slot's note. The class counts current pins by the batch of their
// begin. So the pins of one batch lapse together, and no code has to search for their rows. Only
// speed depends on pins.
#ifndef EMBANK_STORE_TABLE_PINS_H_
#define EMBANK_STORE_TABLE_PINS_H_

#include <array>
#include <atomic>
#include <cstdint>

#include "base/memory/memory.h"

namespace embank {

// Thread-safe; the lock of a row's shard guards its pin.
class Pins {
 public:
  using Mark = uint16_t;
  static constexpr Mark kNone = 0;
  // The number of lookup batches of its table that a pin outlasts.
  static constexpr uint32_t kBatches = 12;

  // `budget` limits the pinned rows of all tables; a row here takes `row_bytes`.
  Pins(MemoryBudget* budget, uint32_t row_bytes) : budget_(budget), row_bytes_(row_bytes) {}
  Pins(const Pins&) = delete;
  Pins& operator=(const Pins&) = delete;

  // Begins a pin of a row that was promoted. kNone: the budget is used up.
  Mark Add() { return Charge(0); }
  // Begins a pin of a row that was in memory before, and replaces the pin that it may have. Such
  // rows leave half of the budget to promoted ones; when that is used up, returns the old pin.
  Mark Renew(Mark pin);
  // Ends a pin, if it is still current.
  void Release(Mark pin);
  bool IsCurrent(Mark pin) const;
  // Counts the end of a lookup batch.
  void EndBatch();

 private:
  // More than the batches with current pins, so that a late thread does not meet the next round.
  static constexpr uint32_t kRounds = 32;
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
