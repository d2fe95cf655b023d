#include "tiers/dram/dram_tier.h"

#include <atomic>
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
      AlignedBuffer::Create(source, budget, PagePool::RecordBytes(address_bytes)));
  EMBANK_ASSIGN_OR_RETURN(AddressRange addresses, AddressRange::Reserve(source, address_bytes));
  return std::unique_ptr<DramTier>(
      new DramTier(budget, epochs, std::move(addresses), std::move(records)));
}

DramTier::DramTier(MemoryBudget* budget, EpochTable* epochs, AddressRange addresses,
                   AlignedBuffer records)
    : base_(addresses.data()),
      epochs_(epochs),
      pool_(budget, epochs, std::move(addresses), std::move(records)) {}

SlotClass DramTier::AddClass(uint32_t slot_bytes, bool has_notes) {
  EMBANK_CHECK(slot_bytes > 0 && slot_bytes % kLocationUnitBytes == 0);
  const uint64_t slots_per_page = SlotsPerPage(slot_bytes, has_notes);
  EMBANK_CHECK(slots_per_page > 0);
  MutexLock lock(&pool_.mutex);
  EMBANK_CHECK(classes_.size() < kHeaderClass);
  classes_.push_back({.slot_bytes = slot_bytes,
                      .slots_per_page = static_cast<uint32_t>(slots_per_page),
                      .has_notes = has_notes});
  return static_cast<SlotClass>(classes_.size() - 1);
}

size_t DramTier::Allocate(SlotClass slot_class, std::span<Location> out, Pages pages) {
  MutexLock lock(&pool_.mutex);
  Class& cls = ClassOf(slot_class);
  size_t taken = 0;
  while (taken < out.size()) {
    const bool is_full = cls.pages_with_free_slots.IsEmpty();
    if (is_full && (pages == Pages::kAsTheyAre || !AddPage(slot_class))) break;
    const PageIndex page = cls.pages_with_free_slots.first();
    EMBANK_CHECK(pool_.page(page).taken_slots < cls.slots_per_page);
    out[taken++] = TakeSlot(page, cls.slot_bytes);
    if (pool_.page(page).taken_slots == cls.slots_per_page) {
      cls.pages_with_free_slots.Remove(pool_.pages(), page);
    }
  }
  return taken;
}

bool DramTier::GiveEmptyPage(SlotClass slot_class) {
  MutexLock lock(&pool_.mutex);
  return pool_.has_empty() && AddPage(slot_class);
}

void DramTier::Free(SlotClass slot_class, std::span<const Location> slots) {
  MutexLock lock(&pool_.mutex);
  for (const Location slot : slots) FreeSlot(slot_class, slot);
}

// Gives a class one page without a taken slot.
bool DramTier::AddPage(SlotClass slot_class) {
  const PageIndex page = pool_.TakePage(slot_class);
  if (page == kNoPage) return false;
  SlabPage& record = pool_.pages()[page];
  EMBANK_CHECK(record.taken_slots == 0 && record.closed == 0);
  record.taken_slots = 0;
  record.fresh_slot = 0;
  record.free_slot = SlabPage::kNoSlot;
  record.slot_class = slot_class;
  record.closed = 0;
  Class& cls = ClassOf(slot_class);
  if (cls.has_notes) ClearDirtyBits(page, cls.slots_per_page);
  ++cls.pages;
  cls.pages_with_free_slots.Append(pool_.pages(), page);
  return true;
}

// A walk may still look at the page: it was of the same class before.
void DramTier::ClearDirtyBits(PageIndex page, uint64_t slots) {
  uint64_t* const words = DirtyWordsAt(base_ + page * kPageBytes, slots);
  for (uint64_t i = 0; i < DirtyWords(slots); ++i) {
    std::atomic_ref(words[i]).store(0, std::memory_order_relaxed);
  }
}

