// Rows in DRAM: type-stable slabs. Knows slots, never keys.
//
//   a page of a slot class:   | slot | slot | ... | slot | rest |   slots of one size
//   of one with notes:        | slot | ... | slot | rest | dirty bits | note | ... | note |
//
// A page belongs to one slot class while any of its slots is taken; an empty page goes back to the
// pool of pages (tiers/dram/page_pool.h), from which any class may take it. Addresses never move
// while the tier lives.
#ifndef EMBANK_TIERS_DRAM_DRAM_TIER_H_
#define EMBANK_TIERS_DRAM_DRAM_TIER_H_

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
#include "tiers/dram/page_pool.h"
#include "tiers/dram/slab_page.h"
#include "tiers/row/location.h"

namespace embank {

// The addresses of rows; a local copy stays in a register.
struct RowAddresses {
  std::byte* base;
  // The slot of a row with a header (tiers/row/location.h).
  std::byte* At(Location location) const {
    return base + DramSlotOf(location).units * kLocationUnitBytes;
  }
};

class DramTier {
 public:
  static constexpr uint64_t kPageBytes = kSlabPageBytes;
  static constexpr uint64_t kAddressBytesMax = (uint64_t{1} << kLocationBits) * kLocationUnitBytes;

  // Reserves addresses for `address_bytes_max` of rows (rounded up to pages, at most
  // kAddressBytesMax) and no memory but a record per page. source, budget and epochs must outlive
  // it.
  // kResourceExhausted.
  static StatusOr<std::unique_ptr<DramTier>> Create(MemorySource* source, MemoryBudget* budget,
                                                    EpochTable* epochs, uint64_t address_bytes_max);
  DramTier(const DramTier&) = delete;
  DramTier& operator=(const DramTier&) = delete;

  // Adds a class of slots of `slot_bytes`: a multiple of 16, at most a page, together with a note
  // and a word of dirty bits if it has notes (tiers/dram/slot_notes.h).
  SlotClass AddClass(uint32_t slot_bytes, bool has_notes = false);
  // The class kHeaderClass is always there: slots of a row header, with notes. No page of it is
  // ever closed.
  static constexpr uint32_t kHeaderSlotBytes = 16;

  // The pages, and their memory.
  PagePool* pool() { return &pool_; }
  const PagePool* pool() const { return &pool_; }

  // Says whether a class may get a further page.
  enum class Pages { kMayAdd, kAsTheyAre };
  // Takes up to out.size() free slots of a class, whose contents are undefined, and returns how
  // many. Fewer only if the budget or the machine has no further page, or none may be added to the
  // class. May wait for readers; the caller is none. Thread-safe.
  size_t Allocate(SlotClass slot_class, std::span<Location> out, Pages pages = Pages::kMayAdd);
  // Gives a class a page that is empty. False: there is none. Waits like Allocate.
  bool GiveEmptyPage(SlotClass slot_class);

  // Gives slots back. Thread-safe.
  void Free(SlotClass slot_class, std::span<const Location> slots);

  // ---- emptying a page: its slots are not given out while it is closed ----

  // Closes the page with the fewest taken slots among the next few behind the last one that was
  // closed: of `slot_class`, or of every class with notes. None: there is no such page. One page is
  // closed at a time. Thread-safe.
  std::optional<uint32_t> ClosePage(std::optional<SlotClass> slot_class);
  // Whether a page is still closed. It is open again when its last slot is given back.
  bool IsClosed(uint32_t page) const;
  // Ends the closing of a page. True: it has become empty.
  bool ReopenPage(uint32_t page);
  // Pages that a class has. Thread-safe.
  uint64_t PagesOf(SlotClass slot_class) const;
  static uint32_t PageOf(Location location) {
    return static_cast<uint32_t>(location.units * kLocationUnitBytes / kPageBytes);
  }

  // The bytes of a taken slot, aligned to 16. The caller guards them.
  std::byte* Row(Location location) const { return rows().At(location); }
  RowAddresses rows() const { return {base_}; }

