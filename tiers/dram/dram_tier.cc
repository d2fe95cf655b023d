#include "tiers/dram/dram_tier.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "tiers/row/row_copy.h"

namespace embank {

StatusOr<std::unique_ptr<DramTier>> DramTier::Create(MemorySource* source, MemoryBudget* budget,
                                                     EpochTable* epochs,
                                                     uint64_t address_bytes_max) {
  EMBANK_CHECK(address_bytes_max > 0 && address_bytes_max <= kAddressBytesMax);
  const uint64_t address_bytes = RoundUp(address_bytes_max, kPageBytes);
  EMBANK_ASSIGN_OR_RETURN(
      AlignedBuffer records,
      AlignedBuffer::Create(source, budget, address_bytes / kPageBytes * sizeof(Page)));
  EMBANK_ASSIGN_OR_RETURN(AddressRange addresses, AddressRange::Reserve(source, address_bytes));
  return std::unique_ptr<DramTier>(
      new DramTier(budget, epochs, std::move(addresses), std::move(records)));
}

DramTier::DramTier(MemoryBudget* budget, EpochTable* epochs, AddressRange addresses,
                   AlignedBuffer records)
    : budget_(budget),
      epochs_(epochs),
      addresses_(std::move(addresses)),
      base_(addresses_.data()),
      records_(std::move(records)),
      pages_(records_.As<Page>()) {}

DramTier::~DramTier() { budget_->Release(committed_bytes()); }

SlotClass DramTier::AddClass(uint32_t slot_bytes, bool has_notes) {
  EMBANK_CHECK(slot_bytes > 0 && slot_bytes % kLocationUnitBytes == 0);
  const uint64_t slots_per_page = SlotsPerPage(slot_bytes, has_notes);
  EMBANK_CHECK(slots_per_page > 0);
  MutexLock lock(&mutex_);
  EMBANK_CHECK(classes_.size() < kNoClass);
  classes_.push_back({.slot_bytes = slot_bytes,
                      .slots_per_page = static_cast<uint32_t>(slots_per_page),
                      .has_notes = has_notes});
  return static_cast<SlotClass>(classes_.size() - 1);
}

size_t DramTier::Allocate(SlotClass slot_class, std::span<Location> out, Pages pages) {
  MutexLock lock(&mutex_);
  Class& cls = classes_[slot_class];
  size_t taken = 0;
  while (taken < out.size()) {
    const bool is_full = cls.pages_with_room.first == kNoPage;
    if (is_full && (pages == Pages::kAsTheyAre || !AddPage(slot_class))) break;
    const PageIndex page = cls.pages_with_room.first;
    out[taken++] = TakeSlot(page, cls.slot_bytes);
    if (pages_[page].taken_slots == cls.slots_per_page) Unlink(&cls.pages_with_room, page);
  }
  return taken;
}

bool DramTier::GiveEmptyPage(SlotClass slot_class) {
  MutexLock lock(&mutex_);
  return empty_pages_.first != kNoPage && AddPage(slot_class);
}

void DramTier::Free(SlotClass slot_class, std::span<const Location> slots) {
  MutexLock lock(&mutex_);
  for (const Location slot : slots) FreeSlot(slot_class, slot);
}

// Gives a class one empty page.
bool DramTier::AddPage(SlotClass slot_class) {
  const PageIndex page = TakeEmptyPage(slot_class);
  if (page == kNoPage) return false;
  pages_[page].taken_slots = 0;
  pages_[page].fresh_slot = 0;
  pages_[page].free_slot = kNoSlot;
  pages_[page].slot_class = slot_class;
  pages_[page].closed = 0;
  ++classes_[slot_class].pages;
  Append(&classes_[slot_class].pages_with_room, page);
  return true;
}

// The longest empty page of the pool if it can be had at once, else new memory, else wait for it.
DramTier::PageIndex DramTier::TakeEmptyPage(SlotClass slot_class) {
  const PageIndex page = empty_pages_.first;
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

DramTier::PageIndex DramTier::CommitPage() {
  const bool recycled = released_pages_.first != kNoPage;
  const PageIndex page = recycled ? released_pages_.first : pages_begun_;
  if (!recycled && page == addresses_.bytes() / kPageBytes) return kNoPage;
  const uint64_t kept_free_bytes = kept_free_bytes_.load(std::memory_order_relaxed);
  if (!budget_->Charge(kPageBytes, kept_free_bytes).ok()) return kNoPage;
  if (!addresses_.Commit(page * kPageBytes, kPageBytes).ok()) {
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
    record.free_slot = static_cast<uint32_t>(LoadRowWord(begin + uint64_t{slot} * slot_bytes));
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
  StoreRowWord(Row(location), record.free_slot);
  record.free_slot = slot;
  const bool was_full = record.taken_slots == cls.slots_per_page;
  --record.taken_slots;
  if (was_full && record.closed == 0) Append(&cls.pages_with_room, page);
  if (record.taken_slots > 0) return;
  if (record.closed == 0) Unlink(&cls.pages_with_room, page);
  record.closed = 0;
  --cls.pages;
  record.empty_epoch = epochs_->Retire();
  AddEmpty(page);
}

void DramTier::AddEmpty(PageIndex page) {
  Append(&empty_pages_, page);
  empty_bytes_.fetch_add(kPageBytes, std::memory_order_relaxed);
}

void DramTier::RemoveEmpty(PageIndex page) {
  Unlink(&empty_pages_, page);
  empty_bytes_.fetch_sub(kPageBytes, std::memory_order_relaxed);
}

std::optional<uint32_t> DramTier::ClosePage(std::optional<SlotClass> slot_class) {
  MutexLock lock(&mutex_);
  PageIndex best = kNoPage;
  uint32_t candidates = 0;
  for (PageIndex i = 0; i < pages_begun_ && candidates < kCandidatePages; ++i) {
    const PageIndex page = (close_hand_ + i) % pages_begun_;
    const Page& record = pages_[page];
    if (record.taken_slots == 0 || !classes_[record.slot_class].has_notes) continue;
    if (slot_class.has_value() && record.slot_class != *slot_class) continue;
    ++candidates;
    if (best == kNoPage || record.taken_slots < pages_[best].taken_slots) best = page;
  }
  if (best == kNoPage) return std::nullopt;
  Page& record = pages_[best];
  Class& cls = classes_[record.slot_class];
  EMBANK_CHECK(record.closed == 0);
  if (record.taken_slots < cls.slots_per_page) Unlink(&cls.pages_with_room, best);
  record.closed = 1;
  close_hand_ = best + 1;
  return best;
}

bool DramTier::IsClosed(uint32_t page) const {
  MutexLock lock(&mutex_);
  return pages_[page].closed != 0;
}

bool DramTier::ReopenPage(uint32_t page) {
  MutexLock lock(&mutex_);
  Page& record = pages_[page];
  if (record.closed == 0) return true;
  Class& cls = classes_[record.slot_class];
  record.closed = 0;
  if (record.taken_slots < cls.slots_per_page) Append(&cls.pages_with_room, page);
  return false;
}

uint64_t DramTier::PagesOf(SlotClass slot_class) const {
  MutexLock lock(&mutex_);
  return classes_[slot_class].pages;
}

uint64_t DramTier::ReleaseEmptyPages() {
  MutexLock lock(&mutex_);
  uint64_t bytes = 0;
  while (empty_pages_.first != kNoPage) {
    const PageIndex page = empty_pages_.first;
    epochs_->WaitUntilPassed(pages_[page].empty_epoch);
    RemoveEmpty(page);
    addresses_.Decommit(page * kPageBytes, kPageBytes);
    Append(&released_pages_, page);
    bytes += kPageBytes;
  }
  committed_bytes_ -= bytes;
  budget_->Release(bytes);
  return bytes;
}

void DramTier::Append(PageList* list, PageIndex page) {
  pages_[page].next = kNoPage;
  pages_[page].previous = list->last;
  (list->last == kNoPage ? list->first : pages_[list->last].next) = page;
  list->last = page;
}

void DramTier::Unlink(PageList* list, PageIndex page) {
  const Page& record = pages_[page];
  (record.previous == kNoPage ? list->first : pages_[record.previous].next) = record.next;
  (record.next == kNoPage ? list->last : pages_[record.next].previous) = record.previous;
}

uint32_t DramTier::pages_begun() const {
  MutexLock lock(&mutex_);
  return pages_begun_;
}

DramTier::PageSlots DramTier::SlotsOf(uint32_t page,
                                      std::optional<EpochTable::Guard>* reader) const {
  MutexLock lock(&mutex_);
  reader->emplace(epochs_);
  const Page& record = pages_[page];
  const bool is_free = page >= pages_begun_ || record.taken_slots == 0;
  if (is_free) return {kNoClass, 0, 0};
  return {record.slot_class, classes_[record.slot_class].slot_bytes, record.fresh_slot};
}

uint64_t DramTier::committed_bytes() const {
  MutexLock lock(&mutex_);
  return committed_bytes_;
}

}  // namespace embank
