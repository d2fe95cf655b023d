#include "train/hybrid/batch_supply.h"

#include <utility>

#include "base/check.h"

namespace embank {

void BatchSupply::ReadNext(bool keeps) {
  const bool is_stopped = options_.wants_end && options_.wants_end();
  has_ended_ = is_stopped || read_ >= options_.batches_max;
  end_.was_stopped = is_stopped ? 1 : 0;
  if (has_ended_) return;
  ClickBatch batch;
  const StatusOr<uint32_t> samples = source_->Next(options_.batch, &batch);
  has_ended_ = !samples.ok() || *samples == 0;
  // A signal that wants the end has ended the wait for lines of a pipe: those of the batch so far
  // are left out.
  if (!samples.ok() && IsCancelled(samples.status()) && options_.wants_end) {
    end_.was_stopped = 1;
  } else {
    failure_ = samples.status();
  }
  if (has_ended_) return;
  if (keeps) kept_.emplace(read_, std::move(batch));
  ++read_;
  end_.position = source_->position();
}

bool BatchSupply::Take(uint64_t number, ClickBatch* batch) {
  const MutexLock lock(&mutex_);
  while (!has_ended_ && read_ <= number) ReadNext(options_.keeps_skipped || read_ == number);
  const auto found = kept_.find(number);
  if (found == kept_.end()) {
    EMBANK_CHECK(has_ended_ && number >= read_);
    return false;
  }
  *batch = std::move(found->second);
  kept_.erase(found);
  return true;
}

uint64_t BatchSupply::batches() const {
  const MutexLock lock(&mutex_);
  EMBANK_CHECK(has_ended_);
  return read_;
}

EndOfData BatchSupply::end() const {
  const MutexLock lock(&mutex_);
  EMBANK_CHECK(has_ended_);
  return end_;
}

Status BatchSupply::failure() const {
  const MutexLock lock(&mutex_);
  return failure_;
}

}  // namespace embank
