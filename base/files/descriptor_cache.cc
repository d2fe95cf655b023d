#include "base/files/descriptor_cache.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

#include "base/check.h"
#include "base/threads/clock.h"
#include "base/threads/spin_wait.h"

namespace embank {
namespace {

// Most reads take less than a tenth of a millisecond; a device that is slow takes a thousand times
// that.
constexpr uint64_t kWaitNsMax = 200'000'000;
// A try takes some microseconds. Where threads are many and each pause gives a core away, time ends
// the wait.
constexpr uint32_t kWaitsMax = 20'000;

}  // namespace

// ---- the cache ----

bool DescriptorCache::CloseOne(bool* may_wait) {
  int number = -1;
  bool is_any_used = false;
  {
    MutexLock lock(&mutex_);
    number = TakeNumberOfUnused(&is_any_used);
  }
  if (number >= 0) close(number);
  if (may_wait != nullptr) *may_wait = is_any_used && !has_waited_.load(std::memory_order_relaxed);
  return number >= 0;
}

bool DescriptorCache::AcquirePlace(bool may_exceed) {
  // There may be more than one too many, from the time when all were used.
  while (true) {
    int number = -1;
    {
      MutexLock lock(&mutex_);
      const bool is_full = open_.size() + opening_ >= open_max_;
      bool is_any_used = false;
      if (is_full) number = TakeNumberOfUnused(&is_any_used);
      if (is_full && number < 0 && !may_exceed) return false;
      if (number < 0) {
        ++opening_;
        return true;
      }
    }
    close(number);
  }
}

bool DescriptorCache::UseIfOpen(CachedDescriptor* descriptor) {
  MutexLock lock(&mutex_);
  if (descriptor->users_.fetch_add(1, std::memory_order_acq_rel) >= 0) return true;
  descriptor->users_.fetch_sub(1, std::memory_order_relaxed);
  return false;
}

void DescriptorCache::Put(CachedDescriptor* descriptor) {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(opening_ > 0);
  open_.push_back(descriptor);
  descriptor->place_ = open_.size() - 1;
  --opening_;
}

void DescriptorCache::ReleasePlace() {
  MutexLock lock(&mutex_);
  EMBANK_CHECK(opening_ > 0);
  --opening_;
}

void DescriptorCache::Remove(CachedDescriptor* descriptor) {
  MutexLock lock(&mutex_);
  if (descriptor->place_ < open_.size() && open_[descriptor->place_] == descriptor) {
    RemoveLocked(descriptor->place_);
  }
}

void DescriptorCache::RemoveLocked(size_t place) {
  EMBANK_CHECK(place < open_.size() && open_[place]->place_ == place);
  open_[place] = open_.back();
  open_[place]->place_ = place;
  open_.pop_back();
}

// Closes one that has not been used since the hand last passed it. One that was opened for a single
// use goes first.
int DescriptorCache::TakeNumberOfUnused(bool* is_any_used) {
  for (size_t left = 2 * open_.size(); left > 0; --left) {
    hand_ = hand_ < open_.size() ? hand_ : 0;
    CachedDescriptor* const descriptor = open_[hand_];
    const bool was_used = descriptor->was_used_.exchange(false, std::memory_order_relaxed);
    const int number = was_used ? -1 : descriptor->CloseIfUnused();
    *is_any_used = *is_any_used || (number < 0 && descriptor->IsFreeSoon(was_used));
    // The last one takes the place of the closed one; it was opened a moment ago.
    if (number >= 0) RemoveLocked(hand_);
    ++hand_;
    if (number >= 0) return number;
  }
  return -1;
}

// ---- a descriptor ----

CachedDescriptor::~CachedDescriptor() {
  if (cache_ != nullptr) cache_->Remove(this);
  const int number = number_.load();
  if (number >= 0) close(number);
}

void CachedDescriptor::Enter(DescriptorCache* cache, std::function<int()> reopen) {
  EMBANK_CHECK(cache_ == nullptr);
  reopen_ = std::move(reopen);
  cache->AcquirePlace(/*may_exceed=*/true);
  cache_ = cache;
  try {
    cache->Put(this);
  } catch (const std::bad_alloc&) {
    cache->ReleasePlace();
  }
}

int CachedDescriptor::Use(bool may_exceed) {
  if (users_.fetch_add(1, std::memory_order_acq_rel) < 0) {
    users_.fetch_sub(1, std::memory_order_relaxed);
    return Reopen(may_exceed);
  }
  if (!was_used_.load(std::memory_order_relaxed)) was_used_.store(true, std::memory_order_relaxed);
  return number_.load(std::memory_order_relaxed);
}

// Like Use, for a descriptor that is closed, or was a moment ago.
int CachedDescriptor::Reopen(bool may_exceed) {
  MutexLock lock(&reopen_mutex_);
  EMBANK_CHECK(cache_ != nullptr);
  // Another thread may have opened it; or a thread that wanted to close it has left it open.
  if (cache_->UseIfOpen(this)) return number_.load(std::memory_order_relaxed);
  // The file stays closed from here on: only the holder of its lock opens it.
  if (!cache_->AcquirePlace(may_exceed)) return -EMFILE;
  const int number = OpenOrWait(may_exceed);
  if (number < 0) {
    cache_->ReleasePlace();
    return number;
  }
  EMBANK_CHECK(number_.load(std::memory_order_relaxed) == -1);
  number_.store(number, std::memory_order_relaxed);
  users_.fetch_add(1 - kClosed, std::memory_order_release);
  try {
    cache_->Put(this);
  } catch (const std::bad_alloc&) {
    // The descriptor is open and stays so: it is not in the list of those that may be closed.
    cache_->ReleasePlace();
  }
  return number;
}

// Where there is no descriptor, one that another thread uses is free in a moment. A thread that
// already has some does not wait for more. After a wait in vain nobody waits until an opening
// succeeds: a batch waits once, and not for each of its rows.
int CachedDescriptor::OpenOrWait(bool may_exceed) {
  int number = reopen_();
  SpinWait wait;
  const uint64_t begin_ns = SteadyClock()->NowNs();
  for (uint32_t waits = 0; number == -EMFILE || number == -ENFILE; number = reopen_()) {
    bool may_wait = false;
    if (cache_->CloseOne(&may_wait)) continue;
    if (!may_wait || !may_exceed) return number;
    if (++waits > kWaitsMax || SteadyClock()->NowNs() - begin_ns > kWaitNsMax) {
      cache_->NoteWaited(true);
      return number;
    }
    wait.Pause();
  }
  if (number >= 0) cache_->NoteWaited(false);
  return number;
}

int CachedDescriptor::CloseIfUnused() {
  int32_t users = 0;
  if (!users_.compare_exchange_strong(users, kClosed, std::memory_order_acq_rel)) return -1;
  // A user that changed the file has ended that use, so that its change is visible now.
  if (!IsSynced()) {
    users_.fetch_sub(kClosed, std::memory_order_release);
    return -1;
  }
  return number_.exchange(-1, std::memory_order_relaxed);
}

void CachedDescriptor::NoteSynced(uint64_t changes) {
  EMBANK_CHECK(changes <= this->changes());
  uint64_t synced = synced_changes_.load(std::memory_order_relaxed);
  while (synced < changes && !synced_changes_.compare_exchange_weak(synced, changes)) {
  }
}

}  // namespace embank