Location DramTier::TakeSlot(PageIndex page, uint32_t slot_bytes) {
  SlabPage& record = pool_.pages()[page];
  EMBANK_CHECK(record.closed == 0);
  uint32_t slot = record.free_slot;
  std::byte* const begin = base_ + page * kPageBytes;
  if (slot != SlabPage::kNoSlot) {
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
  EMBANK_CHECK(page < pool_.begun());
  Class& cls = ClassOf(slot_class);
  SlabPage& record = pool_.pages()[page];
  EMBANK_CHECK(record.slot_class == slot_class && record.taken_slots > 0);
  EMBANK_CHECK(offset_bytes % kPageBytes % cls.slot_bytes == 0);
  const auto slot = static_cast<uint32_t>(offset_bytes % kPageBytes / cls.slot_bytes);
  EMBANK_CHECK(slot < record.fresh_slot);
  StoreRowWord(Row(location), record.free_slot);
  record.free_slot = slot;
  const bool was_full = record.taken_slots == cls.slots_per_page;
  --record.taken_slots;
  if (was_full && record.closed == 0) cls.pages_with_free_slots.Append(pool_.pages(), page);
  if (record.taken_slots > 0) return;
  if (record.closed == 0) cls.pages_with_free_slots.Remove(pool_.pages(), page);
  record.closed = 0;
  EMBANK_CHECK(cls.pages > 0);
  --cls.pages;
  pool_.GivePage(page);
}

std::optional<uint32_t> DramTier::ClosePage(std::optional<SlotClass> slot_class) {
  MutexLock lock(&pool_.mutex);
  PageIndex best = kNoPage;
  uint32_t candidates = 0;
  for (PageIndex i = 0; i < pool_.begun() && candidates < kCandidatePages; ++i) {
    const PageIndex page = (close_hand_ + i) % pool_.begun();
    const SlabPage& record = pool_.page(page);
    if (record.taken_slots == 0 || record.slot_class == kHeaderClass) continue;
    if (!ClassOf(record.slot_class).has_notes) continue;
    if (slot_class.has_value() && record.slot_class != *slot_class) continue;
    ++candidates;
    if (best == kNoPage || record.taken_slots < pool_.page(best).taken_slots) best = page;
  }
  if (best == kNoPage) return std::nullopt;
  SlabPage& record = pool_.pages()[best];
  Class& cls = ClassOf(record.slot_class);
  EMBANK_CHECK(record.closed == 0);
  if (record.taken_slots < cls.slots_per_page)
    cls.pages_with_free_slots.Remove(pool_.pages(), best);
  record.closed = 1;
  close_hand_ = best + 1;
  return best;
}

bool DramTier::IsClosed(uint32_t page) const {
  MutexLock lock(&pool_.mutex);
  EMBANK_CHECK(page < pool_.begun());
  return pool_.page(page).closed != 0;
}

bool DramTier::ReopenPage(uint32_t page) {
  MutexLock lock(&pool_.mutex);
  EMBANK_CHECK(page < pool_.begun());
  SlabPage& record = pool_.pages()[page];
  if (record.closed == 0) return true;
  EMBANK_CHECK(record.taken_slots > 0);
  Class& cls = ClassOf(record.slot_class);
  record.closed = 0;
  if (record.taken_slots < cls.slots_per_page)
    cls.pages_with_free_slots.Append(pool_.pages(), page);
  return false;
}

uint64_t DramTier::PagesOf(SlotClass slot_class) const {
  MutexLock lock(&pool_.mutex);
  return ClassOf(slot_class).pages;
}

uint32_t DramTier::pages_begun() const {
  MutexLock lock(&pool_.mutex);
  return pool_.begun();
}

DramTier::PageSlots DramTier::SlotsOf(uint32_t page,
                                      std::optional<EpochTable::Guard>* reader) const {
  MutexLock lock(&pool_.mutex);
  reader->emplace(epochs_);
  const bool is_free = page >= pool_.begun() || pool_.page(page).taken_slots == 0;
  if (is_free) return {kNoSlotClass, 0, 0, nullptr};
  const SlabPage& record = pool_.page(page);
  const Class& cls = ClassOf(record.slot_class);
  uint64_t* const dirty_words =
      cls.has_notes ? DirtyWordsAt(base_ + page * kPageBytes, cls.slots_per_page) : nullptr;
  return {record.slot_class, cls.slot_bytes, record.fresh_slot, dirty_words};
}

}  // namespace embank
