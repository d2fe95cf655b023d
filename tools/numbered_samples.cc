#include "tools/numbered_samples.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

StatusOr<uint32_t> NumberedSamples::Next(uint32_t samples_max, ClickBatch* batch) {
  EMBANK_ASSIGN_OR_RETURN(const uint32_t samples, log_->Next(samples_max, batch));
  BrokenBeside broken;
  for (const uint64_t count : log_->broken_before()) {
    broken.before.push_back(count - std::exchange(broken_, count));
  }
  EMBANK_CHECK(broken.before.size() == samples);
  if (samples == 0) {
    broken.behind = log_->broken_lines().count - broken_;
  }
  MutexLock lock(&mutex_);
  batches_.push_back(std::move(broken));
  return samples;
}

BrokenBeside NumberedSamples::TakeBroken() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(!batches_.empty());
  BrokenBeside oldest = std::move(batches_.front());
  batches_.pop_front();
  return oldest;
}

}  // namespace embank
