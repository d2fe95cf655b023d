#include "gpu/twin_streams.h"

#include <algorithm>

#include "base/check.h"
#include "base/float_mode.h"
#include "base/random.h"

namespace embank {

TwinStreams::TwinStreams(uint64_t seed) : seed_(seed) { EMBANK_CHECK(Add() == kOwn); }

TwinStreams::Stream TwinStreams::Add() {
  MutexLock lock(&mutex_);
  queues_.push_back(std::make_unique<Queue>());
  return static_cast<Stream>(queues_.size() - 1);
}

uint64_t TwinStreams::EnqueueWork(Stream stream, const TwinWork& work, uint64_t ready_ns) {
  MutexLock lock(&mutex_);
  return Enqueue(stream, {.work = work, .ready_ns = ready_ns});
}

void TwinStreams::EnqueueWait(Stream stream, Stream other) {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(stream != other && stream < queues_.size() && other < queues_.size());
  const uint64_t n = queues_[other]->enqueued;
  if (queues_[other]->done >= n) return;
  Enqueue(stream, {.is_wait = true, .other = other, .n = n});
}

uint64_t TwinStreams::enqueued(Stream stream) const {
  MutexLock lock(&mutex_);
  return queues_[stream]->enqueued;
}

void TwinStreams::RunUntil(Stream stream, uint64_t n) {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(n <= queues_[stream]->enqueued);
  RunUntilLocked(stream, n);
}

uint64_t TwinStreams::ReadyNs(Stream stream, uint64_t n) const {
  MutexLock lock(&mutex_);
  const Queue& queue = *queues_[stream];
  if (n == 0 || n + kPendingMax <= queue.enqueued) return 0;  // its item is another's now
  return queue.items[n % kPendingMax].ready_ns;
}

uint64_t TwinStreams::Enqueue(Stream stream, const Item& item) {
  mutex_.AssertHeld();
  EMBANK_CHECK(stream < queues_.size());
  Queue& queue = *queues_[stream];
  while (queue.enqueued - queue.done >= kPendingMax) {
    RunUntilLocked(stream, queue.done + kPendingMax / 2);
  }
  const uint64_t number = ++queue.enqueued;
  Item& place = queue.items[number % kPendingMax];
  const uint64_t ready_before_ns = queue.items[(number - 1) % kPendingMax].ready_ns;
  place = item;
  place.ready_ns = std::max(item.ready_ns, ready_before_ns);
  if (seed_ == 0 || running_) return number;
  // One time in four a part of the pending work runs now.
  const uint64_t bits = CounterRandom(seed_).Bits(draws_++);
  if (bits % 4 == 0) {
    RunUntilLocked(stream, queue.done + (bits >> 8) % (number - queue.done + 1));
  }
  return number;
}

void TwinStreams::RunUntilLocked(Stream stream, uint64_t n) {
  mutex_.AssertHeld();
  while (queues_[stream]->done < n) {
    if (running_) {
      ran_.Wait(&mutex_);
      continue;
    }
    running_ = true;
    RunNext(stream);
    running_ = false;
    ran_.NotifyAll();
  }
}

// Runs the first pending item of the stream, or of the one that it waits for. Waits name earlier
// items only, so that the search ends.
void TwinStreams::RunNext(Stream stream) {
  EMBANK_CHECK(running_);
  Queue* queue = queues_[stream].get();
  Item* item = &queue->items[(queue->done + 1) % kPendingMax];
  while (item->is_wait && queues_[item->other]->done < item->n) {
    queue = queues_[item->other].get();
    item = &queue->items[(queue->done + 1) % kPendingMax];
  }
  EMBANK_CHECK(queue->done < queue->enqueued);
  if (!item->is_wait) {
    // The item's place is given to no other before `done` has passed it.
    mutex_.Unlock();
    {
      const DefaultFloatMode mode;
      item->work.Run();
    }
    mutex_.Lock();
    EMBANK_CHECK(running_ && queue->done < queue->enqueued);
  }
  ++queue->done;
}

}  // namespace embank
