// A segment of the log while a store is open: its file, its records, and which of them live.
#ifndef EMBANK_TIERS_SEGMENT_LOG_SEGMENT_H_
#define EMBANK_TIERS_SEGMENT_LOG_SEGMENT_H_

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/files/file_system.h"
#include "base/memory/aligned_buffer.h"
#include "base/memory/charged_words.h"
#include "tiers/row/location.h"
#include "tiers/segment/segment_format.h"

namespace embank {

// A location in a log: the segment's index in the log's array, and the units in front of the
// record.
inline constexpr uint32_t kSegmentUnitBits = 22;
inline constexpr uint32_t kSegmentsMax = 1u << (kLocationBits - kSegmentUnitBits);
static_assert(kSegmentBytesMax == kLocationUnitBytes << kSegmentUnitBits);

constexpr uint32_t SegmentIndexOf(Location location) {
  return static_cast<uint32_t>(location.units >> kSegmentUnitBits) % kSegmentsMax;
}
constexpr uint64_t SegmentOffsetOf(Location location) {
  return (location.units & ((uint64_t{1} << kSegmentUnitBits) - 1)) * kLocationUnitBytes;
}
constexpr Location LocationInSegment(Tier tier, uint32_t index, uint64_t offset) {
  return LocationIn(tier, uint64_t{index} << kSegmentUnitBits | offset / kLocationUnitBytes);
}

// The rows of a segment that a checkpoint has.
struct SegmentRows {
  SegmentHeader header;
  Tier tier = Tier::kSsd;  // of the log that has the segment
  uint32_t used_slots;
  std::vector<uint64_t> bits;  // one for each of them
  // The owners of the slots, if the segment has no footer yet; else empty.
  std::vector<Key> keys;
  std::vector<TableId> tables;

  uint64_t CountRows() const {
    uint64_t rows = 0;
    for (const uint64_t word : bits) rows += static_cast<uint64_t>(std::popcount(word));
    return rows;
  }
  // Whether its file is in the store's own directory, which the log of the SSD shares.
  bool IsInStoreDirectory() const { return tier == Tier::kSsd; }
};

// A file of the log. Bytes that are written to it never change.
struct LogSegment {
  SegmentHeader header;
  SegmentGeometry geometry;
  std::string name;            // in the log's directory
  std::unique_ptr<File> file;  // may rest after the last write
  Tier tier = Tier::kSsd;      // of the log
  uint32_t index = 0;          // in the log's array
  // Its space on the medium, as far as it is known; where the log's size follows its rows.
  uint64_t taken_bytes = 0;
  uint64_t space_end = 0;  // the end of the space that was taken ahead for records
  // Until the footer is written: keys, then tables, of the slots that are written or left out.
  AlignedBuffer slots;
  uint32_t used_slots = 0;
  bool finished = false;        // its footer is written
  bool without_footer = false;  // its footer cannot be written; its owners stay in memory
  bool unsynced = true;
  bool passed_over = false;  // excluded from compaction: records of it are damaged
  bool unread = false;       // not readable by the device; compaction waits for the next checkpoint
  ChargedWords bits;  // a bit per slot, twice: live rows, and those of a checkpoint under way
  uint32_t live_rows = 0;
  uint32_t frozen_rows = 0;
  uint32_t frozen_for = 0;         // the checkpoint of the second bits
  uint32_t newest_checkpoint = 0;  // a kept checkpoint that has rows of it; 0: none

  Key* keys() const { return slots.As<Key>().data(); }
  TableId* tables() const { return reinterpret_cast<TableId*>(keys() + geometry.slots); }
  void UseSlot(Key key, TableId table) {
    EMBANK_CHECK(used_slots < geometry.slots);
    keys()[used_slots] = key;
    tables()[used_slots++] = table;
  }
  SegmentFooter Owners() const { return {{keys(), used_slots}, {tables(), used_slots}}; }
  // The living part, 0 to 1, of the records for which its space is enough.
  double LivingPart() const {
    const double of_segment =
        static_cast<double>(taken_bytes) / static_cast<double>(header.segment_bytes);
    return std::min(1.0, live_rows / (geometry.slots * of_segment));
  }
  uint64_t LiveBytes() const { return uint64_t{live_rows} * header.record_bytes; }
  uint64_t BitWords() const { return RoundUp(geometry.slots, 64) / 64; }
  uint64_t* live() const { return bits.data(); }
  uint64_t* frozen() const { return live() + BitWords(); }
  // Tries twice: writing the same bytes at the same place cannot tear bytes of the first try.
  Status Write(uint64_t offset, std::span<const std::byte> bytes) const {
    const Status status = file->Write(offset, bytes);
    return status.ok() ? status : file->Write(offset, bytes);
  }
  Location LocationOf(uint32_t slot) const {
    return LocationInSegment(tier, index, geometry.OffsetOf(slot));
  }
  bool IsLive(uint32_t slot) const { return (live()[slot / 64] >> (slot % 64) & 1) != 0; }
  // False: nothing has changed.
  bool SetLive(uint32_t slot, bool is_live) {
    uint64_t& word = live()[slot / 64];
    const uint64_t bit = uint64_t{1} << (slot % 64);
    if (((word & bit) != 0) == is_live) return false;
    word ^= bit;
    live_rows += is_live ? 1 : -1;
    return true;
  }
  // Takes the live rows of this moment as those of a checkpoint, unless that was done before.
  void FreezeFor(uint32_t checkpoint) {
    if (frozen_for == checkpoint) return;
    EMBANK_CHECK(checkpoint > frozen_for);
    std::memcpy(frozen(), live(), BitWords() * sizeof(uint64_t));
    frozen_rows = live_rows;
    frozen_for = checkpoint;
  }
  // Adds a row that was written later and belongs to the frozen checkpoint.
  void AddFrozen(uint32_t slot) {
    EMBANK_CHECK((frozen()[slot / 64] >> (slot % 64) & 1) == 0);
    frozen()[slot / 64] |= uint64_t{1} << (slot % 64);
    ++frozen_rows;
  }
};

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_LOG_SEGMENT_H_
