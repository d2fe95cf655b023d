// The notes of rows in memory that have, or may get, a place in the log, and a dirty bit for each.
// The notes of a page's slots are at its end (DramTier::AddClass), apart from the data that readers
// use.
//
//   page:  | slot 0 | ... | slot n - 1 | rest | dirty bits | note 0 | note 1 | ... | note n - 1 |
//
// The bit of a slot is set while its row is dirty and the store has a log, so that a flush pass
// finds dirty rows and looks at no others (tiers/dram/dirty_slots.h).
//
// Slots have numbers of 32 bits, by which eviction orders link them.
#ifndef EMBANK_TIERS_DRAM_SLOT_NOTES_H_
#define EMBANK_TIERS_DRAM_SLOT_NOTES_H_

#include <atomic>
#include <bit>
#include <cstdint>

#include "tiers/dram/dram_tier.h"
#include "tiers/dram/eviction_order.h"
#include "tiers/row/location.h"

namespace embank {

// The lock of the row's shard guards it. Undefined when a slot is taken.
struct SlotNote {
  // Clean row: the place of its record, in units of a location. Dirty row: the checkpoint that its
  // last change belongs to.
  uint64_t logged : kTierBits + kLocationBits;
  // The end of the row's pin, by its table's pins; 0: it is not pinned.
  uint64_t pin : 16;
  // A prefetch promoted the row, and no use of it is known since.
  uint64_t untouched : 1;
  EvictionLinks links;  // a header alone has the place of its payload here

  bool IsDirty() const { return logged <= 0xFFFFFFFF; }
  uint32_t checkpoint() const { return static_cast<uint32_t>(logged); }
  void SetLogged(Location location) {
    logged = location.units & ((uint64_t{1} << (kTierBits + kLocationBits)) - 1);
  }
  // The note of a header alone: where vector and state are in device memory, in bytes.
  uint64_t payload_offset_bytes() const { return std::bit_cast<uint64_t>(links); }
  void SetPayloadOffset(uint64_t bytes) { links = std::bit_cast<EvictionLinks>(bytes); }
};
static_assert(LocationIn(Tier::kPmem, 0).units > 0xFFFFFFFF);
static_assert(sizeof(SlotNote) == DramTier::kNoteBytes);

// The notes of one slot class.
class SlotNotes {
 public:
  SlotNotes(const DramTier& tier, uint32_t slot_bytes)
      : base_(tier.Row({0})),
        slot_bytes_(slot_bytes),
        slots_(static_cast<uint32_t>(DramTier::SlotsPerPage(slot_bytes, true))),
        slot_bits_(SlotBits(slot_bytes)) {}

  // The addresses that the numbers reach; some of the last belong to no slot. With the smallest
  // slots 2^16 pages, 128 GiB.
  static constexpr uint64_t AddressBytesMax(uint32_t slot_bytes) {
    return ((uint64_t{1} << (32 - SlotBits(slot_bytes))) - 1) * DramTier::kPageBytes;
  }

  uint32_t NumberOf(Location slot) const {
    const uint64_t offset = slot.units * kLocationUnitBytes;
    const auto page = static_cast<uint32_t>(offset / DramTier::kPageBytes);
    return page << slot_bits_ | static_cast<uint32_t>(offset % DramTier::kPageBytes) / slot_bytes_;
  }
  Location LocationOf(uint32_t number) const {
    return {(PageOf(number) * DramTier::kPageBytes + uint64_t{SlotOf(number)} * slot_bytes_) /
            kLocationUnitBytes};
  }
  SlotNote& Of(uint32_t number) const {
    std::byte* const end = base_ + (PageOf(number) + 1) * DramTier::kPageBytes;
    return *(reinterpret_cast<SlotNote*>(end) - slots_ + SlotOf(number));
  }

  // The dirty bit of a taken slot; the lock of the row's shard guards it. A slot that is given back
  // is marked clean before.
  bool IsMarkedDirty(uint32_t number) const {
    return (WordOf(number).load(std::memory_order_relaxed) & BitOf(number)) != 0;
  }
  // The other bits of the word are under other locks. Most slots have their bit already.
  void MarkDirty(uint32_t number) const {
    if (!IsMarkedDirty(number)) WordOf(number).fetch_or(BitOf(number), std::memory_order_relaxed);
  }
  void MarkClean(uint32_t number) const {
    if (IsMarkedDirty(number)) WordOf(number).fetch_and(~BitOf(number), std::memory_order_relaxed);
  }

 private:
  static constexpr uint32_t SlotBits(uint32_t slot_bytes) {
    return static_cast<uint32_t>(std::bit_width(DramTier::SlotsPerPage(slot_bytes, true) - 1));
  }
  uint64_t PageOf(uint32_t number) const { return uint64_t{number} >> slot_bits_; }
  uint32_t SlotOf(uint32_t number) const { return number & ((1u << slot_bits_) - 1); }
  std::atomic_ref<uint64_t> WordOf(uint32_t number) const {
    std::byte* const page = base_ + PageOf(number) * DramTier::kPageBytes;
    return std::atomic_ref(
        DramTier::DirtyWordsAt(page, slots_)[SlotOf(number) / DramTier::kWordBits]);
  }
  uint64_t BitOf(uint32_t number) const {
    return uint64_t{1} << SlotOf(number) % DramTier::kWordBits;
  }

  std::byte* const base_;
  const uint32_t slot_bytes_;
  const uint32_t slots_;
  const uint32_t slot_bits_;
};

}  // namespace embank

#endif  // EMBANK_TIERS_DRAM_SLOT_NOTES_H_
