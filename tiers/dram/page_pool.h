// The slab pages of a tier: their records, their memory, and the pages that no slot class has.
//
//   address range, reserved once:  | page 0 | page 1 | ... | page n |   pages of 2 MiB
//
//   page      memory   TakePage gives it
//   --------  -------  ----------------------------------------------------------------------
//   taken     yes      not: a slot class has it
//   empty     yes      first, once no reader is left who could still see the rows that it had
//   released  no       where no page is empty, as fresh ones
//   fresh     no       where no page is empty or released; it was never taken
#ifndef EMBANK_TIERS_DRAM_PAGE_POOL_H_
#define EMBANK_TIERS_DRAM_PAGE_POOL_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/memory/address_range.h"
#include "base/memory/aligned_buffer.h"
#include "base/memory/memory.h"
#include "base/threads/epoch.h"
#include "base/threads/mutex.h"
#include "tiers/dram/slab_page.h"

namespace embank {

class PagePool {
 public:
  // `records` has the memory of a SlabPage for each page of the addresses. Budget and epochs
  // outlive it.
  PagePool(MemoryBudget* budget, EpochTable* epochs, AddressRange addresses, AlignedBuffer records);
  ~PagePool();
  PagePool(const PagePool&) = delete;
  PagePool& operator=(const PagePool&) = delete;

  // Guards the records of all pages, and the data that the tier has in them. A thread that waits
  // for readers holds it.
  mutable Mutex mutex;

  // ---- under the lock ----

  std::span<SlabPage> pages() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return pages_; }
  const SlabPage& page(PageIndex page) const EMBANK_SHARED_LOCKS_REQUIRED(mutex) {
    return pages_[page];
  }
  // The number of pages that were ever used; pages behind them are fresh.
  PageIndex begun() const EMBANK_SHARED_LOCKS_REQUIRED(mutex) { return begun_; }
  bool has_empty() const EMBANK_SHARED_LOCKS_REQUIRED(mutex) { return !empty_.IsEmpty(); }

  // Returns a page for a slot class; kNoPage: the pool, the budget and the machine have none. May
  // wait for readers; the caller is none.
  PageIndex TakePage(SlotClass slot_class) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  // Takes a page back when its last slot was given back.
  void GivePage(PageIndex page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  // ---- thread-safe ----

  // The address of page 0.
  std::byte* base() const { return addresses_.data(); }
  // Further memory is taken only while so many bytes of the budget stay for others.
  void KeepFree(uint64_t bytes) { kept_free_bytes_.store(bytes, std::memory_order_relaxed); }
  // Gives the memory of empty pages back to the budget; returns the bytes. Waits for readers; the
  // caller is none.
  uint64_t ReleaseEmptyPages();
  // The bytes of memory behind the pages, empty ones included; and those of empty pages alone.
  uint64_t committed_bytes() const;
  uint64_t empty_bytes() const { return empty_bytes_.load(std::memory_order_relaxed); }
  // The memory of the records.
  uint64_t record_bytes() const { return records_.size_bytes(); }

  // The bytes of the records for a range of addresses.
  static constexpr uint64_t RecordBytes(uint64_t address_bytes) {
    return RoundUp(address_bytes, kSlabPageBytes) / kSlabPageBytes * sizeof(SlabPage);
  }

 private:
  PageIndex CommitPage() EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  void RemoveEmpty(PageIndex page) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex);

  MemoryBudget* const budget_;
  EpochTable* const epochs_;
  const AddressRange addresses_;
  AlignedBuffer records_;  // SlabPage per page of the range
  std::atomic<uint64_t> kept_free_bytes_{0};
  std::atomic<uint64_t> empty_bytes_{0};

  const std::span<SlabPage> pages_ EMBANK_GUARDED_BY(mutex);
  PageIndex begun_ EMBANK_GUARDED_BY(mutex) = 0;
  PageList empty_ EMBANK_GUARDED_BY(mutex);  // the longest empty first
  PageList released_ EMBANK_GUARDED_BY(mutex);
  uint64_t committed_bytes_ EMBANK_GUARDED_BY(mutex) = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_PAGE_POOL_H_
