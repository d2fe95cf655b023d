// Time, injected so that tests set it.
#ifndef EMBANK_BASE_THREADS_CLOCK_H_
#define EMBANK_BASE_THREADS_CLOCK_H_

#include <cstdint>

namespace embank {

class Clock {
 public:
  virtual ~Clock() = default;
  // Nanoseconds since some fixed moment; never goes back. Thread-safe.
  virtual uint64_t NowNs() const = 0;
};

// The system's steady clock.
const Clock* SteadyClock();

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_CLOCK_H_
