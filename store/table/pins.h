// The pins of a table: rows that stay in memory for a while, whatever the eviction order says,
// because a prefetch read them.
//
// With pins of twelve lookup batches:
//
//   lookup batches:   b   b + 1   ...   b + 11   b + 12
//   a pin of batch b: |---- it stands ------------| lapsed
//
// A row's pin is a pin mark in its slot's note. The class counts current pins by the batch of their
// begin. So the pins of one batch lapse together, and no code has to search for their rows. Only
// speed depends on pins.
#ifndef EMBANK_STORE_TABLE_PINS_H_
#define EMBANK_STORE_TABLE_PINS_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "base/memory/memory.h"

namespace embank {

// Thread-safe; the lock of a row's shard guards its pin.
class Pins {
 public:
  using Mark = uint16_t;
  static constexpr Mark kNone = 0;
  // The number of lookup batches of its table that a pin outlasts, unless an option says otherwise,
  // and the most that one may say.
  static constexpr uint32_t kBatches = 12;
  static constexpr uint32_t kBatchesMax = 1024;

  // `budget` limits the pinned rows of all tables; a row here takes `row_bytes`. A pin outlasts
  // `batches` lookup batches, at most kBatchesMax; 0: kBatches.
  Pins(MemoryBudget* budget, uint32_t row_bytes, uint32_t batches = 0);
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
  static constexpr Mark kPinned = 0x8000;
  static constexpr uint32_t kBatchMask = 0x7FFF;

  Mark Charge(uint64_t leaving_bytes);
  std::atomic<uint32_t>& CountOf(uint32_t batch) { return counts_[batch % counts_.size()]; }

  MemoryBudget* const budget_;
  const uint32_t row_bytes_;
  const uint32_t batches_;
  std::atomic<uint32_t> batch_{0};
  std::vector<std::atomic<uint32_t>> counts_;  // by the low bits of pins
};

}  // namespace embank

#endif  // EMBANK_STORE_TABLE_PINS_H_
