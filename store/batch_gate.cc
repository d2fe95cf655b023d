#include "store/batch_gate.h"

#include "base/seeded_bug.h"

namespace embank {

// Either the flip sees this batch, or the batch sees the gate closed: both look after they have
// said what they do.
void BatchGate::Enter(std::optional<EpochTable::Guard>* batch) {
  while (true) {
    batch->emplace(&batches_);
    if (!closed_.load(std::memory_order_seq_cst)) return;
    batch->reset();
    MutexLock lock(&mutex_);
    while (closed_.load(std::memory_order_relaxed)) opened_.Wait(&mutex_);
  }
}

void BatchGate::Flip(absl::FunctionRef<void(uint32_t)> between) {
  closed_.store(true, std::memory_order_seq_cst);
  batches_.WaitUntilPassed(batches_.Retire());
  between(checkpoint());
  if (!Seeded(SeededBug::kNoNextCheckpoint)) checkpoint_.fetch_add(1, std::memory_order_relaxed);
  sweeps_.store(true, std::memory_order_relaxed);
  {
    MutexLock lock(&mutex_);
    failure_ = absl::OkStatus();
    closed_.store(false, std::memory_order_seq_cst);
  }
  opened_.NotifyAll();
}

void BatchGate::Fail(const absl::Status& status) {
  MutexLock lock(&mutex_);
  if (!sweeps_.load(std::memory_order_relaxed)) return;
  sweeps_.store(false, std::memory_order_relaxed);
  failure_ = status;
}

absl::Status BatchGate::EndSweep() {
  MutexLock lock(&mutex_);
  sweeps_.store(false, std::memory_order_relaxed);
  return std::exchange(failure_, absl::OkStatus());
}

}  // namespace embank
