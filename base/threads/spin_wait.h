// Waits for another thread without a lock.
#ifndef EMBANK_BASE_THREADS_SPIN_WAIT_H_
#define EMBANK_BASE_THREADS_SPIN_WAIT_H_

#include <sched.h>

#include <cstdint>

namespace embank {

// A loop in which a thread waits for one that is about to be done. It lets the other thread of the
// core go on. When it takes long, because the other thread may have lost its core, it lets any
// thread go on.
class SpinWait {
 public:
  // Makes one short pause, or a long one.
  void Pause() {
    if (++pauses_ % kPausesPerYield == 0) {
      sched_yield();
      return;
    }
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
  }

 private:
  // A row of 4 KiB is written in a tenth of the 2 us that so many pauses take.
  static constexpr uint32_t kPausesPerYield = 64;
  uint32_t pauses_ = 0;
};

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_SPIN_WAIT_H_
