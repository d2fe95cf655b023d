#include "store/gate/batch_gate.h"

#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {

void BatchGate::RunBarrier(FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing) {
  EMBANK_CHECK(has_barriers_);
  bool has_called = WaitForPieces(closing);
  batches_.Close([&] {
    if (std::exchange(has_called, true) && IsWaitedFor()) return;
    closing();
  });
  EMBANK_CHECK(!is_flushing_.load(std::memory_order_relaxed));
  between(checkpoint());
  if (!Seeded(SeededBug::kNoNextCheckpoint)) checkpoint_.fetch_add(1, std::memory_order_relaxed);
  is_flushing_.store(true, std::memory_order_relaxed);
  {
    MutexLock lock(&mutex_);
    failure_ = OkStatus();
  }
  batches_.Open();
  LetPiecesBegin();
}

void BatchGate::EnterInPieces() {
  MutexLock lock(&mutex_);
  if (barrier_is_near_) {
    ++waiting_;
    pieces_changed_.NotifyAll();
    while (barrier_is_near_) pieces_changed_.Wait(&mutex_);
    --waiting_;
  }
  ++in_pieces_;
}

void BatchGate::LeaveInPieces() {
  {
    MutexLock lock(&mutex_);
    EMBANK_CHECK(in_pieces_ > 0);
    --in_pieces_;
  }
  pieces_changed_.NotifyAll();
}

// Before the gate is closed: a batch in pieces may wait for a thread that waits for a write guard.
// Returns whether it has called `closing`, when the first further one has come.
bool BatchGate::WaitForPieces(FunctionRef<void()> closing) {
  bool has_called = false;
  MutexLock lock(&mutex_);
  barrier_is_near_ = true;
  while (in_pieces_ > 0 && !Seeded(SeededBug::kBarrierBetweenPieces)) {
    pieces_changed_.Wait(&mutex_);
    if (waiting_ > 0 && !std::exchange(has_called, true)) closing();
  }
  return has_called;
}

bool BatchGate::IsWaitedFor() {
  MutexLock lock(&mutex_);
  return waiting_ > 0;
}

void BatchGate::LetPiecesBegin() {
  {
    MutexLock lock(&mutex_);
    barrier_is_near_ = false;
  }
  pieces_changed_.NotifyAll();
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
