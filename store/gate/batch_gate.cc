#include "store/gate/batch_gate.h"

#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {

void BatchGate::RunBarrier(FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing) {
  EMBANK_CHECK(has_barriers_);
  batches_.Close(closing);
  EMBANK_CHECK(!is_flushing_.load(std::memory_order_relaxed));
  between(checkpoint());
  if (!Seeded(SeededBug::kNoNextCheckpoint)) checkpoint_.fetch_add(1, std::memory_order_relaxed);
  is_flushing_.store(true, std::memory_order_relaxed);
  {
    MutexLock lock(&mutex_);
    failure_ = OkStatus();
  }
  batches_.Open();
}

void BatchGate::Fail(const Status& status) {
  MutexLock lock(&mutex_);
  if (!is_flushing_.load(std::memory_order_relaxed)) return;
  is_flushing_.store(false, std::memory_order_relaxed);
  failure_ = status;
}

Status BatchGate::EndFlushPass() {
  MutexLock lock(&mutex_);
  is_flushing_.store(false, std::memory_order_relaxed);
  return std::exchange(failure_, OkStatus());
}

}  // namespace embank
