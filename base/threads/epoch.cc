#include "base/threads/epoch.h"

#include <thread>

#include "base/check.h"
#include "base/hash.h"
#include "base/threads/fence.h"
#include "base/threads/spin_wait.h"
#include "base/threads/thread_number.h"

namespace embank {

std::atomic<uint64_t>* EpochTable::Enter() {
  // Threads begin at slots of their own, so that they seldom meet.
  const uint64_t first = Mix(ThreadNumber());
  SpinWait wait;
  for (uint64_t i = 0;; ++i) {
    // All taken: one will be free soon.
    if (i > 0 && i % kReadersMax == 0) wait.Pause();
    auto& [slot, entered] = slots_[(first + i) % kReadersMax];
    uint64_t idle = kIdle;
    // With the fences: either the retirer sees this reader, or the reader sees everything as it is
    // after the retirement.
    if (slot.load(std::memory_order_relaxed) == kIdle &&
        slot.compare_exchange_strong(idle, epoch_.load(std::memory_order_seq_cst),
                                     std::memory_order_seq_cst)) {
      FullFenceAfterExchange();
      entered.store(entered.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      return &slot;
    }
  }
}

bool EpochTable::HasPassed(uint64_t epoch) const {
  FullFence();
  for (const Slot& slot : slots_) {
    const uint64_t reader = slot.epoch.load(std::memory_order_seq_cst);
    if (reader != kIdle && reader <= epoch) return false;
  }
  return true;
}

uint64_t EpochTable::entered() const {
  uint64_t sum = 0;
  for (const Slot& slot : slots_) sum += slot.entered.load(std::memory_order_relaxed);
  return sum;
}

void EpochTable::WaitUntilPassed(uint64_t epoch) const {
  EMBANK_CHECK(epoch < epoch_.load(std::memory_order_relaxed));
  while (!HasPassed(epoch)) std::this_thread::yield();
}

}  // namespace embank
