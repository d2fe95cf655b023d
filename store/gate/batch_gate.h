// Where changes of rows meet checkpoints: every batch of changes is wholly before a barrier or
// wholly after it.
//
//   ... | batches of checkpoint n | barrier: no batch | batches of checkpoint n + 1 | ...
//
// Rows that were dirty at the barrier are owed to checkpoint n until they are in the log: a flush
// pass puts them there, or whoever is about to change or erase one before the flush pass has come
// to it.
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
#include "store/gate/flush_pace.h"

namespace embank {

// Thread-safe.
class BatchGate {
 public:
  // How often a barrier looks for a moment without batches: 20 ms, some batches of 8,192 keys.
  static constexpr uint32_t kLooksMax = 200;

  // `checkpoint`: that the first changes belong to.
  explicit BatchGate(uint32_t checkpoint, uint32_t looks_max = kLooksMax)
      : looks_max_(looks_max), checkpoint_(checkpoint) {}

  // A batch changes rows while it has one, and takes none while it has one. nullptr: no gate.
  class WriteGuard {
   public:
    explicit WriteGuard(BatchGate* gate) {
      if (gate != nullptr) gate->Enter(&batch_);
    }
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;

   private:
    std::optional<EpochTable::Guard> batch_;
  };

  // The checkpoint that changes belong to which the holder of a write guard makes.
  uint32_t checkpoint() const { return checkpoint_.load(std::memory_order_relaxed); }

  // Calls between(checkpoint) while there is no batch, lets batches of the next checkpoint begin,
  // and the flush pass. Looks for a moment without batches first, while they come and go; where
  // there is none for long, those that come wait until those under way have ended. Calls `closing`
  // whenever batches may have to wait from then on. One thread at a time; it has no write guard.
  void RunBarrier(
      FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing = [] {});

  // How many batches have begun so far, those that found the gate closed counted again. Not cheap:
  // some microseconds.
  uint64_t batches_begun() const { return batches_.entered(); }

  // Whether a row is owed to the checkpoint of the last barrier that was changed for `checkpoint`.
  // Under the lock of the row's shard.
  bool IsFlushPending(uint32_t checkpoint) const {
    return is_flushing_.load(std::memory_order_relaxed) && checkpoint < this->checkpoint();
  }
  // Whether anything may be owed.
  bool IsFlushing() const { return is_flushing_.load(std::memory_order_relaxed); }
  // An owed row could not be put into the log: the flush pass has failed, nothing is owed any more.
  void Fail(const Status& status);
  // Ends the flush pass; why it failed.
  Status EndFlushPass();

  FlushPace* pace() { return &pace_; }
  CheckpointWait* checkpoint_wait() { return &checkpoint_wait_; }

 private:
  void Enter(std::optional<EpochTable::Guard>* batch);
  void WaitUntilOpen();
  bool CloseBetweenBatches(FunctionRef<void()> closing);
  void Close();
  void Open();
  void SleepBriefly();

  const uint32_t looks_max_;
  EpochTable batches_;
  std::atomic<bool> closed_{false};
  std::atomic<bool> is_flushing_{false};
  std::atomic<uint32_t> checkpoint_;
  Mutex mutex_;
  ConditionVariable opened_;
  ConditionVariable nap_;  // nobody notifies it
  Status failure_ EMBANK_GUARDED_BY(mutex_);
  FlushPace pace_;
  CheckpointWait checkpoint_wait_;
};

}  // namespace embank

#endif  // EMBANK_STORE_GATE_BATCH_GATE_H_
