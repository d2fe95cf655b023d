// A clock that stands still until a test moves it, or that advances with each reading.
#ifndef EMBANK_TESTS_SUPPORT_MANUAL_CLOCK_H_
#define EMBANK_TESTS_SUPPORT_MANUAL_CLOCK_H_

#include <atomic>
#include <cstdint>

#include "base/threads/clock.h"

namespace embank::test {

class ManualClock final : public Clock {
 public:
  // Every reading advances the clock by `tick_ns`.
  explicit ManualClock(uint64_t tick_ns = 0) : tick_ns_(tick_ns) {}

  uint64_t NowNs() const override { return now_ns_.fetch_add(tick_ns_); }
  void Advance(uint64_t by_ns) { now_ns_.fetch_add(by_ns); }

 private:
  const uint64_t tick_ns_;
  mutable std::atomic<uint64_t> now_ns_{0};
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_MANUAL_CLOCK_H_
