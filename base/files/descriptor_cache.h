// Descriptors of files that can do without one for a while: so many are open at once at most; who
// needs one more closes one that nobody uses, and its file is opened again when it is next used.
//
//   users_:   0, 1, 2 ...  open, and used by so many      kClosed + transient users: closed
//
// Using an open one is two additions of an atomic number, and no lock.
#ifndef EMBANK_BASE_FILES_DESCRIPTOR_CACHE_H_
#define EMBANK_BASE_FILES_DESCRIPTOR_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/threads/mutex.h"

namespace embank {

class CachedDescriptor;

// Thread-safe. Outlives the descriptors that are entered.
class DescriptorCache {
 public:
  explicit DescriptorCache(size_t open_max) : open_max_(open_max) {}

  // Closes one that nobody uses, for somebody who found no descriptor. False: there is none.
  bool CloseOne();

  size_t open_max() const { return open_max_; }
  // How many of those that were entered are open.
  size_t open() const;

 private:
  friend class CachedDescriptor;

  // A place for one more that will be open. False: all are used, and it must not be one too many.
  bool AcquirePlace(bool may_exceed);
  // Uses it, and says true, if it is open. Under the lock with which all are closed.
  bool UseIfOpen(CachedDescriptor* descriptor);
  void Put(CachedDescriptor* descriptor);  // in a place that was taken
  void ReleasePlace();
  void Remove(CachedDescriptor* descriptor);
  int TakeNumberOfUnused() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveLocked(size_t place) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const size_t open_max_;
  mutable Mutex mutex_;
  std::vector<CachedDescriptor*> open_ EMBANK_GUARDED_BY(mutex_);
  size_t opening_ EMBANK_GUARDED_BY(mutex_) = 0;  // places that are taken
  size_t hand_ EMBANK_GUARDED_BY(mutex_) = 0;     // where the next one to be closed is looked for
};

// The descriptor of one file. Thread-safe.
class CachedDescriptor {
 public:
  // number: open, and this one's to close. It stays open until Enter.
  explicit CachedDescriptor(int number) : number_(number) {}
  ~CachedDescriptor();
  CachedDescriptor(const CachedDescriptor&) = delete;
  CachedDescriptor& operator=(const CachedDescriptor&) = delete;

  // From now on it may be closed while nobody uses it, unless its file has unsynced changes;
  // reopen() gives a descriptor of the same file then, or minus the system's error number. Without
  // memory it stays open. Called once, before other threads know of this.
  void Enter(DescriptorCache* cache, std::function<int()> reopen);

  // Its number, until EndUse; or minus an error number, and then without EndUse. EMFILE also: it is
  // closed, all that are open are used, and may_exceed is false.
  int Use(bool may_exceed = true);
  void EndUse() { users_.fetch_sub(1, std::memory_order_release); }

  // Called by who uses it, behind a change of the file. What makes changes durable asks for
  // changes() before it begins, and tells them once it is done.
  void NoteChange() { changes_.fetch_add(1, std::memory_order_release); }
  uint64_t changes() const { return changes_.load(std::memory_order_acquire); }
  void NoteSynced(uint64_t changes);

 private:
  friend class DescriptorCache;
  static constexpr int32_t kClosed = -(1 << 30);

  int Reopen(bool may_exceed);
  // The number of one that nobody uses, which is closed from now on; or -1.
  int CloseIfUnused();

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
