// A checkpoint that a caller starts, leaves to a thread of the store, and finishes later.
//
//   caller:  Start ..|...... batches ......| Finish ......|
//   thread:    | barrier | flush pass, syncs, manifest |
#ifndef EMBANK_STORE_STARTED_CHECKPOINT_H_
#define EMBANK_STORE_STARTED_CHECKPOINT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status_or.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"
#include "store/checkpoint/checkpoints.h"
#include "store/gate/flush_pace.h"
#include "store/table/store_context.h"

namespace embank {

// Thread-safe. Callers hold no lock and no write guard.
class StartedCheckpoint {
 public:
  // Both outlive it.
  StartedCheckpoint(const StoreContext& store, Checkpoints* checkpoints)
      : store_(store), checkpoints_(*checkpoints) {}
  // Waits for the end of a started checkpoint, and hurries it. The log hears of its failure.
  ~StartedCheckpoint();
  StartedCheckpoint(const StartedCheckpoint&) = delete;
  StartedCheckpoint& operator=(const StartedCheckpoint&) = delete;

  // Makes the barrier of a checkpoint with this blob, and leaves the rest to a thread. Changes of
  // calls that have returned before are in the checkpoint; changes of calls that begin after Start
  // has returned are not. Waits for a checkpoint of Checkpoints::Make that is under way. `blob` is
  // read before Start returns. After an error nothing is started.
  // kFailedPrecondition: a checkpoint is started and not finished.
  // kResourceExhausted: the system refuses a thread.
  // The statuses of Checkpoints::Make, as far as they come before the barrier.
  Status Start(std::span<const std::byte> blob);

  // Waits for the end of the started checkpoint, and hurries it. Returns its number, or the status
  // with which Checkpoints::Make failed; another one can be started then. One call gets the result.
  // kFailedPrecondition: no checkpoint is started, or another call finishes it.
  StatusOr<uint32_t> Finish();

 private:
  // One caller leads from kNone to kStarted, and one leads back.
  enum class Stage { kNone, kStarting, kStarted, kFinishing };

  Status Claim(std::span<const std::byte> blob);
  bool WaitForBarrier();
  StatusOr<uint32_t> TakeResult();
  void MakeOnThread();

  const StoreContext& store_;
  Checkpoints& checkpoints_;
  Mutex mutex_;
  ConditionVariable has_moved_on_;
  Stage stage_ EMBANK_GUARDED_BY(mutex_) = Stage::kNone;
  std::span<const std::byte> blob_ EMBANK_GUARDED_BY(mutex_);  // of the caller, until the barrier
  bool is_behind_barrier_ EMBANK_GUARDED_BY(mutex_) = false;
  std::optional<StatusOr<uint32_t>> result_ EMBANK_GUARDED_BY(mutex_);
  std::unique_ptr<JoinedThread> thread_ EMBANK_GUARDED_BY(mutex_);  // in kStarted
};

}  // namespace embank

#endif  // EMBANK_STORE_STARTED_CHECKPOINT_H_
