#include "store/gate/entry_gate.h"

#include <utility>

#include "base/check.h"
#include "base/threads/spin_wait.h"

namespace embank {
namespace {

constexpr uint32_t kPausesMax = 1024;  // some 30 us
constexpr uint64_t kNapNs = 50'000;    // twice that with the system's slack

}  // namespace

// Either the closing thread sees this one, or this one sees the gate closed: each writes its own
// flag before it reads the other's.
void EntryGate::Enter(std::optional<EpochTable::Guard>* inside) {
  bool waits = false;
  while (true) {
    inside->emplace(&inside_);
    if (!closed_.load(std::memory_order_seq_cst)) break;
    // Before it leaves, so that the closing thread that sees nobody inside sees that it waits.
    if (!std::exchange(waits, true)) waiters_.fetch_add(1, std::memory_order_relaxed);
    inside->reset();
    WaitUntilOpen();
  }
  if (!waits) return;
  const uint32_t waiters = waiters_.fetch_sub(1, std::memory_order_relaxed);
  EMBANK_CHECK(waiters > 0);
}

// A gate that is closed for a moment is open again before a thread sleeps.
void EntryGate::WaitUntilOpen() {
  SpinWait wait;
  for (uint32_t i = 0; i < kPausesMax; ++i) {
    if (!closed_.load(std::memory_order_acquire)) return;
    wait.Pause();
  }
  MutexLock lock(&mutex_);
  while (closed_.load(std::memory_order_relaxed)) opened_.Wait(&mutex_);
}

void EntryGate::Close(FunctionRef<void()> closing, FunctionRef<void()> waiting) {
  if (CloseWhileEmpty(closing)) return;
  waiting();
  closing();
  closed_.store(true, std::memory_order_seq_cst);
  const uint64_t epoch = inside_.Retire();
  // The thread sleeps, because the one that it waits for may need this core.
  while (!inside_.HasPassed(epoch)) SleepBriefly();
}

// Returns false if there was always a thread inside, or one that waited.
bool EntryGate::CloseWhileEmpty(FunctionRef<void()> closing) {
  for (uint32_t i = 0; i < looks_max_; ++i) {
    if (i > 0) SleepBriefly();
    if (TryClose(closing)) return true;
  }
  return false;
}

bool EntryGate::TryClose(FunctionRef<void()> closing) {
  EMBANK_CHECK(!closed_.load(std::memory_order_relaxed));
  if (!inside_.HasPassed(UINT64_MAX)) return false;
  // Threads that the last closing has kept waiting come first.
  if (waiters_.load(std::memory_order_relaxed) > 0) return false;
  closing();
  closed_.store(true, std::memory_order_seq_cst);
  if (inside_.HasPassed(inside_.Retire())) return true;
  Open();
  return false;
}

void EntryGate::Open() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(closed_.load(std::memory_order_relaxed));
  closed_.store(false, std::memory_order_seq_cst);
  opened_.NotifyAll();
}

void EntryGate::SleepBriefly() {
  MutexLock lock(&mutex_);
  nap_.WaitFor(&mutex_, kNapNs);
}

}  // namespace embank
