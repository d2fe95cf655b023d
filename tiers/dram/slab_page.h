// A slab page: 2 MiB of slots of one class. This file has its record, which is kept apart from the
// slots, and lists of pages, which are linked through their records.
#ifndef EMBANK_TIERS_DRAM_SLAB_PAGE_H_
#define EMBANK_TIERS_DRAM_SLAB_PAGE_H_

#include <cstdint>
#include <span>

#include "base/check.h"
#include "base/memory/memory.h"

namespace embank {

using SlotClass = uint16_t;
inline constexpr SlotClass kNoSlotClass = 0xFFFF;
// The slots of headers whose rows are in device memory.
inline constexpr SlotClass kHeaderClass = 0xFFFE;

inline constexpr uint64_t kSlabPageBytes = kHugePageBytes;

using PageIndex = uint32_t;
inline constexpr PageIndex kNoPage = 0xFFFFFFFF;

// All zeros for a page that was never used.
struct SlabPage {
  static constexpr uint32_t kNoSlot = 0xFFFFFFFF;

  PageIndex next;
  PageIndex previous;
  uint32_t taken_slots;
  uint32_t fresh_slot;   // slots from here on were never taken
  uint32_t free_slot;    // head of the list through the free slots' first words
  SlotClass slot_class;  // also of an empty page: its last
  uint16_t closed;       // its free slots are in no list, and are not given out
  uint64_t empty_epoch;  // when the last of its slots was given back
};
static_assert(sizeof(SlabPage) == 32);

// Pages in the order in which they were appended. A page is in one list at most. Guarded by the
// lock of the records.
class PageList {
 public:
  bool IsEmpty() const { return first_ == kNoPage; }
  // The first page of the list; kNoPage: the list is empty.
  PageIndex first() const { return first_; }

  // `pages` are the records of all pages; the page is in no list.
  void Append(std::span<SlabPage> pages, PageIndex page) {
    EMBANK_CHECK(page < pages.size() && page != last_);
    pages[page].next = kNoPage;
    pages[page].previous = last_;
    (last_ == kNoPage ? first_ : pages[last_].next) = page;
    last_ = page;
  }
  // The page must be in this list.
  void Remove(std::span<SlabPage> pages, PageIndex page) {
    EMBANK_CHECK(!IsEmpty());
    const SlabPage& record = pages[page];
    EMBANK_CHECK((record.previous == kNoPage) == (page == first_));
    EMBANK_CHECK((record.next == kNoPage) == (page == last_));
    (record.previous == kNoPage ? first_ : pages[record.previous].next) = record.next;
    (record.next == kNoPage ? last_ : pages[record.next].previous) = record.previous;
  }

 private:
  PageIndex first_ = kNoPage;
  PageIndex last_ = kNoPage;
};

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_SLAB_PAGE_H_
