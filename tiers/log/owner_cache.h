// The owners of damaged records that were asked for last: a footer is long, and who looks a lost
// row up looks it up again.
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
  // Whether it knows what was told of a place; then *owner is that, of table kNoTable where nobody
  // knew it.
  bool Find(const RecordPlace& place, SlotOwner* owner) const {
    MutexLock lock(&mutex_);
    for (const Entry& entry : entries_) {
      if (entry.segment_id != place.segment_id || entry.slot != place.slot) continue;
      *owner = entry.owner;
      return true;
    }
    return false;
  }
  // In the place of the one that came first.
  void Add(const RecordPlace& place, const SlotOwner& owner) {
    MutexLock lock(&mutex_);
    entries_[next_++ % entries_.size()] = {place.segment_id, place.slot, owner};
  }

 private:
  struct Entry {
    uint64_t segment_id = 0;  // none has this one
    uint32_t slot = 0;
    SlotOwner owner = {};
  };

  mutable Mutex mutex_;
  std::array<Entry, 64> entries_ EMBANK_GUARDED_BY(mutex_);
  size_t next_ EMBANK_GUARDED_BY(mutex_) = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_OWNER_CACHE_H_
