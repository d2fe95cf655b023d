#include "tiers/dram/page_pool.h"

#include <utility>

#include "base/check.h"

namespace embank {

PagePool::PagePool(MemoryBudget* budget, EpochTable* epochs, AddressRange addresses,
                   AlignedBuffer records)
    : budget_(budget),
      epochs_(epochs),
      addresses_(std::move(addresses)),
      records_(std::move(records)),
      pages_(records_.As<SlabPage>()) {
  EMBANK_CHECK(addresses_.bytes() % kSlabPageBytes == 0);
}

PagePool::~PagePool() { budget_->Release(committed_bytes()); }

// Takes the longest empty page if that needs no wait, else new memory, else waits for the page.
PageIndex PagePool::TakePage(SlotClass slot_class) {
  const PageIndex page = empty_.first();
  if (page == kNoPage) return CommitPage();
  // For slots of the same size readers know from the versions in them that a row has changed.
  const bool at_once =
      pages_[page].slot_class == slot_class || epochs_->HasPassed(pages_[page].empty_epoch);
  if (!at_once) {
    const PageIndex fresh = CommitPage();
    if (fresh != kNoPage) return fresh;
    epochs_->WaitUntilPassed(pages_[page].empty_epoch);
  }
  RemoveEmpty(page);
  return page;
}

PageIndex PagePool::CommitPage() {
  const bool recycled = !released_.IsEmpty();
  const PageIndex page = recycled ? released_.first() : begun_;
  if (!recycled && page == addresses_.bytes() / kSlabPageBytes) return kNoPage;
  EMBANK_CHECK(page < addresses_.bytes() / kSlabPageBytes);
  const uint64_t kept_free_bytes = kept_free_bytes_.load(std::memory_order_relaxed);
  if (!budget_->Charge(kSlabPageBytes, kept_free_bytes).ok()) return kNoPage;
  if (!addresses_.Commit(page * kSlabPageBytes, kSlabPageBytes).ok()) {
    budget_->Release(kSlabPageBytes);
    return kNoPage;
  }
  if (recycled) {
    released_.Remove(pages_, page);
  } else {
    ++begun_;
  }
  committed_bytes_ += kSlabPageBytes;
  return page;
}

void PagePool::GivePage(PageIndex page) {
  EMBANK_CHECK(page < begun_ && pages_[page].taken_slots == 0);
  pages_[page].empty_epoch = epochs_->Retire();
  empty_.Append(pages_, page);
  empty_bytes_.fetch_add(kSlabPageBytes, std::memory_order_relaxed);
  EMBANK_CHECK(empty_bytes() <= committed_bytes_);
}

void PagePool::RemoveEmpty(PageIndex page) {
  EMBANK_CHECK(pages_[page].taken_slots == 0);
  EMBANK_CHECK(empty_bytes() >= kSlabPageBytes);
  empty_.Remove(pages_, page);
  empty_bytes_.fetch_sub(kSlabPageBytes, std::memory_order_relaxed);
}

uint64_t PagePool::ReleaseEmptyPages() {
  MutexLock lock(&mutex);
  uint64_t bytes = 0;
  while (!empty_.IsEmpty()) {
    const PageIndex page = empty_.first();
    epochs_->WaitUntilPassed(pages_[page].empty_epoch);
    RemoveEmpty(page);
    addresses_.Decommit(page * kSlabPageBytes, kSlabPageBytes);
    released_.Append(pages_, page);
    bytes += kSlabPageBytes;
  }
  EMBANK_CHECK(bytes <= committed_bytes_);
  committed_bytes_ -= bytes;
  budget_->Release(bytes);
  return bytes;
}

uint64_t PagePool::committed_bytes() const {
  MutexLock lock(&mutex);
  return committed_bytes_;
}

}  // namespace embank
