// Memory fences for optimistic readers and their writers. ThreadSanitizer does not know fences, and
// needs none: they order atomics only.
#ifndef EMBANK_BASE_THREADS_FENCE_H_
#define EMBANK_BASE_THREADS_FENCE_H_

#include <atomic>

namespace embank {

#if defined(__SANITIZE_THREAD__)
inline void AcquireFence() { std::atomic_signal_fence(std::memory_order_acquire); }
inline void ReleaseFence() { std::atomic_signal_fence(std::memory_order_release); }
inline void FullFence() { std::atomic_signal_fence(std::memory_order_seq_cst); }
inline void FullFenceAfterExchange() { FullFence(); }
#else
// Reads before the fence are done before reads behind it.
inline void AcquireFence() { std::atomic_thread_fence(std::memory_order_acquire); }
// Writes before the fence are visible before writes behind it.
inline void ReleaseFence() { std::atomic_thread_fence(std::memory_order_release); }
// Everything before the fence is done and visible before everything behind it.
inline void FullFence() { std::atomic_thread_fence(std::memory_order_seq_cst); }
// The same, for a thread whose last write was a sequentially consistent exchange.
inline void FullFenceAfterExchange() {
#if defined(__x86_64__)
  // The exchange has a lock prefix, and so is a full fence already.
  std::atomic_signal_fence(std::memory_order_seq_cst);
#else
  FullFence();
#endif
}
#endif

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_FENCE_H_
