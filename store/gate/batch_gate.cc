#include "store/gate/batch_gate.h"

#include "base/seeded_bug.h"
#include "base/threads/spin_wait.h"

namespace embank {
namespace {

constexpr uint32_t kPausesMax = 1024;  // some 30 us
constexpr uint64_t kNapNs = 50'000;    // twice that with the system's slack

}  // namespace

// Either the barrier sees this batch, or the batch sees the gate closed: each writes its own flag
// before it reads the other's.
void BatchGate::Enter(std::optional<EpochTable::Guard>* batch) {
  while (true) {
    batch->emplace(&batches_);
    if (!closed_.load(std::memory_order_seq_cst)) return;
    batch->reset();
    WaitUntilOpen();
  }
}

// A barrier between batches is over before a thread sleeps.
void BatchGate::WaitUntilOpen() {
  SpinWait wait;
  for (uint32_t i = 0; i < kPausesMax; ++i) {
    if (!closed_.load(std::memory_order_acquire)) return;
    wait.Pause();
  }
  MutexLock lock(&mutex_);
  while (closed_.load(std::memory_order_relaxed)) opened_.Wait(&mutex_);
}

void BatchGate::RunBarrier(FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing) {
  if (!CloseBetweenBatches(closing)) {
    closing();
    Close();
  }
  between(checkpoint());
  if (!Seeded(SeededBug::kNoNextCheckpoint)) checkpoint_.fetch_add(1, std::memory_order_relaxed);
  is_flushing_.store(true, std::memory_order_relaxed);
  {
    MutexLock lock(&mutex_);
    failure_ = OkStatus();
  }
  Open();
}

// Returns false if there was always a batch under way.
bool BatchGate::CloseBetweenBatches(FunctionRef<void()> closing) {
  for (uint32_t i = 0; i < looks_max_; ++i) {
    if (i > 0) SleepBriefly();
    if (!batches_.HasPassed(UINT64_MAX)) continue;
    closing();
    closed_.store(true, std::memory_order_seq_cst);
    if (batches_.HasPassed(batches_.Retire())) return true;
    Open();
  }
  return false;
}

void BatchGate::Close() {
  closed_.store(true, std::memory_order_seq_cst);
  const uint64_t epoch = batches_.Retire();
  // The thread sleeps, because the batch that it waits for may need this core.
  while (!batches_.HasPassed(epoch)) SleepBriefly();
}

void BatchGate::Open() {
  MutexLock lock(&mutex_);
  closed_.store(false, std::memory_order_seq_cst);
  opened_.NotifyAll();
}

void BatchGate::SleepBriefly() {
  MutexLock lock(&mutex_);
  nap_.WaitFor(&mutex_, kNapNs);
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
