#include "store/gate/batch_gate.h"

#include <utility>

#include "base/check.h"
#include "base/seeded_bug.h"

namespace embank {

void BatchGate::RunBarrier(FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing) {
  EMBANK_CHECK(has_barriers_);
  WaitForPieces(&closing);
  batches_.Close([&] {
    MutexLock lock(&mutex_);
    if (waiting_ == 0) closing();
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
  if (closing_ != nullptr) {
    if (waiting_++ == 0) (*closing_)();
    while (closing_ != nullptr) pieces_changed_.Wait(&mutex_);
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
void BatchGate::WaitForPieces(FunctionRef<void()>* closing) {
  MutexLock lock(&mutex_);
  closing_ = closing;
  while (in_pieces_ > 0 && !Seeded(SeededBug::kBarrierBetweenPieces)) {
    pieces_changed_.Wait(&mutex_);
  }
}

void BatchGate::LetPiecesBegin() {
  {
    MutexLock lock(&mutex_);
    closing_ = nullptr;
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
