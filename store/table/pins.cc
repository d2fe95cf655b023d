#include "store/table/pins.h"

#include <bit>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {
namespace {

uint32_t BatchesOfPins(uint32_t batches) {
  if (Seeded(SeededBug::kPinLapsesEarly)) return 3;
  return batches == 0 ? Pins::kBatches : batches;
}

}  // namespace

// There are counts for more batches than have current pins, so that a late thread does not meet the
// next round.
Pins::Pins(MemoryBudget* budget, uint32_t row_bytes, uint32_t batches)
    : budget_(budget),
      row_bytes_(row_bytes),
      batches_(BatchesOfPins(batches)),
      counts_(std::bit_ceil(2 * batches_)) {
  static_assert(kPinned % std::bit_ceil(2 * kBatchesMax) == 0);
  EMBANK_CHECK(batches <= kBatchesMax);
}

Pins::Mark Pins::Charge(uint64_t leaving_bytes) {
  if (!budget_->Charge(row_bytes_, leaving_bytes).ok()) return kNone;
  const auto pin = static_cast<Mark>(kPinned | (batch_.load() & kBatchMask));
  CountOf(pin).fetch_add(1);
  return pin;
}

Pins::Mark Pins::Renew(Mark pin) {
  const Mark renewed = Charge(budget_->limit_bytes() / 2);
  if (renewed == kNone) return pin;
  Release(pin);
  return renewed;
}

void Pins::Release(Mark pin) {
  if (!IsCurrent(pin)) return;
  std::atomic<uint32_t>& count = CountOf(pin);
  uint32_t seen = count.load();
  // kNone: the pin has lapsed meanwhile.
  while (seen > 0 && !count.compare_exchange_weak(seen, seen - 1)) {
  }
  if (seen > 0) budget_->Release(row_bytes_);
}

bool Pins::IsCurrent(Mark pin) const {
  return pin != kNone && ((batch_.load() - pin) & kBatchMask) < batches_;
}

void Pins::EndBatch() {
  if (budget_->used_bytes() == 0) return;
  const uint32_t batch = batch_.fetch_add(1) + 1;
  const uint32_t lapsed = CountOf(batch - batches_).exchange(0);
  if (lapsed > 0) budget_->Release(uint64_t{lapsed} * row_bytes_);
}

}  // namespace embank