  // The number of pages that were ever used. Thread-safe.
  uint32_t pages_begun() const;
  struct PageSlots {
    SlotClass slot_class;
    uint32_t slot_bytes;
    uint32_t slots;
    uint64_t* dirty_words;  // one bit for each slot, read and written atomically; nullptr: no notes
  };
  // Returns the slots of a page that were ever taken for the class that has it; none: they are
  // free. Their memory stays while *reader lives, which this call makes. A thread that waits for
  // readers holds the lock that this call takes (PagePool::mutex). Thread-safe; the caller is no
  // reader yet.
  PageSlots SlotsOf(uint32_t page, std::optional<EpochTable::Guard>* reader) const;
  // One of those slots.
  static Location SlotAt(uint32_t page, const PageSlots& slots, uint32_t slot) {
    return {(page * kPageBytes + uint64_t{slot} * slots.slot_bytes) / kLocationUnitBytes};
  }

  static constexpr uint64_t kNoteBytes = 16;
  static constexpr uint64_t kWordBits = 64;
  static constexpr uint64_t kWordBytes = sizeof(uint64_t);
  // With notes, the last word of dirty bits may be used in part: a page has that many bytes less
  // for slots, their notes and bits.
  static constexpr uint64_t SlotsPerPage(uint64_t slot_bytes, bool has_notes = false) {
    if (!has_notes) return kPageBytes / slot_bytes;
    constexpr uint64_t kShared = kPageBytes - kWordBytes;
    return kShared * kWordBits / ((slot_bytes + kNoteBytes) * kWordBits + kWordBytes);
  }
  // The words of dirty bits for the slots of a page.
  static constexpr uint64_t DirtyWords(uint64_t slots) {
    return (slots + kWordBits - 1) / kWordBits;
  }
  // Those of a page that has so many slots with notes, before the first note.
  static uint64_t* DirtyWordsAt(std::byte* page, uint64_t slots) {
    std::byte* const notes = page + kPageBytes - slots * kNoteBytes;
    return reinterpret_cast<uint64_t*>(notes) - DirtyWords(slots);
  }
  // The bytes that Create charges before any row: the record of each page.
  static constexpr uint64_t FixedBytes(uint64_t address_bytes_max) {
    return AlignedBuffer::ChargedBytes(PagePool::RecordBytes(address_bytes_max));
  }

 private:
  struct Class {
    uint32_t slot_bytes;
    uint32_t slots_per_page;
    bool has_notes;
    uint64_t pages = 0;
    PageList pages_with_free_slots = {};  // with a free slot that may be given out
  };
  // ClosePage compares so many pages.
  static constexpr uint32_t kCandidatePages = 8;

  DramTier(MemoryBudget* budget, EpochTable* epochs, AddressRange addresses, AlignedBuffer records);

  bool AddPage(SlotClass slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex);
  Class& ClassOf(SlotClass slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex) {
    return slot_class == kHeaderClass ? header_class_ : classes_[slot_class];
  }
  const Class& ClassOf(SlotClass slot_class) const EMBANK_SHARED_LOCKS_REQUIRED(pool_.mutex) {
    return slot_class == kHeaderClass ? header_class_ : classes_[slot_class];
  }
  void ClearDirtyBits(PageIndex page, uint64_t slots) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex);
  Location TakeSlot(PageIndex page, uint32_t slot_bytes)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex);
  void FreeSlot(SlotClass slot_class, Location slot) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(pool_.mutex);

  std::byte* const base_;
  EpochTable* const epochs_;
  PagePool pool_;
  std::vector<Class> classes_ EMBANK_GUARDED_BY(pool_.mutex);
  Class header_class_ EMBANK_GUARDED_BY(pool_.mutex) = {
      .slot_bytes = kHeaderSlotBytes,
      .slots_per_page = static_cast<uint32_t>(SlotsPerPage(kHeaderSlotBytes, true)),
      .has_notes = true};
  PageIndex close_hand_ EMBANK_GUARDED_BY(pool_.mutex) = 0;  // where ClosePage continues
};

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_DRAM_TIER_H_
