// Memory fences of the optimistic readers and their writers. ThreadSanitizer does not know fences,
// and needs none: all that they order are atomics.
#ifndef EMBANK_BASE_THREADS_FENCE_H_
#define EMBANK_BASE_THREADS_FENCE_H_

#include <atomic>

namespace embank {

#if defined(__SANITIZE_THREAD__)
inline void AcquireFence() { std::atomic_signal_fence(std::memory_order_acquire); }
inline void ReleaseFence() { std::atomic_signal_fence(std::memory_order_release); }
inline void FullFence() { std::atomic_signal_fence(std::memory_order_seq_cst); }
#else
// Reads before it are done before reads after it.
inline void AcquireFence() { std::atomic_thread_fence(std::memory_order_acquire); }
// Writes before it are seen before writes after it.
inline void ReleaseFence() { std::atomic_thread_fence(std::memory_order_release); }
// All before it is done and seen before all after it.
inline void FullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
#endif

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_FENCE_H_
