// The order in which the rows of a shard leave DRAM, by one of three policies.
//
//   LRU, CLOCK:   end <-> slot <-> slot <-> ... <-> slot <-> end
//                         newest                    next to leave
//   LFU:          one such ring per level of heat; level n is of heats with n binary digits:
//                 0, 1, 2..3, 4..7, ... 2^19..2^20 - 1
//
// Slots are linked by numbers, in memory of their owner; nothing is allocated here. Each ring has
// an end of its own, numbered above all slots, so that linking has no special case.
//
// LRU is exact: each lookup touches its row. CLOCK gives a row that was looked up since the hand
// last passed it a second chance. CLOCK and LFU need no call for a lookup: they look at a row when
// it is next to leave.
//
// A slot may stand aside for a while: it is in a ring of its own then, and is no victim.
//
// Under LFU a row stands on the level of its heat, or lower: lookups have made it hotter since, and
// it moves up when it is next to leave. Each epoch halves the heat of all rows, which is one level
// less: levels 0 and 1 become one, the others are counted from one higher, and nothing is moved.
// So the coldest level is right, and a move up costs no more than the lookups that doubled a heat.
#ifndef EMBANK_TIERS_DRAM_EVICTION_ORDER_H_
#define EMBANK_TIERS_DRAM_EVICTION_ORDER_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "base/check.h"
#include "tiers/row/row_header.h"

namespace embank {

// The values are those of the C API.
enum class EvictionPolicy : int32_t { kLru = 0, kClock = 1, kLfu = 2 };

inline constexpr uint32_t kNoVictim = 0xFFFFFFFF;
inline constexpr uint32_t kHeatLevels = kHeatBits + 1;
// All numbers of slots are below this.
inline constexpr uint32_t kEvictionSlotsMax = kNoVictim - kHeatLevels - 1;
// One search for a victim passes over so many rows: each takes 100 ns, all 25 us under the lock.
inline constexpr uint32_t kPassedOverMax = 256;

// The links of one slot: numbers of slots or ends. Undefined while the slot is in no order.
struct EvictionLinks {
  uint32_t previous;
  uint32_t next;
};

// The rows of one shard and slot class. Several orders share one space of slots; a slot is in one
// order at most. The caller holds the shard's lock. Slots is their owner, with these functions:
//
//   EvictionLinks& Links(uint32_t slot);   in a dense array; stays where it is
//   bool TakeReferenced(uint32_t slot);    CLOCK: whether the slot's row was looked up since this
//                                          was last asked; forgets it
//   uint32_t Heat(uint32_t slot);          LFU: the heat of the slot's row as of now
//   uint64_t HeatEpochs();                 LFU: how many heat epochs have ended so far
//
// The owner is a template parameter, because a call of a virtual Links would take longer than the
// work on them.
template <typename Slots>
class EvictionOrder {
 public:
  // `slots` must outlive it.
  EvictionOrder(EvictionPolicy policy, Slots* slots) : policy_(policy), slots_(slots) {
    for (uint32_t i = 0; i < ends_.size(); ++i) ends_[i] = {kFirstEnd + i, kFirstEnd + i};
  }
  EvictionOrder(const EvictionOrder&) = delete;
  EvictionOrder& operator=(const EvictionOrder&) = delete;

  // Adds a slot as one that was just looked up. Under CLOCK that lookup counts no second time.
  void Add(uint32_t slot) {
    EMBANK_CHECK(slot < kEvictionSlotsMax);
    if (policy_ == EvictionPolicy::kClock) slots_->TakeReferenced(slot);
    if (policy_ == EvictionPolicy::kLfu) Age();
    Link(slot, LevelFor(slot));
    ++count_;
  }

  // Removes a slot from wherever it is.
  void Remove(uint32_t slot) {
    EMBANK_CHECK(count_ > 0);
    Unlink(slot);
    --count_;
  }

  // Puts a slot in the place of another one, which leaves the order.
  void Replace(uint32_t slot, uint32_t by) {
    EMBANK_CHECK(by < kEvictionSlotsMax);
    const EvictionLinks links = slots_->Links(slot);
    slots_->Links(by) = links;
    LinksOf(links.previous).next = by;
    LinksOf(links.next).previous = by;
  }

  // Notes a lookup of a slot's row. Only LRU needs this. A slot that stands aside comes back.
  void Touch(uint32_t slot) {
    if (policy_ != EvictionPolicy::kLru || slots_->Links(slot).previous == EndOf(0)) return;
    Unlink(slot);
    Link(slot, 0);
  }

  // Prefetches the links that Touch(slot) changes beside the slot's own links, which it reads. It
  // is always inlined: g++ 12 drops calls of functions that only prefetch.
  [[gnu::always_inline]] void PrefetchTouch(uint32_t slot) {
    const EvictionLinks links = slots_->Links(slot);
    __builtin_prefetch(&LinksOf(links.previous), 1);
    __builtin_prefetch(&LinksOf(links.next), 1);
  }

  // Sets a slot aside: it is no victim until PutBack, and counts as one of the order all the same.
  void PutAside(uint32_t slot) {
    Unlink(slot);
    LinkBehind(kAsideEnd, slot);
  }
  // Removes the slot that has stood aside for the longest time; kNoVictim: there is none.
  uint32_t RemoveAside();
  // Puts back the slots that stand aside. Under LRU each slot has its former place. Otherwise they
  // are added as slots that were just looked up, in the order in which they were put aside.
  void PutBack();

