#include "gpu/twin_callers.h"

#include <utility>
#include <vector>

#include "base/check.h"
#include "base/no_throw_status.h"

namespace embank {

TwinCallers::TwinCallers(TwinStreams* streams) : streams_(streams) { Add(); }

void* TwinCallers::Add() {
  const TwinStreams::Stream number = streams_->Add();
  MutexLock lock(&mutex_);
  callers_.push_back({number});
  return &callers_.back();
}

TwinCallers::CallerStream* TwinCallers::Find(void* stream) {
  mutex_.AssertHeld();
  if (stream == nullptr) return &callers_.front();
  for (CallerStream& known : callers_) {
    if (&known == stream) return &known;
  }
  return nullptr;
}

StatusOr<TwinStreams::Stream> TwinCallers::NumberOf(void* stream) {
  MutexLock lock(&mutex_);
  const CallerStream* const known = Find(stream);
  if (known == nullptr) {
    return NoThrowStatus(StatusCode::kInvalidArgument,
                         [] { return "the stream is not one of this device"; });
  }
  if (known->is_capturing) {
    return NoThrowStatus(StatusCode::kFailedPrecondition, [] { return "the stream is capturing"; });
  }
  return known->number;
}

TwinStreams::Stream TwinCallers::KnownNumberOf(void* stream) {
  MutexLock lock(&mutex_);
  const CallerStream* const known = Find(stream);
  EMBANK_CHECK(known != nullptr);
  return known->number;
}

void TwinCallers::Enqueue(void* stream, std::function<void()> work) {
  const std::function<void()>* kept = nullptr;
  {
    MutexLock lock(&mutex_);
    kept = &work_.emplace_back(std::move(work));
  }
  streams_->EnqueueWork(KnownNumberOf(stream), TwinWork([kept] { (*kept)(); }));
}

void TwinCallers::WaitFor(void* stream) {
  const TwinStreams::Stream number = KnownNumberOf(stream);
  streams_->RunUntil(number, streams_->enqueued(number));
}

void TwinCallers::WaitForAll() {
  // A destructor calls this: it allocates nothing.
  for (size_t i = 0;; ++i) {
    TwinStreams::Stream number = 0;
    {
      MutexLock lock(&mutex_);
      if (i >= callers_.size()) return;
      number = callers_[i].number;
    }
    streams_->RunUntil(number, streams_->enqueued(number));
  }
}

void TwinCallers::SetCapturing(void* stream, bool is_capturing) {
  MutexLock lock(&mutex_);
  CallerStream* const known = Find(stream);
  EMBANK_CHECK(known != nullptr);
  known->is_capturing = is_capturing;
}

}  // namespace embank
