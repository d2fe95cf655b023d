#include "store/gate/flush_pace.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace embank {

void FlushPace::Begin(uint64_t batches_begun) {
  batches_begun_ = batches_begun;
  quiet_looks_ = kQuietLooks;
}

// Only counts decide, so that a run with simulated threads can be repeated exactly.
bool FlushPace::IsBeside(uint64_t batches_begun) {
  EMBANK_CHECK(batches_begun >= batches_begun_);
  if (std::exchange(batches_begun_, batches_begun) != batches_begun) {
    quiet_looks_ = 0;
  } else if (quiet_looks_ < kQuietLooks) {
    ++quiet_looks_;
  }
  if (quiet_looks_ == kQuietLooks) return false;
  MutexLock lock(&mutex_);
  return hurries_ == 0;
}

uint64_t FlushPace::RestNs(uint64_t worked_ns, uint32_t threads) {
  EMBANK_CHECK(threads > 0);
  const uint64_t rest_per_work = std::max<uint64_t>(kPartsPerWork / threads, 1) - 1;
  return std::min(std::min(worked_ns, kRestMaxNs) * rest_per_work, kRestMaxNs);
}

uint64_t FlushPace::Rest(uint64_t ns) {
  MutexLock lock(&mutex_);
  // If it was woken without a reason, it has rested less.
  if (ns > 0 && hurries_ == 0) hurried_.WaitFor(&mutex_, ns);
  return hurries_ == 0 ? ns : 0;
}

FlushPace::Hurry::Hurry(FlushPace* pace) : pace_(pace) {
  if (pace_ == nullptr) return;
  {
    MutexLock lock(&pace_->mutex_);
    ++pace_->hurries_;
  }
  pace_->hurried_.NotifyAll();
}

FlushPace::Hurry::~Hurry() {
  if (pace_ == nullptr) return;
  MutexLock lock(&pace_->mutex_);
  EMBANK_CHECK(pace_->hurries_ > 0);
  --pace_->hurries_;
}

}  // namespace embank
