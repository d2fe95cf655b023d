// absl::Mutex, seen by ThreadSanitizer: Debian's Abseil is built without it, so that its locks
// would be invisible and every guarded access a false race. Same annotations, same cost in other
// builds.
#ifndef EMBANK_BASE_MUTEX_H_
#define EMBANK_BASE_MUTEX_H_

#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define EMBANK_TSAN(call) call
#else
#define EMBANK_TSAN(call) static_cast<void>(0)
#endif

namespace embank {

// A reader-writer lock. Not recursive.
class ABSL_LOCKABLE Mutex {
 public:
  Mutex() {
    IgnoreOrderOfLocks();
    EMBANK_TSAN(__tsan_mutex_create(this, 0));
  }
  ~Mutex() { EMBANK_TSAN(__tsan_mutex_destroy(this, 0)); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void Lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, 0));
    mutex_.Lock();
    EMBANK_TSAN(__tsan_mutex_post_lock(this, 0, 0));
  }
  void Unlock() ABSL_UNLOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_unlock(this, 0));
    mutex_.Unlock();
    EMBANK_TSAN(__tsan_mutex_post_unlock(this, 0));
  }
  // Without waiting: whether it has the lock now.
  bool TryLock() ABSL_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, __tsan_mutex_try_lock));
    const bool locked = mutex_.TryLock();
    EMBANK_TSAN(__tsan_mutex_post_lock(
        this, __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed), 0));
    return locked;
  }
  void ReaderLock() ABSL_SHARED_LOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, __tsan_mutex_read_lock));
    mutex_.ReaderLock();
    EMBANK_TSAN(__tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0));
  }
  // Without waiting: whether it has the lock now.
  bool ReaderTryLock() ABSL_SHARED_TRYLOCK_FUNCTION(true) {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, __tsan_mutex_read_lock | __tsan_mutex_try_lock));
    const bool locked = mutex_.ReaderTryLock();
    EMBANK_TSAN(__tsan_mutex_post_lock(this,
                                       __tsan_mutex_read_lock | __tsan_mutex_try_lock |
                                           (locked ? 0 : __tsan_mutex_try_lock_failed),
                                       0));
    return locked;
  }
  void ReaderUnlock() ABSL_UNLOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock));
    mutex_.ReaderUnlock();
    EMBANK_TSAN(__tsan_mutex_post_unlock(this, __tsan_mutex_read_lock));
  }
  // Stops the process unless a thread (in debug builds of Abseil: this one) holds it exclusively.
  void AssertHeld() const ABSL_ASSERT_EXCLUSIVE_LOCK() { mutex_.AssertHeld(); }

 private:
  friend class ConditionVariable;
  // Debian's Abseil draws a graph of who locks what after what, under one lock of its own: longer
  // than our locks are held. ThreadSanitizer does it where we test.
  static void IgnoreOrderOfLocks() {
    static const bool ignored = [] {
      absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore);
      return true;
    }();
    static_cast<void>(ignored);
  }
  absl::Mutex mutex_;
};

// Where threads wait for what another one changes under a lock.
class ConditionVariable {
 public:
  // Gives the lock up, waits for a call of NotifyAll (or for nothing: look again), has it again.
  void Wait(Mutex* mutex) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    EMBANK_TSAN(__tsan_mutex_pre_unlock(mutex, 0));
    EMBANK_TSAN(__tsan_mutex_post_unlock(mutex, 0));
    variable_.Wait(&mutex->mutex_);
    EMBANK_TSAN(__tsan_mutex_pre_lock(mutex, 0));
    EMBANK_TSAN(__tsan_mutex_post_lock(mutex, 0, 0));
  }
  // As Wait, for so long at most.
  void WaitFor(Mutex* mutex, uint64_t ns) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    EMBANK_TSAN(__tsan_mutex_pre_unlock(mutex, 0));
    EMBANK_TSAN(__tsan_mutex_post_unlock(mutex, 0));
    variable_.WaitWithTimeout(&mutex->mutex_, absl::Nanoseconds(ns));
    EMBANK_TSAN(__tsan_mutex_pre_lock(mutex, 0));
    EMBANK_TSAN(__tsan_mutex_post_lock(mutex, 0, 0));
  }
  void NotifyAll() { variable_.SignalAll(); }

 private:
  absl::CondVar variable_;
};

// Holds a lock exclusively for a scope.
class ABSL_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) ABSL_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Holds a lock shared with other readers for a scope.
class ABSL_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) ABSL_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() ABSL_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace embank

#endif  // EMBANK_BASE_MUTEX_H_
