// The pace of a checkpoint's flush pass. Beside batches of changes it works for a small part of the
// time, so that they have the rest. Alone, or while a thread waits for the checkpoint, it works all
// the time.
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
  // Beside batches, the flush pass works for one 128th of the time of all threads of the store.
  // With a 32nd, batches spend a quarter of their time on pre-images when checkpoints follow each
  // other.
  static constexpr uint32_t kPartsPerWork = 128;
  // Work of 200 us, kSlotsPerRest slots, may have taken much longer, because it had no core.
  static constexpr uint64_t kRestMaxNs = 10'000'000;
  // The number of dirty slots that it visits between two rests. Rows that batches have written in
  // its place count, too: while it rests, batches that change their rows again write no pre-images.
  static constexpr uint64_t kSlotsPerRest = 1024;
  // The store counts as idle after this many looks without a new batch: with two threads some 100
  // ms, rests included, with many threads a tenth of that. A trainer that reads rows of the log
  // makes no longer pause between changes.
  static constexpr uint32_t kQuietLooks = 32;

  // Begins a flush pass; batches_begun is the number of batches that have begun before it. The
  // flush pass's thread calls it.
  void Begin(uint64_t batches_begun);
  // Looks once. True: batches have begun recently beside the flush pass, and no thread waits for
  // the checkpoint. batches_begun: the number of batches that have begun so far. The flush pass's
  // thread calls it.
  bool IsBeside(uint64_t batches_begun);

  // How long one of `threads` threads (at least one) rests after work of `worked_ns`.
  static uint64_t RestNs(uint64_t worked_ns, uint32_t threads);

  // Sleeps for `ns`, or until a thread hurries the flush pass. Returns for how long it slept, 0 if
  // a thread hurried. The flush pass's thread calls it.
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
  // Only the flush pass's thread uses these.
  uint64_t batches_begun_ = 0;
  uint32_t quiet_looks_ = kQuietLooks;
  Mutex mutex_;
  ConditionVariable hurried_;
  uint32_t hurries_ EMBANK_GUARDED_BY(mutex_) = 0;
};

// Holds a lock that a checkpoint holds until its end. A thread that waits for the lock hurries the
// flush pass.
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
