#include "tiers/hbm/payload_slots.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/check.h"

namespace embank {
namespace {

constexpr uint32_t kWordBits = 64;
constexpr uint64_t kUnitBytes = 16;
// A class of rows wastes half a page on average, so that 256 pages keep that below 0.2 %.
constexpr uint64_t kPagesMin = 256;

}  // namespace

uint64_t PayloadSlots::PageBytesOf(uint64_t bytes) {
  return std::clamp(std::bit_floor(bytes / kPagesMin), kBytesMin, kPageBytesMax);
}

uint64_t PayloadSlots::HostBytesMax(uint64_t bytes) {
  const uint64_t pages = bytes / PageBytesOf(bytes);
  return pages * (sizeof(Page) + sizeof(PageNumber)) + bytes / kUnitBytes / 8;
}

PayloadSlots::PayloadSlots(uint64_t bytes)
    : page_bytes_(PageBytesOf(bytes)), page_count_(bytes / page_bytes_) {
  EMBANK_CHECK(bytes >= kBytesMin);
  MutexLock lock(&mutex_);
  pages_.resize(page_count_);
  empty_pages_.reserve(pages_.size());
  for (size_t page = pages_.size(); page > 0; --page) {
    empty_pages_.push_back(static_cast<PageNumber>(page - 1));
  }
}

std::optional<uint64_t> PayloadSlots::Take(uint32_t payload_bytes) {
  EMBANK_CHECK(payload_bytes > 0 && payload_bytes % kUnitBytes == 0 && payload_bytes <= kBytesMin);
  MutexLock lock(&mutex_);
  Size* const size = SizeWithFree(payload_bytes);
  if (size == nullptr) return std::nullopt;
  const PageNumber number = size->first_with_free;
  Page& page = pages_[number];
  EMBANK_CHECK(page.payload_bytes == payload_bytes && page.taken < SlotsOf(payload_bytes));
  uint32_t word = page.first_free_word;
  while (~page.taken_slots[word] == 0) ++word;
  page.first_free_word = word;
  const auto bit = static_cast<uint32_t>(std::countr_one(page.taken_slots[word]));
  const uint32_t slot = word * kWordBits + bit;
  EMBANK_CHECK(slot < SlotsOf(payload_bytes));
  page.taken_slots[word] |= uint64_t{1} << bit;
  ++page.taken;
  --size->free_slots;
  taken_bytes_ += payload_bytes;
  if (page.taken == SlotsOf(payload_bytes)) Unlink(number, size);
  return number * page_bytes_ + uint64_t{slot} * payload_bytes;
}

void PayloadSlots::Free(uint64_t offset_bytes) {
  MutexLock lock(&mutex_);
  const auto number = static_cast<PageNumber>(offset_bytes / page_bytes_);
  EMBANK_CHECK(number < page_count_);
  Page& page = pages_[number];
  EMBANK_CHECK(page.taken > 0 && page.payload_bytes > 0);
  EMBANK_CHECK(offset_bytes % page_bytes_ % page.payload_bytes == 0);
  Size* const size = &sizes_[page.payload_bytes];
  const auto slot = static_cast<uint32_t>(offset_bytes % page_bytes_ / page.payload_bytes);
  uint64_t& word = page.taken_slots[slot / kWordBits];
  const uint64_t bit = uint64_t{1} << slot % kWordBits;
  EMBANK_CHECK((word & bit) != 0);
  word &= ~bit;
  page.first_free_word = std::min(page.first_free_word, slot / kWordBits);
  const uint32_t slots = SlotsOf(page.payload_bytes);
  if (page.taken == slots) Link(number, size);
  --page.taken;
  ++size->free_slots;
  EMBANK_CHECK(taken_bytes_ >= page.payload_bytes);
  taken_bytes_ -= page.payload_bytes;
  if (page.taken > 0) return;
  Unlink(number, size);
  EMBANK_CHECK(size->free_slots >= slots);
  size->free_slots -= slots;
  page.payload_bytes = 0;
  page.taken_slots = {};
  empty_pages_.push_back(number);
}

uint64_t PayloadSlots::FreeSlots(uint32_t payload_bytes) const {
  MutexLock lock(&mutex_);
  const auto size = sizes_.find(payload_bytes);
  return (size == sizes_.end() ? 0 : size->second.free_slots) +
         empty_pages_.size() * SlotsOf(payload_bytes);
}

uint64_t PayloadSlots::taken_bytes() const {
  MutexLock lock(&mutex_);
  return taken_bytes_;
}

// nullptr: no page has a free slot, or there is no memory for the record of one.
PayloadSlots::Size* PayloadSlots::SizeWithFree(uint32_t payload_bytes) {
  try {
    Size* const size = &sizes_[payload_bytes];
    return size->first_with_free != kNoPage || AddPage(payload_bytes, size) ? size : nullptr;
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool PayloadSlots::AddPage(uint32_t payload_bytes, Size* size) {
  if (empty_pages_.empty()) return false;
  const PageNumber number = empty_pages_.back();
  Page& page = pages_[number];
  EMBANK_CHECK(page.taken == 0 && page.payload_bytes == 0);
  const uint32_t slots = SlotsOf(payload_bytes);
  page.taken_slots.assign((slots + kWordBits - 1) / kWordBits, 0);
  empty_pages_.pop_back();
  page.payload_bytes = payload_bytes;
  page.first_free_word = 0;
  // Slots behind the last one count as taken for good.
  if (slots % kWordBits != 0) page.taken_slots.back() = ~uint64_t{0} << slots % kWordBits;
  size->free_slots += slots;
  Link(number, size);
  return true;
}

void PayloadSlots::Link(PageNumber number, Size* size) {
  Page& page = pages_[number];
  page.next = size->first_with_free;
  page.previous = kNoPage;
  if (page.next != kNoPage) pages_[page.next].previous = number;
  size->first_with_free = number;
}

void PayloadSlots::Unlink(PageNumber number, Size* size) {
  Page& page = pages_[number];
  EMBANK_CHECK((page.previous == kNoPage) == (size->first_with_free == number));
  (page.previous == kNoPage ? size->first_with_free : pages_[page.previous].next) = page.next;
  if (page.next != kNoPage) pages_[page.next].previous = page.previous;
}

}  // namespace embank
