// A gate that threads pass in numbers, and that one thread closes until none is inside.
#ifndef EMBANK_STORE_GATE_ENTRY_GATE_H_
#define EMBANK_STORE_GATE_ENTRY_GATE_H_

#include <atomic>
#include <cstdint>
#include <optional>

#include "base/function_ref.h"
#include "base/threads/epoch.h"
#include "base/threads/mutex.h"

namespace embank {

// Thread-safe.
class EntryGate {
 public:
  // Close looks so many times for a moment with nobody inside, before it makes threads wait.
  explicit EntryGate(uint32_t looks_max) : looks_max_(looks_max) {}
  EntryGate(const EntryGate&) = delete;
  EntryGate& operator=(const EntryGate&) = delete;

  // Enters; waits while the gate is closed. The thread is inside until *inside is reset, and enters
  // no second time before.
  void Enter(std::optional<EpochTable::Guard>* inside);

  // Returns when the gate is closed and nobody is inside. First looks for such a moment while
  // threads come and go, in which none waits that an earlier closing has kept waiting. If there is
  // none for long, new ones wait until those inside have left. Calls `closing` whenever threads may
  // have to wait from then on, and `waiting` before it waits for those inside. One thread at a
  // time, which is not inside.
  void Close(
      FunctionRef<void()> closing = [] {}, FunctionRef<void()> waiting = [] {});
  // The same for a thread that looks once. False: a thread was inside or waited; the gate is open.
  bool TryClose(FunctionRef<void()> closing = [] {});
  void Open();

  // The number of threads that have entered so far; those that found the gate closed count again.
  // Not cheap: some microseconds.
  uint64_t entered() const { return inside_.entered(); }

 private:
  void WaitUntilOpen();
  bool CloseWhileEmpty(FunctionRef<void()> closing);
  void SleepBriefly();

  const uint32_t looks_max_;
  EpochTable inside_;
  std::atomic<bool> closed_{false};
  std::atomic<uint32_t> waiters_{0};  // threads that found the gate closed and are not inside yet
  Mutex mutex_;
  ConditionVariable opened_;
  ConditionVariable nap_;  // never notified
};

}  // namespace embank

#endif  // EMBANK_STORE_GATE_ENTRY_GATE_H_
