// Waits for the end of the checkpoint that is under way: it may free space in the log.
#ifndef EMBANK_STORE_GATE_CHECKPOINT_WAIT_H_
#define EMBANK_STORE_GATE_CHECKPOINT_WAIT_H_

#include <cstdint>
#include <thread>

#include "base/threads/mutex.h"

namespace embank {

// Thread-safe.
class CheckpointWait {
 public:
  CheckpointWait() = default;
  CheckpointWait(const CheckpointWait&) = delete;
  CheckpointWait& operator=(const CheckpointWait&) = delete;

  // While one lives, this thread makes a checkpoint. One at a time.
  class UnderWay {
   public:
    explicit UnderWay(CheckpointWait* wait);
    ~UnderWay();
    UnderWay(const UnderWay&) = delete;
    UnderWay& operator=(const UnderWay&) = delete;

   private:
    CheckpointWait* const wait_;
  };

  // The number of checkpoints that have ended.
  uint64_t ended();

  // Whether a checkpoint is under way.
  bool IsUnderWay();

  // Blocks until more than `ended` checkpoints have ended, and returns true. False: none is under
  // way, or this thread makes it.
  bool WaitFor(uint64_t ended);

 private:
  Mutex mutex_;
  ConditionVariable has_ended_;
  std::thread::id maker_ EMBANK_GUARDED_BY(mutex_);  // none: no checkpoint is under way
  uint64_t ended_ EMBANK_GUARDED_BY(mutex_) = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_GATE_CHECKPOINT_WAIT_H_
