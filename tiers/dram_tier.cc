#include "tiers/dram_tier.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"

namespace embank {

absl::StatusOr<std::unique_ptr<DramTier>> DramTier::Create(MemorySource* source,
                                                           MemoryBudget* budget,
                                                           uint64_t address_bytes_max) {
  EMBANK_CHECK(address_bytes_max > 0 && address_bytes_max <= kAddressBytesMax);
  const uint64_t address_bytes = RoundUp(address_bytes_max, kPageBytes);
  EMBANK_ASSIGN_OR_RETURN(
      AlignedBuffer records,
      AlignedBuffer::Create(source, budget, address_bytes / kPageBytes * sizeof(Page)));
  EMBANK_ASSIGN_OR_RETURN(std::byte* const base, source->Reserve(address_bytes));
  return std::unique_ptr<DramTier>(
      new DramTier(source, budget, base, address_bytes, std::move(records)));
}

DramTier::DramTier(MemorySource* source, MemoryBudget* budget, std::byte* base,
                   uint64_t address_bytes, AlignedBuffer records)
    : source_(source),
      budget_(budget),
      base_(base),
      address_bytes_(address_bytes),
      records_(std::move(records)),
      pages_(records_.As<Page>()) {}

DramTier::~DramTier() {
  source_->Unmap(base_, address_bytes_);
  budget_->Release(committed_bytes());
}

SlotClass DramTier::AddClass(uint32_t slot_bytes) {
  EMBANK_CHECK(slot_bytes > 0 && slot_bytes % kLocationUnitBytes == 0 && slot_bytes <= kPageBytes);
  MutexLock lock(&mutex_);
  EMBANK_CHECK(classes_.size() < kNoClass);
  classes_.push_back({.slot_bytes = slot_bytes, .pages_with_room = kNoPage});
  return static_cast<SlotClass>(classes_.size() - 1);
}

size_t DramTier::Allocate(SlotClass slot_class, std::span<Location> out) {
  MutexLock lock(&mutex_);
  Class& cls = classes_[slot_class];
  size_t taken = 0;
  while (taken < out.size()) {
    if (cls.pages_with_room == kNoPage && !AddPage(slot_class)) break;
    const PageIndex page = cls.pages_with_room;
    out[taken++] = TakeSlot(page, cls.slot_bytes);
    if (pages_[page].taken_slots == SlotsPerPage(cls.slot_bytes)) {
      Unlink(&cls.pages_with_room, page);
    }
  }
  return taken;
}

void DramTier::Free(SlotClass slot_class, std::span<const Location> slots) {
  MutexLock lock(&mutex_);
  for (const Location slot : slots) FreeSlot(slot_class, slot);
}

// Gives a class one empty page: one from the pool, else a newly committed one.
bool DramTier::AddPage(SlotClass slot_class) {
  PageIndex page = empty_pages_;
  if (page != kNoPage) {
    Unlink(&empty_pages_, page);
  } else {
    page = CommitPage();
    if (page == kNoPage) return false;
  }
  pages_[page].taken_slots = 0;
  pages_[page].fresh_slot = 0;
  pages_[page].free_slot = kNoSlot;
  pages_[page].slot_class = slot_class;
  Link(&classes_[slot_class].pages_with_room, page);
  return true;
}

DramTier::PageIndex DramTier::CommitPage() {
  const bool recycled = released_pages_ != kNoPage;
  const PageIndex page = recycled ? released_pages_ : pages_begun_;
  if (!recycled && page == address_bytes_ / kPageBytes) return kNoPage;
  if (!budget_->Charge(kPageBytes).ok()) return kNoPage;
  if (!source_->Commit(PageAddress(page), kPageBytes).ok()) {
    budget_->Release(kPageBytes);
    return kNoPage;
  }
  if (recycled) {
    Unlink(&released_pages_, page);
  } else {
    ++pages_begun_;
  }
  committed_bytes_ += kPageBytes;
  return page;
}

Location DramTier::TakeSlot(PageIndex page, uint32_t slot_bytes) {
  Page& record = pages_[page];
  uint32_t slot = record.free_slot;
  std::byte* const begin = PageAddress(page);
  if (slot != kNoSlot) {
    std::memcpy(&record.free_slot, begin + uint64_t{slot} * slot_bytes, sizeof record.free_slot);
  } else {
    slot = record.fresh_slot++;
  }
  ++record.taken_slots;
  return {(page * kPageBytes + uint64_t{slot} * slot_bytes) / kLocationUnitBytes};
}

void DramTier::FreeSlot(SlotClass slot_class, Location location) {
  const uint64_t offset_bytes = location.units * kLocationUnitBytes;
  const auto page = static_cast<PageIndex>(offset_bytes / kPageBytes);
  Class& cls = classes_[slot_class];
  Page& record = pages_[page];
  EMBANK_CHECK(record.slot_class == slot_class && record.taken_slots > 0);
  const auto slot = static_cast<uint32_t>(offset_bytes % kPageBytes / cls.slot_bytes);
  std::memcpy(Row(location), &record.free_slot, sizeof record.free_slot);
  record.free_slot = slot;
  const bool was_full = record.taken_slots == SlotsPerPage(cls.slot_bytes);
  --record.taken_slots;
  if (was_full) Link(&cls.pages_with_room, page);
  if (record.taken_slots == 0) {
    Unlink(&cls.pages_with_room, page);
    record.slot_class = kNoClass;
    Link(&empty_pages_, page);
  }
}

uint64_t DramTier::ReleaseEmptyPages() {
  MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  while (empty_pages_ != kNoPage) {
    const PageIndex page = empty_pages_;
    Unlink(&empty_pages_, page);
    source_->Decommit(PageAddress(page), kPageBytes);
    Link(&released_pages_, page);
    bytes += kPageBytes;
  }
  committed_bytes_ -= bytes;
  budget_->Release(bytes);
  return bytes;
}

void DramTier::Link(PageIndex* head, PageIndex page) {
  pages_[page].previous = kNoPage;
  pages_[page].next = *head;
  if (*head != kNoPage) pages_[*head].previous = page;
  *head = page;
}

void DramTier::Unlink(PageIndex* head, PageIndex page) {
  const Page& record = pages_[page];
  if (record.previous == kNoPage) {
    *head = record.next;
  } else {
    pages_[record.previous].next = record.next;
  }
  if (record.next != kNoPage) pages_[record.next].previous = record.previous;
}

uint64_t DramTier::committed_bytes() const {
  MutexLock lock(&mutex_);
  return committed_bytes_;
}

}  // namespace embank
