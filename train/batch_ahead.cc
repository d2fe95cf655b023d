#include "train/batch_ahead.h"

#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

BatchAhead::BatchAhead(ClickSource* source, const Trainer* trainer, uint32_t samples, uint32_t kept)
    : source_(source),
      trainer_(trainer),
      samples_(samples),
      kept_(kept),
      executor_(MakeThreadPool(1)),
      task_(executor_->MakeBackgroundTask([this] {
        MutexLock lock(&mutex_);
        if (!is_read_ && !awaits_loss_) ReadNext();
        return false;
      })) {
  EMBANK_CHECK(kept > 0);
  kept_[0].position = source->position();
  task_->Wake();
}

// A prefetch is a hint: without it, rows are read when they are looked up.
void BatchAhead::ReadNext() {
  const StatusOr<uint32_t> samples = source_->Next(samples_, &next_.batch);
  next_.status = samples.status();
  next_.position = source_->position();
  next_.fraction = source_->FractionRead();
  is_read_ = true;
  if (!samples.ok() || *samples == 0 || trainer_ == nullptr) return;
  const Status prefetched = trainer_->Prefetch(next_.batch);
  (void)prefetched;
}

// Where no thread has read the batch yet, this one does.
StatusOr<const ClickBatch*> BatchAhead::Next() {
  {
    MutexLock lock(&mutex_);
    if (!is_read_) ReadNext();
    EMBANK_RETURN_IF_ERROR(next_.status);
    if (next_.batch.samples == 0) return nullptr;
    std::swap(kept_[++calls_ % kept_.size()], next_);
    is_read_ = false;
    awaits_loss_ = present().batch.ends_phase;
  }
  if (!present().batch.ends_phase) task_->Wake();
  return &present().batch;
}

}  // namespace embank
