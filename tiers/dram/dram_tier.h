// Rows in DRAM: type-stable slabs. Knows slots, never keys.
//
//   address range, reserved once:  | page 0 | page 1 | ... | page n |   pages of 2 MiB
//   a page of a slot class:        | slot | slot | ... | slot | rest |  slots of one size
//
// A page belongs to one slot class while any of its slots is taken; an empty page goes back to the
// pool, from which any class may take it once no reader is left who could still see its rows.
// Addresses never move while the tier lives.
#ifndef EMBANK_TIERS_DRAM_DRAM_TIER_H_
#define EMBANK_TIERS_DRAM_DRAM_TIER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/memory/address_range.h"
#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/epoch.h"
#include "base/threads/mutex.h"
#include "tiers/row/location.h"

namespace embank {

using SlotClass = uint16_t;

// Where rows lie; a copy of one's own stays in a register.
struct RowAddresses {
  std::byte* base;
  std::byte* At(Location location) const { return base + location.units * kLocationUnitBytes; }
};

class DramTier {
 public:
  static constexpr uint64_t kPageBytes = kHugePageBytes;
  static constexpr uint64_t kAddressBytesMax = (uint64_t{1} << kLocationBits) * kLocationUnitBytes;

  // Reserves addresses for `address_bytes_max` of rows (rounded up to pages, at most
  // kAddressBytesMax) and no memory but a record per page. source, budget and epochs must outlive
  // it.
  // kResourceExhausted.
  static StatusOr<std::unique_ptr<DramTier>> Create(MemorySource* source, MemoryBudget* budget,
                                                    EpochTable* epochs, uint64_t address_bytes_max);
  ~DramTier();
  DramTier(const DramTier&) = delete;
  DramTier& operator=(const DramTier&) = delete;

  // A new class of slots of `slot_bytes`: a multiple of 16, at most a page; and that with a note,
  // if it has notes (tiers/dram/slot_notes.h).
  SlotClass AddClass(uint32_t slot_bytes, bool has_notes = false);

  // New pages leave this much of the budget to others. Thread-safe.
  void KeepFree(uint64_t bytes) { kept_free_bytes_.store(bytes, std::memory_order_relaxed); }

  // Whether a class may get a further page.
  enum class Pages { kMayAdd, kAsTheyAre };
  // Takes up to out.size() free slots of a class, whose contents are undefined, and says how many
  // it got; fewer only when the budget or the machine has no further page, or none may be added to
  // the class. May wait for readers; the caller is none. Thread-safe.
  size_t Allocate(SlotClass slot_class, std::span<Location> out, Pages pages = Pages::kMayAdd);
  // Gives a class a page that is empty. False: there is none. As Allocate.
  bool GiveEmptyPage(SlotClass slot_class);

  // Gives slots back. Thread-safe.
  void Free(SlotClass slot_class, std::span<const Location> slots);

  // Gives the memory of empty pages back to the budget; how many bytes. Waits for readers; the
  // caller is none. Thread-safe.
  uint64_t ReleaseEmptyPages();

  // ---- emptying a page: its slots are not given out while it is closed ----

  // Closes the page with the fewest taken slots among the next few behind the last one that was
  // closed: of `slot_class`, or of every class with notes. None: there is no such page. One page is
  // closed at a time. Thread-safe.
  std::optional<uint32_t> ClosePage(std::optional<SlotClass> slot_class);
  // Whether a page is still closed: it stops being so when its last slot is given back.
  bool IsClosed(uint32_t page) const;
  // Ends the closing of a page. True: it has become empty.
  bool ReopenPage(uint32_t page);
  // Pages that a class has. Thread-safe.
  uint64_t PagesOf(SlotClass slot_class) const;
  // Bytes of pages without a taken slot that hold memory. Thread-safe.
  uint64_t empty_bytes() const { return empty_bytes_.load(std::memory_order_relaxed); }
  static uint32_t PageOf(Location location) {
    return static_cast<uint32_t>(location.units * kLocationUnitBytes / kPageBytes);
  }

  // The bytes of a taken slot, aligned to 16. The caller guards them.
  std::byte* Row(Location location) const { return rows().At(location); }
  RowAddresses rows() const { return {base_}; }

