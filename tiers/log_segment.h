// A segment of the log while a store is open: its file, what is in it, and which of it lives.
#ifndef EMBANK_TIERS_LOG_SEGMENT_H_
#define EMBANK_TIERS_LOG_SEGMENT_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/aligned_buffer.h"
#include "base/file_system.h"
#include "tiers/segment_format.h"

namespace embank {

// A file of the log. What is written to it once stays.
struct LogSegment {
  SegmentHeader header;
  SegmentGeometry geometry;
  std::string path;
  std::unique_ptr<File> file;
  uint32_t index;  // in the log's array
  // Until the footer is written: keys, then tables, of the slots that are written or left out.
  AlignedBuffer slots;
  uint32_t used_slots = 0;
  bool ended = false;     // takes no more
  bool finished = false;  // its footer is written
  bool unsynced = true;
  AlignedBuffer live;  // a bit per slot
  uint32_t live_rows = 0;

  Key* keys() const { return slots.As<Key>().data(); }
  TableId* tables() const { return reinterpret_cast<TableId*>(keys() + geometry.slots); }
  uint64_t SlotBytes() const { return uint64_t{geometry.slots} * (sizeof(Key) + sizeof(TableId)); }
  void UseSlot(Key key, TableId table) {
    keys()[used_slots] = key;
    tables()[used_slots++] = table;
  }
  // Tries twice: the same bytes at the same place cannot tear what the first try has written.
  absl::Status Write(uint64_t offset, std::span<const std::byte> bytes) const {
    const absl::Status status = file->Write(offset, bytes);
    return status.ok() ? status : file->Write(offset, bytes);
  }
  // False: it was so already.
  bool SetLive(uint32_t slot, bool is_live) {
    uint64_t& word = live.As<uint64_t>()[slot / 64];
    const uint64_t bit = uint64_t{1} << (slot % 64);
    if (((word & bit) != 0) == is_live) return false;
    word ^= bit;
    live_rows += is_live ? 1 : -1;
    return true;
  }
};

}  // namespace embank

#endif  // EMBANK_TIERS_LOG_SEGMENT_H_
