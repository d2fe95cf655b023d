#include "train/hybrid/batch_supply.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

Status BatchSupply::ReadNext(bool keeps) {
  const bool is_last =
      read_ >= options_.batches_max || (options_.wants_end && options_.wants_end());
  if (is_last) {
    has_ended_ = true;
    return OkStatus();
  }
  ClickBatch batch;
  const StatusOr<uint32_t> samples = source_->Next(options_.batch, &batch);
  // A signal that wants the end has ended the wait for lines of a pipe.
  has_ended_ = samples.ok() ? *samples == 0 : IsCancelled(samples.status()) && options_.wants_end;
  if (has_ended_ || !samples.ok()) return has_ended_ ? OkStatus() : samples.status();
  if (keeps) kept_.emplace(read_, std::move(batch));
  ++read_;
  return OkStatus();
}

StatusOr<bool> BatchSupply::Take(uint64_t number, ClickBatch* batch) {
  const MutexLock lock(&mutex_);
  while (!has_ended_ && read_ <= number) {
    EMBANK_RETURN_IF_ERROR(ReadNext(options_.keeps_skipped || read_ == number));
  }
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

DataPosition BatchSupply::position() const {
  const MutexLock lock(&mutex_);
  EMBANK_CHECK(has_ended_);
  return source_->position();
}

}  // namespace embank
