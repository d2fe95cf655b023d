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

// The time of day, for what people read. It may go back.
class WallClock {
 public:
  virtual ~WallClock() = default;
  // Nanoseconds since 1970-01-01, 00:00 UTC. Thread-safe.
  virtual int64_t UnixNs() const = 0;
};

// The system's time of day.
const WallClock* SystemWallClock();

}  // namespace embank

#endif  // EMBANK_BASE_THREADS_CLOCK_H_
