#include "gpu/twin_link.h"

#include <algorithm>

#include "base/threads/spin_wait.h"

namespace embank {
namespace {

// A sleep ends up to 50 us late (the timer slack of Linux), so that the last part is spun.
constexpr uint64_t kSpunNs = 100'000;

}  // namespace

uint64_t TwinLink::Send(uint64_t bytes) {
  if (bytes_per_second_ <= 0 || bytes == 0) return 0;
  const auto ns = static_cast<uint64_t>(static_cast<double>(bytes) / bytes_per_second_ * 1e9);
  MutexLock lock(&mutex_);
  free_from_ns_ = std::max(clock_->NowNs() + latency_ns_, free_from_ns_) + ns;
  return free_from_ns_;
}

void TwinLink::WaitUntil(uint64_t ready_ns) {
  if (ready_ns == 0) return;
  SpinWait spin;
  for (uint64_t now = clock_->NowNs(); now < ready_ns; now = clock_->NowNs()) {
    const uint64_t rest_ns = ready_ns - now;
    if (rest_ns <= kSpunNs) {
      spin.Pause();
      continue;
    }
    MutexLock lock(&mutex_);
    never_.WaitFor(&mutex_, rest_ns - kSpunNs);
  }
}

}  // namespace embank
