// Macros that tell clang's lock analysis (-Wthread-safety) about locks and the data that they
// guard. Other compilers see nothing.
#ifndef EMBANK_BASE_THREAD_ANNOTATIONS_H_
#define EMBANK_BASE_THREAD_ANNOTATIONS_H_

#if defined(__clang__)
#define EMBANK_THREAD_ATTRIBUTE(attribute) __attribute__((attribute))
#else
#define EMBANK_THREAD_ATTRIBUTE(attribute)
#endif

// On a variable: the lock that must be held to use it.
#define EMBANK_GUARDED_BY(lock) EMBANK_THREAD_ATTRIBUTE(guarded_by(lock))

// On a function: the locks that its caller must hold, exclusively or shared.
#define EMBANK_EXCLUSIVE_LOCKS_REQUIRED(...) \
  EMBANK_THREAD_ATTRIBUTE(exclusive_locks_required(__VA_ARGS__))
#define EMBANK_SHARED_LOCKS_REQUIRED(...) \
  EMBANK_THREAD_ATTRIBUTE(shared_locks_required(__VA_ARGS__))
// The caller of a function must not hold these locks.
#define EMBANK_LOCKS_EXCLUDED(...) EMBANK_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// A function returns this lock, or a pointer to it.
#define EMBANK_LOCK_RETURNED(lock) EMBANK_THREAD_ATTRIBUTE(lock_returned(lock))
// On a function whose locks the analysis cannot follow.
#define EMBANK_NO_THREAD_SAFETY_ANALYSIS EMBANK_THREAD_ATTRIBUTE(no_thread_safety_analysis)

// On a type that is a lock, or that holds one for a scope.
#define EMBANK_LOCKABLE EMBANK_THREAD_ATTRIBUTE(lockable)
#define EMBANK_SCOPED_LOCKABLE EMBANK_THREAD_ATTRIBUTE(scoped_lockable)
// On functions of such a type: they take the lock, release it, or expect it.
#define EMBANK_EXCLUSIVE_LOCK_FUNCTION(...) \
  EMBANK_THREAD_ATTRIBUTE(exclusive_lock_function(__VA_ARGS__))
#define EMBANK_SHARED_LOCK_FUNCTION(...) EMBANK_THREAD_ATTRIBUTE(shared_lock_function(__VA_ARGS__))
#define EMBANK_UNLOCK_FUNCTION(...) EMBANK_THREAD_ATTRIBUTE(unlock_function(__VA_ARGS__))
#define EMBANK_EXCLUSIVE_TRYLOCK_FUNCTION(...) \
  EMBANK_THREAD_ATTRIBUTE(exclusive_trylock_function(__VA_ARGS__))
#define EMBANK_SHARED_TRYLOCK_FUNCTION(...) \
  EMBANK_THREAD_ATTRIBUTE(shared_trylock_function(__VA_ARGS__))
#define EMBANK_ASSERT_EXCLUSIVE_LOCK(...) \
  EMBANK_THREAD_ATTRIBUTE(assert_exclusive_lock(__VA_ARGS__))
#define EMBANK_ASSERT_SHARED_LOCK(...) EMBANK_THREAD_ATTRIBUTE(assert_shared_lock(__VA_ARGS__))
// A function that returns a lock: its callers name the lock by it.
#define EMBANK_LOCK_RETURNED(lock) EMBANK_THREAD_ATTRIBUTE(lock_returned(lock))

#endif  // EMBANK_BASE_THREAD_ANNOTATIONS_H_
