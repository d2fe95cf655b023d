// Where changes of rows meet checkpoints: every batch of changes is wholly before a flip or wholly
// after it.
//
//   ... | batches of checkpoint n | flip: no batch | batches of checkpoint n + 1 | ...
//
// Rows that were dirty at the flip are owed to checkpoint n until they are in the log: a sweep puts
// them there, or whoever is about to change or erase one before the sweep has come to it.
#ifndef EMBANK_STORE_GATE_BATCH_GATE_H_
#define EMBANK_STORE_GATE_BATCH_GATE_H_

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/threads/epoch.h"
#include "base/threads/mutex.h"
#include "store/gate/checkpoint_wait.h"
#include "store/gate/sweep_pace.h"

namespace embank {

// Thread-safe.
class BatchGate {
 public:
  // How often a flip looks for a moment without batches: 20 ms, some batches of 8,192 keys.
  static constexpr uint32_t kLooksMax = 200;

  // `checkpoint`: that the first changes belong to.
  explicit BatchGate(uint32_t checkpoint, uint32_t looks_max = kLooksMax)
      : looks_max_(looks_max), checkpoint_(checkpoint) {}

  // A batch changes rows while it has one, and takes none while it has one. nullptr: no gate.
  class Ticket {
   public:
    explicit Ticket(BatchGate* gate) {
      if (gate != nullptr) gate->Enter(&batch_);
    }
    Ticket(const Ticket&) = delete;
    Ticket& operator=(const Ticket&) = delete;

   private:
    std::optional<EpochTable::Guard> batch_;
  };

  // The checkpoint that changes belong to which the holder of a ticket makes.
  uint32_t checkpoint() const { return checkpoint_.load(std::memory_order_relaxed); }

  // Calls between(checkpoint) while there is no batch, lets batches of the next checkpoint begin,
  // and the sweep. Looks for a moment without batches first, while they come and go; where there is
  // none for long, those that come wait until those under way have ended. Calls `closing` whenever
  // batches may have to wait from then on. One thread at a time; it has no ticket.
  void Flip(
      FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing = [] {});

  // How many batches have begun so far, those that found the gate closed counted again. Not cheap:
  // some microseconds.
  uint64_t batches_begun() const { return batches_.entered(); }

  // Whether a row is owed to the checkpoint of the last flip that was changed for `checkpoint`.
  // Under the lock of the row's shard.
  bool IsOwed(uint32_t checkpoint) const {
    return sweeps_.load(std::memory_order_relaxed) && checkpoint < this->checkpoint();
  }
  // Whether anything may be owed.
  bool IsSweeping() const { return sweeps_.load(std::memory_order_relaxed); }
  // An owed row could not be put into the log: the sweep has failed, nothing is owed any more.
  void Fail(const Status& status);
  // Ends the sweep; why it failed.
  Status EndSweep();

  SweepPace* pace() { return &pace_; }
  CheckpointWait* checkpoint_wait() { return &checkpoint_wait_; }

 private:
  void Enter(std::optional<EpochTable::Guard>* batch);
  void WaitUntilOpen();
  bool CloseBetweenBatches(FunctionRef<void()> closing);
  void Close();
  void Open();
  void Nap();

  const uint32_t looks_max_;
  EpochTable batches_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> sweeps_{false};
  std::atomic<uint32_t> checkpoint_;
  Mutex mutex_;
  ConditionVariable opened_;
  ConditionVariable nap_;  // nobody notifies it
  Status failure_ EMBANK_GUARDED_BY(mutex_);
  SweepPace pace_;
  CheckpointWait checkpoint_wait_;
};

}  // namespace embank

#endif  // EMBANK_STORE_GATE_BATCH_GATE_H_