  // How far pages have been begun. Thread-safe.
  uint32_t pages_begun() const;
  struct PageSlots {
    SlotClass slot_class;
    uint32_t slot_bytes;
    uint32_t slots;
  };
  // The slots of a page that were ever taken for the class that has it; none: they are free. Their
  // memory stays while *reader is there, which this makes: who waits for readers has the lock that
  // this takes. Thread-safe; the caller is no reader yet.
  PageSlots SlotsOf(uint32_t page, std::optional<EpochTable::Guard>* reader) const;
  // One of them.
  static Location SlotAt(uint32_t page, const PageSlots& slots, uint32_t slot) {
    return {(page * kPageBytes + uint64_t{slot} * slots.slot_bytes) / kLocationUnitBytes};
  }

  // Bytes of memory behind the pages, empty ones included. Thread-safe.
  uint64_t committed_bytes() const;
  // The memory of the page records.
  uint64_t record_bytes() const { return records_.size_bytes(); }

  static constexpr uint64_t kNoteBytes = 16;
  static constexpr uint64_t SlotsPerPage(uint64_t slot_bytes, bool has_notes = false) {
    return kPageBytes / (slot_bytes + (has_notes ? kNoteBytes : 0));
  }
  // What Create charges before any row: the record per page.
  static constexpr uint64_t FixedBytes(uint64_t address_bytes_max);

 private:
  using PageIndex = uint32_t;
  static constexpr PageIndex kNoPage = 0xFFFFFFFF;
  static constexpr uint32_t kNoSlot = 0xFFFFFFFF;
  static constexpr SlotClass kNoClass = 0xFFFF;

  // Pages with a free slot are linked per class, empty committed pages in the pool.
  struct Page {
    PageIndex next;
    PageIndex previous;
    uint32_t taken_slots;
    uint32_t fresh_slot;   // slots from here on were never taken
    uint32_t free_slot;    // head of the list through the free slots' first words
    SlotClass slot_class;  // also of an empty page: its last
    uint16_t closed;       // its free slots are in no list, and are not given out
    uint64_t empty_epoch;  // when the last of its slots was given back
  };
  static_assert(sizeof(Page) == 32);
  struct PageList {
    PageIndex first = kNoPage;
    PageIndex last = kNoPage;
  };
  struct Class {
    uint32_t slot_bytes;
    uint32_t slots_per_page;
    bool has_notes;
    uint64_t pages = 0;
    PageList pages_with_room = {};
  };
  // Pages that ClosePage compares.
  static constexpr uint32_t kCandidatePages = 8;

  DramTier(MemoryBudget* budget, EpochTable* epochs, AddressRange addresses, AlignedBuffer records);

  bool AddPage(SlotClass slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PageIndex TakeEmptyPage(SlotClass slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  PageIndex CommitPage() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Location TakeSlot(PageIndex page, uint32_t slot_bytes) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void FreeSlot(SlotClass slot_class, Location slot) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void AddEmpty(PageIndex page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RemoveEmpty(PageIndex page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Append(PageList* list, PageIndex page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(PageList* list, PageIndex page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::byte* PageAddress(PageIndex page) const { return base_ + page * kPageBytes; }

  MemoryBudget* const budget_;
  EpochTable* const epochs_;
  const AddressRange addresses_;
  std::byte* const base_;
  AlignedBuffer records_;  // Page per page of the range
  std::atomic<uint64_t> kept_free_bytes_{0};
  std::atomic<uint64_t> empty_bytes_{0};

  mutable Mutex mutex_;
  const std::span<Page> pages_ EMBANK_GUARDED_BY(mutex_);
  std::vector<Class> classes_ EMBANK_GUARDED_BY(mutex_);
  PageIndex pages_begun_ EMBANK_GUARDED_BY(mutex_) = 0;  // pages from here on were never committed
  PageList empty_pages_ EMBANK_GUARDED_BY(mutex_);       // with memory, the longest empty first
  PageList released_pages_ EMBANK_GUARDED_BY(mutex_);    // without
  PageIndex close_hand_ EMBANK_GUARDED_BY(mutex_) = 0;   // where ClosePage goes on
  uint64_t committed_bytes_ EMBANK_GUARDED_BY(mutex_) = 0;
};

constexpr uint64_t DramTier::FixedBytes(uint64_t address_bytes_max) {
  return AlignedBuffer::ChargedBytes(RoundUp(address_bytes_max, kPageBytes) / kPageBytes *
                                     sizeof(Page));
}

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_DRAM_TIER_H_
