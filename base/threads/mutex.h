// The locks of the library: they take no memory, so that taking one never fails. Abseil's would ask
// the system for memory on a thread's first wait, and stop the process where there is none.
#ifndef EMBANK_BASE_THREADS_MUTEX_H_
#define EMBANK_BASE_THREADS_MUTEX_H_

#include <atomic>
#include <cstdint>

#include "base/check.h"
#include "base/thread_annotations.h"

#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#define EMBANK_TSAN(call) call
#else
#define EMBANK_TSAN(call) static_cast<void>(0)
#endif

namespace embank {

// A reader-writer lock. Not recursive, also for readers: a reader that comes while a writer waits
// waits behind it. It is destroyed when no thread is inside a call of it.
class EMBANK_LOCKABLE Mutex {
 public:
  Mutex() { EMBANK_TSAN(__tsan_mutex_create(this, 0)); }
  ~Mutex() { EMBANK_TSAN(__tsan_mutex_destroy(this, 0)); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  // Takes the lock exclusively; waits while any thread has it.
  void Lock() EMBANK_EXCLUSIVE_LOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, 0));
    uint32_t state = 0;
    if (!Take(&state, kWriter)) WaitAndLock();
    EMBANK_TSAN(__tsan_mutex_post_lock(this, 0, 0));
  }
  // The thread holds the lock exclusively.
  void Unlock() EMBANK_UNLOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_unlock(this, 0));
    const uint32_t state = state_.fetch_sub(kWriter, std::memory_order_release) - kWriter;
    if (state != 0) WakeOne(state);
    EMBANK_TSAN(__tsan_mutex_post_unlock(this, 0));
  }
  // Takes the lock without waiting; returns whether it did.
  bool TryLock() EMBANK_EXCLUSIVE_TRYLOCK_FUNCTION(true) {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, __tsan_mutex_try_lock));
    uint32_t state = state_.load(std::memory_order_relaxed);
    bool locked = false;
    while (Holders(state) == 0 && !locked) locked = Take(&state, state | kWriter);
    EMBANK_TSAN(__tsan_mutex_post_lock(
        this, __tsan_mutex_try_lock | (locked ? 0 : __tsan_mutex_try_lock_failed), 0));
    return locked;
  }
  // Takes the lock together with other readers; waits while a writer has it or waits for it.
  void ReaderLock() EMBANK_SHARED_LOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, __tsan_mutex_read_lock));
    uint32_t state = state_.load(std::memory_order_relaxed);
    if (!ReadersMayEnter(state) || !Take(&state, state + 1)) WaitAndReaderLock();
    EMBANK_TSAN(__tsan_mutex_post_lock(this, __tsan_mutex_read_lock, 0));
  }
  // Takes the lock without waiting; returns whether it did.
  bool ReaderTryLock() EMBANK_SHARED_TRYLOCK_FUNCTION(true) {
    EMBANK_TSAN(__tsan_mutex_pre_lock(this, __tsan_mutex_read_lock | __tsan_mutex_try_lock));
    uint32_t state = state_.load(std::memory_order_relaxed);
    bool locked = false;
    while (ReadersMayEnter(state) && !locked) locked = Take(&state, state + 1);
    EMBANK_TSAN(__tsan_mutex_post_lock(this,
                                       __tsan_mutex_read_lock | __tsan_mutex_try_lock |
                                           (locked ? 0 : __tsan_mutex_try_lock_failed),
                                       0));
    return locked;
  }
  // The thread holds the lock as a reader.
  void ReaderUnlock() EMBANK_UNLOCK_FUNCTION() {
    EMBANK_TSAN(__tsan_mutex_pre_unlock(this, __tsan_mutex_read_lock));
    const uint32_t state = state_.fetch_sub(1, std::memory_order_release) - 1;
    // A reader waits beside other readers only behind a writer, which the last of them lets in.
    if (Holders(state) == 0 && state != 0) WakeOne(state);
    EMBANK_TSAN(__tsan_mutex_post_unlock(this, __tsan_mutex_read_lock));
  }
  // Stops the process unless a thread holds the lock exclusively.
  void AssertHeld() const EMBANK_ASSERT_EXCLUSIVE_LOCK() {
    EMBANK_CHECK(Holders(state_.load(std::memory_order_relaxed)) == kWriter);
  }
  // Stops the process unless a thread holds the lock, exclusively or not.
  void AssertReaderHeld() const EMBANK_ASSERT_SHARED_LOCK() {
    EMBANK_CHECK(Holders(state_.load(std::memory_order_relaxed)) != 0);
  }

 private:
  // state_ has the number of readers that hold the lock, or kWriter, and says which threads wait. A
  // thread says that it waits before it sleeps; the system compares the word again under the wait.
  static constexpr uint32_t kWriter = (1u << 30) - 1;
  static constexpr uint32_t kReadersMax = kWriter - 1;
  static constexpr uint32_t kReadersWait = 1u << 30;
  static constexpr uint32_t kWritersWait = 1u << 31;

  static uint32_t Holders(uint32_t state) { return state & kWriter; }
  // No writer has the lock, and none waits for it: so writers are not kept out for ever.
  static bool ReadersMayEnter(uint32_t state) { return state < kReadersMax; }

  // Changes the word from `*state` to `next`. False: `*state` is set to the word that is there.
  bool Take(uint32_t* state, uint32_t next) {
    return state_.compare_exchange_strong(*state, next, std::memory_order_acquire,
                                          std::memory_order_relaxed);
  }
  void WaitAndLock();
  void WaitAndReaderLock();
  void WakeOne(uint32_t state);
  bool WakeWriter();

  std::atomic<uint32_t> state_{0};
  std::atomic<uint32_t> writers_woken_{0};  // counts wakes of writers: writers sleep on it
};

// Lets threads wait for a condition that another thread changes under a lock.
class ConditionVariable {
 public:
  ConditionVariable() = default;
  ConditionVariable(const ConditionVariable&) = delete;
  ConditionVariable& operator=(const ConditionVariable&) = delete;

  // Releases the lock, waits for a call of NotifyAll, and takes the lock again. It may return
  // without a call: check the condition again.
  void Wait(Mutex* mutex) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Like Wait, but at most for so long.
  void WaitFor(Mutex* mutex, uint64_t ns) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // The caller has changed the awaited condition before, under the lock.
  void NotifyAll() {
    if (waiting_.load(std::memory_order_relaxed) != 0) WakeAll();
  }

 private:
  void WakeAll();

  std::atomic<uint32_t> notified_{0};  // counts calls
  std::atomic<uint32_t> waiting_{0};   // grows under the lock
};

// Holds a lock exclusively for a scope.
class EMBANK_SCOPED_LOCKABLE MutexLock {
 public:
  explicit MutexLock(Mutex* mutex) EMBANK_EXCLUSIVE_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->Lock();
  }
  ~MutexLock() EMBANK_UNLOCK_FUNCTION() { mutex_->Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

// Holds a lock shared with other readers for a scope.
class EMBANK_SCOPED_LOCKABLE ReaderMutexLock {
 public:
  explicit ReaderMutexLock(Mutex* mutex) EMBANK_SHARED_LOCK_FUNCTION(mutex) : mutex_(mutex) {
    mutex_->ReaderLock();
  }
  ~ReaderMutexLock() EMBANK_UNLOCK_FUNCTION() { mutex_->ReaderUnlock(); }
  ReaderMutexLock(const ReaderMutexLock&) = delete;
  ReaderMutexLock& operator=(const ReaderMutexLock&) = delete;

 private:
  Mutex* const mutex_;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_MUTEX_H_
