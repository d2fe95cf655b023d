// A walk over the dirty slots of a tier, in the order of memory. It visits no clean slot: 64 of
// them cost a look at one word.
#ifndef EMBANK_TIERS_DRAM_DIRTY_SLOTS_H_
#define EMBANK_TIERS_DRAM_DIRTY_SLOTS_H_

#include <atomic>
#include <cstdint>
#include <span>

#include "base/threads/mutex.h"
#include "tiers/dram/dram_tier.h"
#include "tiers/row/location.h"

namespace embank {

// Thread-safe. Its lock comes before that of the tier's pages.
class DirtySlots {
 public:
  // Walks over the pages that were used before this call. The tier outlives the walk.
  explicit DirtySlots(const DramTier& tier) : tier_(tier), pages_(tier.pages_begun()) {}
  DirtySlots(const DirtySlots&) = delete;
  DirtySlots& operator=(const DirtySlots&) = delete;

  struct Part {
    SlotClass slot_class;  // of all slots
    size_t count;          // 0: the walk has ended
  };
  // Takes the next dirty slots of one slot class, up to out.size(), at least one. Gives each slot
  // once that was dirty when the walk began, unless it becomes clean meanwhile; and slots that
  // become dirty ahead of the walk. The caller is no reader of the tier.
  Part Next(std::span<Location> out);

  // Whether Next has nothing more to give.
  bool has_ended() const { return has_ended_.load(std::memory_order_relaxed); }
  // The number of slots that Next has given.
  uint64_t given() const { return given_.load(std::memory_order_relaxed); }

 private:
  const DramTier& tier_;
  const uint32_t pages_;
  std::atomic<bool> has_ended_{false};
  std::atomic<uint64_t> given_{0};
  Mutex mutex_;
  uint32_t page_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint32_t slot_ EMBANK_GUARDED_BY(mutex_) = 0;  // of the page: the next one to look at
};

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_DIRTY_SLOTS_H_
