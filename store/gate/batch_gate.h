// Separates batches of changes from checkpoints: every batch of changes is wholly before a barrier
// or wholly after it.
//
//   ... | batches of checkpoint n | barrier: no batch | batches of checkpoint n + 1 | ...
//
// A row that was dirty at the barrier has a pending flush until checkpoint n has it in the log. The
// flush pass appends it; a batch that changes or erases the row before the flush pass has reached
// it appends it first, as a pre-image.
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
#include "store/gate/entry_gate.h"
#include "store/gate/flush_pace.h"

namespace embank {

// Thread-safe.
class BatchGate {
 public:
  // A barrier looks so many times for a moment without batches: 20 ms, some batches of 8,192 keys.
  static constexpr uint32_t kLooksMax = 200;

  // The gate of a store without checkpoints: no barrier comes.
  BatchGate() : batches_(kLooksMax), has_barriers_(false), checkpoint_(0) {}
  // `checkpoint`: the number of the checkpoint that the first changes belong to.
  explicit BatchGate(uint32_t checkpoint, uint32_t looks_max = kLooksMax)
      : batches_(looks_max), has_barriers_(true), checkpoint_(checkpoint) {}

  // A batch that is not done in pieces holds one while it changes rows, and never a second.
  class WriteGuard {
   public:
    explicit WriteGuard(BatchGate* gate) {
      if (gate->has_barriers_) gate->batches_.Enter(&batch_);
    }
    WriteGuard(const WriteGuard&) = delete;
    WriteGuard& operator=(const WriteGuard&) = delete;

   private:
    std::optional<EpochTable::Guard> batch_;
  };

  // A batch that is done in pieces holds one from its first piece to its last, in place of a write
  // guard: no barrier comes meanwhile. Under it, other than under a write guard, a thread may take
  // write guards, wait for others that have some, and so move pages and compact.
  class PiecesGuard {
   public:
    explicit PiecesGuard(BatchGate* gate) : gate_(gate) { gate_->EnterInPieces(); }
    ~PiecesGuard() { gate_->LeaveInPieces(); }
    PiecesGuard(const PiecesGuard&) = delete;
    PiecesGuard& operator=(const PiecesGuard&) = delete;

   private:
    BatchGate* const gate_;
  };

  // The checkpoint that the changes of a guard's holder belong to.
  uint32_t checkpoint() const { return checkpoint_.load(std::memory_order_relaxed); }

  // Calls between(checkpoint) while there is no batch; then lets batches of the next checkpoint
  // begin, and the flush pass. First waits for the end of batches in pieces; new ones of these
  // wait, and all others go on. Then looks for a moment without batches, while they come and go. If
  // there is none for long, new batches wait until those under way have ended. Calls `closing`
  // whenever batches may have to wait from then on, and none does yet: what follows the last call
  // is the longest time that a batch may have waited. A batch in pieces that is the first to wait
  // makes the call, on its thread; no two calls overlap. One thread at a time; it holds no guard.
  void RunBarrier(
      FunctionRef<void(uint32_t)> between, FunctionRef<void()> closing = [] {});

  // Counts a piece that begins under a PiecesGuard.
  void CountPiece() { pieces_begun_.fetch_add(1, std::memory_order_relaxed); }
  // The number of batches and pieces that have begun so far; batches that found the gate closed
  // count again. Not cheap: some microseconds.
  uint64_t batches_begun() const { return batches_.entered() + pieces_begun(); }
  uint64_t pieces_begun() const { return pieces_begun_.load(std::memory_order_relaxed); }

  // Whether the last barrier's checkpoint still needs a row that was changed for `checkpoint`. Call
  // it under the lock of the row's shard.
  bool IsFlushPending(uint32_t checkpoint) const {
    return is_flushing_.load(std::memory_order_relaxed) && checkpoint < this->checkpoint();
  }
  // Whether a flush may be pending.
  bool IsFlushing() const { return is_flushing_.load(std::memory_order_relaxed); }
  // A row could not be appended to the log: the flush pass has failed, and no flush is pending any
  // more.
  void Fail(const Status& status);
  // Ends the flush pass, and returns the status with which it failed.
  Status EndFlushPass();

  FlushPace* pace() { return &pace_; }
  CheckpointWait* checkpoint_wait() { return &checkpoint_wait_; }

 private:
  void EnterInPieces();
  void LeaveInPieces();
  void WaitForPieces(FunctionRef<void()>* closing);
  void LetPiecesBegin();

  EntryGate batches_;
  const bool has_barriers_;
  std::atomic<bool> is_flushing_{false};
  std::atomic<uint32_t> checkpoint_;
  std::atomic<uint64_t> pieces_begun_{0};
  Mutex mutex_;
  Status failure_ EMBANK_GUARDED_BY(mutex_);
  uint32_t in_pieces_ EMBANK_GUARDED_BY(mutex_) = 0;  // batches that hold a PiecesGuard
  uint32_t waiting_ EMBANK_GUARDED_BY(mutex_) = 0;    // batches that want one
  // That of a barrier which is near, beside which no further ones begin.
  FunctionRef<void()>* closing_ EMBANK_GUARDED_BY(mutex_) = nullptr;
  ConditionVariable pieces_changed_;
  FlushPace pace_;
  CheckpointWait checkpoint_wait_;
};

}  // namespace embank

#endif  // EMBANK_STORE_GATE_BATCH_GATE_H_
