#include "tiers/dram/dirty_slots.h"

#include <algorithm>
#include <bit>
#include <optional>

#include "base/check.h"

namespace embank {
namespace {

// The first slot from `slot` on whose bit is set; `end`: there is none before it.
uint32_t NextDirty(const DramTier::PageSlots& slots, uint32_t slot, uint32_t end) {
  constexpr uint32_t kWordBits = DramTier::kWordBits;
  while (slot < end) {
    const std::atomic_ref word(slots.dirty_words[slot / kWordBits]);
    const uint64_t bits = word.load(std::memory_order_relaxed) >> slot % kWordBits;
    if (bits != 0) return std::min(end, slot + static_cast<uint32_t>(std::countr_zero(bits)));
    slot = (slot / kWordBits + 1) * kWordBits;
  }
  return end;
}

}  // namespace

// A page may be another class's by the next call. Then its rows have left it, and the place in it
// is only where the look goes on.
DirtySlots::Part DirtySlots::Next(std::span<Location> out) {
  EMBANK_CHECK(!out.empty());
  MutexLock lock(&mutex_);
  Part part = {kNoSlotClass, 0};
  for (; page_ < pages_; ++page_, slot_ = 0) {
    std::optional<EpochTable::Guard> reader;
    const DramTier::PageSlots slots = tier_.SlotsOf(page_, &reader);
    if (slots.dirty_words == nullptr) continue;
    slot_ = NextDirty(slots, slot_, slots.slots);
    if (slot_ >= slots.slots) continue;
    if (part.count > 0 && part.slot_class != slots.slot_class) break;
    part.slot_class = slots.slot_class;
    for (; slot_ < slots.slots && part.count < out.size();
         slot_ = NextDirty(slots, slot_ + 1, slots.slots)) {
      out[part.count++] = DramTier::SlotAt(page_, slots, slot_);
    }
    if (part.count == out.size()) break;
  }
  if (page_ == pages_) has_ended_.store(true, std::memory_order_relaxed);
  given_.fetch_add(part.count, std::memory_order_relaxed);
  return part;
}

}  // namespace embank