  // Returns the slot that leaves next, or kNoVictim; the slot stays until it is removed. After
  // kPassedOverMax rows that were used meanwhile, it returns the next one, used or not.
  uint32_t Victim();

  // The number of slots in the order, those that stand aside included.
  uint64_t count() const { return count_; }

 private:
  static constexpr uint32_t kFirstEnd = kEvictionSlotsMax;
  static constexpr uint32_t kAsideEnd = kFirstEnd + kHeatLevels;

  EvictionLinks& LinksOf(uint32_t number) {
    return number < kFirstEnd ? slots_->Links(number) : ends_[number - kFirstEnd];
  }
  uint32_t EndOf(uint32_t level) const { return kFirstEnd + (coldest_ + level) % kHeatLevels; }
  uint32_t LevelFor(uint32_t slot) {
    if (policy_ != EvictionPolicy::kLfu) return 0;
    return static_cast<uint32_t>(std::bit_width(slots_->Heat(slot)));
  }

  void Link(uint32_t slot, uint32_t level) { LinkBehind(EndOf(level), slot); }
  void LinkBehind(uint32_t end, uint32_t slot) {
    EvictionLinks& end_links = LinksOf(end);
    slots_->Links(slot) = {end, end_links.next};
    LinksOf(end_links.next).previous = slot;
    end_links.next = slot;
  }
  void Unlink(uint32_t slot) {
    const EvictionLinks links = slots_->Links(slot);
    LinksOf(links.previous).next = links.next;
    LinksOf(links.next).previous = links.previous;
  }

  // Whether a slot that is next to leave on `level` gets a second chance; then it has a new place.
  bool PassesOver(uint32_t slot, uint32_t level);

  // Ages the levels to the current heat epoch.
  void Age();
  void MergeColdestLevels();
  // Moves all slots of a ring between two neighbours of another one.
  void Splice(uint32_t from_end, uint32_t previous, uint32_t next);

  const EvictionPolicy policy_;
  Slots* const slots_;
  uint64_t count_ = 0;
  // Without LFU only the first is used, and the last, which is that of the ring aside.
  std::array<EvictionLinks, kHeatLevels + 1> ends_;
  uint32_t coldest_ = 0;      // which of the ends is level 0's
  uint64_t heat_epochs_ = 0;  // the epoch of the levels
};

template <typename Slots>
uint32_t EvictionOrder<Slots>::Victim() {
  if (policy_ == EvictionPolicy::kLfu) Age();
  uint32_t passed_over = 0;
  for (uint32_t level = 0; level < kHeatLevels; ++level) {
    for (;;) {
      const uint32_t slot = LinksOf(EndOf(level)).previous;
      if (slot >= kFirstEnd) break;
      if (passed_over == kPassedOverMax || !PassesOver(slot, level)) return slot;
      ++passed_over;
    }
  }
  return kNoVictim;
}

template <typename Slots>
bool EvictionOrder<Slots>::PassesOver(uint32_t slot, uint32_t level) {
  if (policy_ == EvictionPolicy::kLru) return false;
  if (policy_ == EvictionPolicy::kClock && !slots_->TakeReferenced(slot)) return false;
  const uint32_t new_level = LevelFor(slot);
  if (policy_ == EvictionPolicy::kLfu && new_level <= level) return false;
  Unlink(slot);
  Link(slot, new_level);
  return true;
}

template <typename Slots>
void EvictionOrder<Slots>::Age() {
  const uint64_t heat_epochs = slots_->HeatEpochs();
  // After as many epochs as there are levels, all rows are on the coldest.
  for (uint64_t i = std::min<uint64_t>(heat_epochs - heat_epochs_, kHeatLevels); i > 0; --i) {
    MergeColdestLevels();
    coldest_ = (coldest_ + 1) % kHeatLevels;
  }
  heat_epochs_ = heat_epochs;
}

// Moves level 0 behind the rows of level 1, which leave after it. The end of level 0 becomes free
// for the hottest level.
template <typename Slots>
void EvictionOrder<Slots>::MergeColdestLevels() {
  Splice(EndOf(0), LinksOf(EndOf(1)).previous, EndOf(1));
}

template <typename Slots>
uint32_t EvictionOrder<Slots>::RemoveAside() {
  const uint32_t slot = LinksOf(kAsideEnd).previous;
  if (slot == kAsideEnd) return kNoVictim;
  Remove(slot);
  return slot;
}

template <typename Slots>
void EvictionOrder<Slots>::PutBack() {
  // The coldest were set aside, and the first of them first.
  if (policy_ == EvictionPolicy::kLru) {
    return Splice(kAsideEnd, LinksOf(EndOf(0)).previous, EndOf(0));
  }
  for (uint32_t slot = RemoveAside(); slot != kNoVictim; slot = RemoveAside()) Add(slot);
}

template <typename Slots>
void EvictionOrder<Slots>::Splice(uint32_t from_end, uint32_t previous, uint32_t next) {
  EvictionLinks& from = LinksOf(from_end);
  if (from.next == from_end) return;
  LinksOf(previous).next = from.next;
  LinksOf(from.next).previous = previous;
  LinksOf(from.previous).next = next;
  LinksOf(next).previous = from.previous;
  from = {from_end, from_end};
}

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_EVICTION_ORDER_H_
