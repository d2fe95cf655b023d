// A cache of descriptors for files that can do without one for a while. It limits how many are open
// at once. A file that needs one more closes an unused one, whose file is opened again at its next
// use.
//
//   users_:   0, 1, 2 ...  open, and used by so many      kClosed + transient users: closed
//
// Using an open descriptor costs two additions of an atomic number, and no lock.
#ifndef EMBANK_BASE_FILES_DESCRIPTOR_CACHE_H_
#define EMBANK_BASE_FILES_DESCRIPTOR_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/check.h"
#include "base/threads/mutex.h"

namespace embank {

class CachedDescriptor;

// Thread-safe. Outlives the descriptors that are entered.
class DescriptorCache {
 public:
  explicit DescriptorCache(size_t open_max) : open_max_(open_max) {}

  // Closes an unused descriptor, for a caller that found none free. False: none can be closed;
  // then *may_wait (nullptr: not wanted) says whether one may be free in a moment: another thread
  // uses it, and no wait for such a one has been in vain since the last opening that succeeded.
  bool CloseOne(bool* may_wait = nullptr);

  size_t open_max() const { return open_max_; }

 private:
  friend class CachedDescriptor;

  // Takes a place for one more open descriptor. False: all are taken, and may_exceed is false.
  bool AcquirePlace(bool may_exceed);
  // Uses the descriptor and returns true if it is open. The caller holds the lock under which
  // descriptors are closed.
  bool UseIfOpen(CachedDescriptor* descriptor);
  void Put(CachedDescriptor* descriptor);  // in a place that was taken
  void ReleasePlace();
  void Remove(CachedDescriptor* descriptor);
  void NoteWaited(bool in_vain) {
    if (has_waited_.load(std::memory_order_relaxed) == in_vain) return;
    has_waited_.store(in_vain, std::memory_order_relaxed);
  }
  // *is_any_used becomes true if it finds one that is used and can be closed afterwards.
  int TakeNumberOfUnused(bool* is_any_used) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(size_t place) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t open_max_;
  std::atomic<bool> has_waited_{false};  // in vain, since an opening has succeeded
  Mutex mutex_;
  std::vector<CachedDescriptor*> open_ EMBANK_GUARDED_BY(mutex_);
  size_t opening_ EMBANK_GUARDED_BY(mutex_) = 0;  // places that are taken
  size_t hand_ EMBANK_GUARDED_BY(mutex_) = 0;     // where the search for the next to close begins
};

// The descriptor of one file. Thread-safe.
class CachedDescriptor {
 public:
  // number: an open descriptor, which this object closes. It stays open until Enter.
  explicit CachedDescriptor(int number) : number_(number) {}
  ~CachedDescriptor();
  CachedDescriptor(const CachedDescriptor&) = delete;
  CachedDescriptor& operator=(const CachedDescriptor&) = delete;

  // From now on the descriptor may be closed while it is unused, unless its file has unsynced
  // changes. Then reopen() returns a descriptor of the same file, or minus the system's error
  // number. Without memory the descriptor stays open. Call it once; others may use this object
  // meanwhile.
  void Enter(DescriptorCache* cache, std::function<int()> reopen);

  // Returns the descriptor's number, until EndUse; or minus an error number, without EndUse. EMFILE
  // also: the descriptor is closed, all open ones are in use, and may_exceed is false. If the
  // process has no descriptor left, waits up to 0.2 seconds for one that another thread uses; after
  // a wait in vain the next uses do not wait.
  int Use(bool may_exceed = true);
  void EndUse() {
    const int32_t users = users_.fetch_sub(1, std::memory_order_release);
    EMBANK_CHECK(users > 0);
  }

  // A user of the file calls NoteChange after a change. A sync reads changes() before it begins,
  // and passes that number to NoteSynced when it is done.
  void NoteChange() { changes_.fetch_add(1, std::memory_order_release); }
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  void NoteSynced(uint64_t changes);

 private:
  friend class DescriptorCache;
  static constexpr int32_t kClosed = -(1 << 30);

  int Reopen(bool may_exceed);
  int OpenOrWait(bool may_exceed) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(reopen_mutex_);
  // Closes the descriptor if it is unused, and returns its number; else -1.
  int CloseIfUnused();
  bool IsSynced() const {
    return changes_.load(std::memory_order_relaxed) ==
           synced_changes_.load(std::memory_order_relaxed);
  }
  // Whether it is used, or `was_used` a moment ago, and can be closed when that has ended.
  bool IsFreeSoon(bool was_used) const {
    return (was_used || users_.load(std::memory_order_relaxed) > 0) && IsSynced();
  }

  std::atomic<int> number_;
  std::atomic<int32_t> users_{0};
  std::atomic<bool> was_used_{false};  // while it was open, since the hand passed it
  std::atomic<uint64_t> changes_{0};
  std::atomic<uint64_t> synced_changes_{0};
  DescriptorCache* cache_ = nullptr;  // nullptr: it is not entered
  std::function<int()> reopen_;
  Mutex reopen_mutex_;  // taken before the cache's
  size_t place_ = 0;    // in the cache's list, under its lock
};

}  // namespace embank

#endif  // EMBANK_BASE_FILES_DESCRIPTOR_CACHE_H_
