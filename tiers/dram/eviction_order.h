// The order in which the rows of a shard leave DRAM, by one of three policies.
//
//   LRU, CLOCK:   end <-> slot <-> slot <-> ... <-> slot <-> end
//                         newest                    next to leave
//   LFU:          one such ring per round, of this round and the 16 that come
//
// Slots are linked by numbers, in memory of their owner; nothing is allocated here. Each ring has
// an end of its own, numbered above all slots, so that linking has no special case.
//
// LRU is exact: each lookup touches its row. CLOCK gives a row that was looked up since its turn a
// second chance. CLOCK and LFU need no call for a lookup: they look at a row when its turn comes.
//
// LFU is CLOCK whose chances last longer for hotter rows. The turn of a row comes after as many
// rounds as the row has heat, at least one and at most 16. If the row was looked up by then, it
// gets another turn by its heat of then; else it leaves. A round ends when its ring is empty. So a
// row that was hot and is not used any more leaves after 16 rounds, and each turn that a row gets
// is paid for by a lookup.
//
// A slot may stand aside for a while: it is in a ring of its own then, and is no victim.
#ifndef EMBANK_TIERS_DRAM_EVICTION_ORDER_H_
#define EMBANK_TIERS_DRAM_EVICTION_ORDER_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/check.h"
#include "tiers/row/row_header.h"

namespace embank {

// The values are those of the C API.
enum class EvictionPolicy : int32_t { kLru = 0, kClock = 1, kLfu = 2 };

inline constexpr uint32_t kNoVictim = 0xFFFFFFFF;
// Under LFU the turn of a row is at most so many rounds away (docs/decisions/0035-lru-and-lfu.md).
inline constexpr uint32_t kRoundsAheadMax = 16;
// The rings: that of this round, of each round ahead, and the one aside.
inline constexpr uint32_t kEvictionRings = 1 + kRoundsAheadMax + 1;
// All numbers of slots are below this.
inline constexpr uint32_t kEvictionSlotsMax = kNoVictim - kEvictionRings;
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
//   bool TakeReferenced(uint32_t slot);    CLOCK, LFU: whether the slot's row was looked up since
//                                          this was last asked; forgets it
//   bool IsReferenced(uint32_t slot);      the same, and does not forget it
//   uint32_t Heat(uint32_t slot);          LFU: the heat of the slot's row as of now
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

  // Adds a slot as one that was just looked up. Under CLOCK and LFU that lookup counts no second
  // time.
  void Add(uint32_t slot) {
    EMBANK_CHECK(slot < kEvictionSlotsMax);
    if (policy_ != EvictionPolicy::kLru) slots_->TakeReferenced(slot);
    Link(slot, RoundsUntilTurn(slot));
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

  // Returns the slot that leaves next, as far as can be told without a change of the order and of
  // what was looked up; kNoVictim.
  uint32_t Peek();

  // The number of slots in the order, those that stand aside included.
  uint64_t count() const { return count_; }

 private:
  static constexpr uint32_t kFirstEnd = kEvictionSlotsMax;
  static constexpr uint32_t kAsideEnd = kFirstEnd + kEvictionRings - 1;

  EvictionLinks& LinksOf(uint32_t number) {
    return number < kFirstEnd ? slots_->Links(number) : ends_[number - kFirstEnd];
  }
  // The end of the ring of a round: 0 is this round, 1 the next one.
  uint32_t EndOf(uint32_t round) const {
    return kFirstEnd + (this_round_ + round) % (kRoundsAheadMax + 1);
  }
  uint32_t RoundsUntilTurn(uint32_t slot) {
    if (policy_ != EvictionPolicy::kLfu) return 0;
    return std::clamp<uint32_t>(slots_->Heat(slot), 1, kRoundsAheadMax);
  }

  void Link(uint32_t slot, uint32_t round) { LinkBehind(EndOf(round), slot); }
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

  // Whether a slot whose turn has come is passed over; then it has a new place.
  bool PassesOver(uint32_t slot);
  void PutBackAsTheyWere();

  const EvictionPolicy policy_;
  Slots* const slots_;
  uint64_t count_ = 0;
  // Without LFU only the first is used, and the last, which is that of the ring aside.
  std::array<EvictionLinks, kEvictionRings> ends_;
  uint32_t this_round_ = 0;  // which of the ends is that of this round
};

template <typename Slots>
uint32_t EvictionOrder<Slots>::Victim() {
  const uint32_t rounds = policy_ == EvictionPolicy::kLfu ? kRoundsAheadMax + 1 : 1;
  uint32_t passed_over = 0;
  for (uint32_t empty_rounds = 0; empty_rounds < rounds;) {
    const uint32_t slot = LinksOf(EndOf(0)).previous;
    if (slot >= kFirstEnd) {
      this_round_ = (this_round_ + 1) % rounds;
      ++empty_rounds;
      continue;
    }
    if (passed_over == kPassedOverMax || !PassesOver(slot)) return slot;
    // It is in one of the rounds that come, maybe alone.
    ++passed_over;
    empty_rounds = 0;
  }
  return kNoVictim;
}

// A row that was used gets a later turn; if all were, the first of them is next.
template <typename Slots>
uint32_t EvictionOrder<Slots>::Peek() {
  const uint32_t rounds = policy_ == EvictionPolicy::kLfu ? kRoundsAheadMax + 1 : 1;
  uint32_t first = kNoVictim;
  uint32_t passed_over = 0;
  for (uint32_t round = 0; round < rounds; ++round) {
    for (uint32_t slot = LinksOf(EndOf(round)).previous; slot < kFirstEnd;
         slot = slots_->Links(slot).previous) {
      if (policy_ == EvictionPolicy::kLru || passed_over == kPassedOverMax) return slot;
      if (!slots_->IsReferenced(slot)) return slot;
      if (first == kNoVictim) first = slot;
      ++passed_over;
    }
  }
  return first;
}

template <typename Slots>
bool EvictionOrder<Slots>::PassesOver(uint32_t slot) {
  if (policy_ == EvictionPolicy::kLru || !slots_->TakeReferenced(slot)) return false;
  Unlink(slot);
  Link(slot, RoundsUntilTurn(slot));
  return true;
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
  if (policy_ == EvictionPolicy::kLru) return PutBackAsTheyWere();
  for (uint32_t slot = RemoveAside(); slot != kNoVictim; slot = RemoveAside()) Add(slot);
}

// The coldest were set aside, and the first of them first.
template <typename Slots>
void EvictionOrder<Slots>::PutBackAsTheyWere() {
  EvictionLinks& aside = LinksOf(kAsideEnd);
  EvictionLinks& end = LinksOf(EndOf(0));
  if (aside.next == kAsideEnd) return;
  LinksOf(end.previous).next = aside.next;
  LinksOf(aside.next).previous = end.previous;
  LinksOf(aside.previous).next = EndOf(0);
  end.previous = aside.previous;
  aside = {kAsideEnd, kAsideEnd};
}

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_EVICTION_ORDER_H_
