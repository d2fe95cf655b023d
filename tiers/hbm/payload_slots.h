// Slots of device memory for the payloads of rows: vector and state. Knows offsets, never bytes.
//
//   device memory:  | page 0 | page 1 | ... | page n |   pages of one size, a power of two
//   a page:         | payload | payload | ... | rest |   payloads of one size
//
// A page belongs to one payload size while any of its slots is taken. The slots of a page that was
// emptied serve any size.
#ifndef EMBANK_TIERS_HBM_PAYLOAD_SLOTS_H_
#define EMBANK_TIERS_HBM_PAYLOAD_SLOTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "base/memory/memory.h"
#include "base/status_or.h"
#include "base/threads/mutex.h"

namespace embank {

// Thread-safe.
class PayloadSlots {
 public:
  // The least memory: a page with one of the largest payloads.
  static constexpr uint64_t kBytesMin = uint64_t{64} << 10;
  static constexpr uint64_t kPageBytesMax = uint64_t{4} << 20;

  // `bytes` of device memory, at least kBytesMin, of which the last part of a page is not used.
  explicit PayloadSlots(uint64_t bytes);
  PayloadSlots(const PayloadSlots&) = delete;
  PayloadSlots& operator=(const PayloadSlots&) = delete;

  // The size of the pages: at most a 256th of the memory, as long as that is not below kBytesMin.
  static uint64_t PageBytesOf(uint64_t bytes);
  // The bytes of host memory that the slots take at most, to be charged by the owner.
  static uint64_t HostBytesMax(uint64_t bytes);

  // Takes a slot for a payload of `payload_bytes` (a multiple of 16, at most kBytesMin), and
  // returns its offset in bytes. None: no page has one, or the process has no memory for a record.
  std::optional<uint64_t> Take(uint32_t payload_bytes);
  // Gives a slot back.
  void Free(uint64_t offset_bytes);

  // The slots that Take would still give to payloads of a size.
  uint64_t FreeSlots(uint32_t payload_bytes) const;
  // The bytes of a page for each of its payloads: the payload and its share of the page's rest.
  uint32_t ShareOf(uint32_t payload_bytes) const {
    return static_cast<uint32_t>(page_bytes_ / SlotsOf(payload_bytes));
  }
  // The bytes of all pages; of the payloads in taken slots.
  uint64_t bytes() const { return page_count_ * page_bytes_; }
  uint64_t taken_bytes() const;

 private:
  using PageNumber = uint32_t;
  static constexpr PageNumber kNoPage = 0xFFFFFFFF;

  struct Page {
    uint32_t payload_bytes = 0;  // 0: the page is empty
    uint32_t taken = 0;
    uint32_t first_free_word = 0;       // no word before it has a free slot
    std::vector<uint64_t> taken_slots;  // a bit for each slot
    PageNumber next = kNoPage;          // in the list of its size's pages with free slots
    PageNumber previous = kNoPage;
  };

  // The pages of one payload size.
  struct Size {
    PageNumber first_with_free = kNoPage;
    uint64_t free_slots = 0;
  };

  uint32_t SlotsOf(uint32_t payload_bytes) const {
    return static_cast<uint32_t>(page_bytes_ / payload_bytes);
  }
  Size* SizeWithFree(uint32_t payload_bytes) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AddPage(uint32_t payload_bytes, Size* size) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Link(PageNumber number, Size* size) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Unlink(PageNumber number, Size* size) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const uint64_t page_bytes_;
  const uint64_t page_count_;
  mutable Mutex mutex_;
  std::vector<Page> pages_ EMBANK_GUARDED_BY(mutex_);
  std::vector<PageNumber> empty_pages_ EMBANK_GUARDED_BY(mutex_);
  std::map<uint32_t, Size> sizes_ EMBANK_GUARDED_BY(mutex_);  // by payload_bytes
  uint64_t taken_bytes_ EMBANK_GUARDED_BY(mutex_) = 0;
};

}  // namespace embank

#endif  // EMBANK_TIERS_HBM_PAYLOAD_SLOTS_H_
