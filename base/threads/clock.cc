#include "base/threads/clock.h"

#include <chrono>

namespace embank {
namespace {

class StdSteadyClock final : public Clock {
 public:
  uint64_t NowNs() const override {
    return static_cast<uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(
                                     std::chrono::steady_clock::now().time_since_epoch())
                                     .count());
  }
};

class StdWallClock final : public WallClock {
 public:
  int64_t UnixNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
};

}  // namespace

const WallClock* SystemWallClock() {
  static const StdWallClock* const clock = new StdWallClock;
  return clock;
}

const Clock* SteadyClock() {
  static const StdSteadyClock* const clock = new StdSteadyClock;
  return clock;
}

}  // namespace embank
