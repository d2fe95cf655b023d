// How fast the flush pass of a checkpoint goes. Beside batches of changes it works for a small part
// of the time, so that they have the rest; alone, or while somebody waits for the checkpoint,
// always.
//
//   alone:    work work work work ...
//   beside:   work ----------- rest ----------- work ----------- rest ----------- ...
//   hurried:  ---- rest -- | work work work work ...
#ifndef EMBANK_STORE_GATE_FLUSH_PACE_H_
#define EMBANK_STORE_GATE_FLUSH_PACE_H_

#include <cstdint>

#include "base/threads/mutex.h"

namespace embank {

// One thread flushes; everything else is thread-safe.
class FlushPace {
 public:
  // Of 128 parts of the time of all threads of the store one is work beside batches. With 32, what
  // batches do for rows that are owed (pre-images) takes a quarter of their time, where checkpoints
  // follow each other.
  static constexpr uint32_t kPartsPerWork = 128;
  // Work of 200 us, some 1,000 rows, may have taken much longer, for want of a core.
  static constexpr uint64_t kRestMaxNs = 10'000'000;
  // Looks without a new batch after which there are none: with two threads some 100 ms, rests
  // included, with many a tenth of that.
  // A trainer that reads rows of the log is no longer without changes.
  static constexpr uint32_t kQuietLooks = 32;

  // A flush pass begins, before which so many batches have. Its thread.
  void Begin(uint64_t batches_begun);
  // One look: whether the flush pass, during which so many batches less those before it have begun,
  // is beside batches, and nobody hurries it. The flush pass's thread.
  bool IsBeside(uint64_t batches_begun);

  // How long one of so many threads (at least one) rests after so much work.
  static uint64_t RestNs(uint64_t worked_ns, uint32_t threads);

  // Waits so long, without a core, or until somebody hurries the flush pass; how long, 0 where
  // somebody did. The flush pass's thread.
  uint64_t Rest(uint64_t ns);

  // While one lives, its thread waits for a checkpoint, and no flush pass rests.
  class Hurry {
   public:
    // nullptr: there are no checkpoints.
    explicit Hurry(FlushPace* pace);
    ~Hurry();
    Hurry(const Hurry&) = delete;
    Hurry& operator=(const Hurry&) = delete;

   private:
    FlushPace* const pace_;
  };

 private:
  // The flush pass's thread's.
  uint64_t batches_begun_ = 0;
  uint32_t quiet_looks_ = kQuietLooks;
  Mutex mutex_;
  ConditionVariable hurried_;
  uint32_t hurries_ EMBANK_GUARDED_BY(mutex_) = 0;
};

// Holds a lock for a scope that a checkpoint has to its end: who waits for it hurries the flush
// pass.
class EMBANK_SCOPED_LOCKABLE HurriedLock {
 public:
  HurriedLock(Mutex* mutex, FlushPace* pace) EMBANK_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    const FlushPace::Hurry hurry(pace);
    mutex_->Lock();
  }
  ~HurriedLock() EMBANK_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  HurriedLock(const HurriedLock&) = delete;
  HurriedLock& operator=(const HurriedLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace embank

#endif  // EMBANK_STORE_GATE_FLUSH_PACE_H_
