// A cache of the owners of damaged records that were looked up last: a footer is long, and a lost
// row is often looked up again.
#ifndef EMBANK_TIERS_LOG_OWNER_CACHE_H_
#define EMBANK_TIERS_LOG_OWNER_CACHE_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/threads/mutex.h"
#include "tiers/segment/log_record.h"
#include "tiers/segment/segment_format.h"

namespace embank {

// Allocates nothing. Thread-safe.
class OwnerCache {
 public:
  // Whether the place is cached; then *owner is its owner, or of table kNoTable if the owner is
  // unknown.
  bool Find(const RecordPlace& place, SlotOwner* owner) const {
    MutexLock lock(&mutex_);
    for (const Entry& entry : entries_) {
      if (entry.segment_id != place.segment_id || entry.slot != place.slot) continue;
      *owner = entry.owner;
      return true;
    }
    return false;
  }
  // Replaces the oldest entry.
  void Add(const RecordPlace& place, const SlotOwner& owner) {
    MutexLock lock(&mutex_);
    entries_[next_++ % entries_.size()] = {place.segment_id, place.slot, owner};
  }

 private:
  struct Entry {
    uint64_t segment_id = 0;  // no segment has this id
    uint32_t slot = 0;
    SlotOwner owner = {};
  };

  mutable Mutex mutex_;
  std::array<Entry, 64> entries_ EMBANK_GUARDED_BY(mutex_);
  size_t next_ EMBANK_GUARDED_BY(mutex_) = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_OWNER_CACHE_H_
