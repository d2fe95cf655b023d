// The notes of a scan about rows in the log: their places, a bit for each slot, and then their
// keys, one for each bit that is left. The bits give the keys their places, in order:
//
//   segment 3:  . 1 1 . 1 . . . 1      segment 7:  1 1 . . 1
//   keys:         k k   k       k                  k k     k
#ifndef EMBANK_STORE_SCAN_SCAN_NOTES_H_
#define EMBANK_STORE_SCAN_SCAN_NOTES_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/types.h"
#include "tiers/logs/row_logs.h"

namespace embank {

// For one thread. Its memory is its own: no budget pays for it. Add and Resolve may throw
// std::bad_alloc: call Clear then.
class ScanNotes {
 public:
  // Notes rows of this table, which are of this row class. The logs outlive it.
  ScanNotes(RowLogs* logs, TableId table, uint32_t row_class)
      : logs_(logs), table_(table), row_class_(row_class) {}

  // Notes what lives at a place of a log, once, if it may be of the table; its segment stays
  // until Resolve or Clear. Under the lock of the row's shard, so that it does live there.
  void Add(Location location);
  // Learns the owners of all noted places, keeps the table's rows, and releases the segments.
  // *unknown: the number of rows that may be the table's or another's. kResourceExhausted: call
  // Clear.
  Status Resolve(uint64_t* unknown);
  void Clear();

  // The bytes of the notes, keys included.
  uint64_t bytes() const { return bits_bytes_ + noted_ * sizeof(Key); }

  // After Resolve: the keys that are left, in order of place, and the places of the first of them.
  std::span<const Key> keys() const { return std::span(keys_).subspan(keys_done_); }
  void Places(std::span<Location> places) const;
  // Drops the first `count` keys.
  void Skip(size_t count);

 private:
  struct Segment {
    std::shared_ptr<const LogSegment> held;  // until Resolve
    Tier tier = Tier::kSsd;
    uint32_t index = 0;  // in the log
    SegmentGeometry geometry;
    std::vector<uint64_t> bits;  // by slot; empty: no slot of the segment is, or will be, noted
  };

  Segment* SegmentOf(Location location);
  Status ResolveSegment(Segment* segment, uint64_t* unknown);

  RowLogs* const logs_;
  const TableId table_;
  const uint32_t row_class_;
  std::vector<Segment> segments_;
  // By tier, then by the segment's index in its log: its place in segments_, and one more; 0: none.
  std::array<std::vector<uint32_t>, kTiers> places_;
  uint64_t bits_bytes_ = 0;
  uint64_t noted_ = 0;
  std::vector<Key> keys_;
  size_t keys_done_ = 0;
  // The place of the first key that is left is the first bit from here on.
  uint32_t next_segment_ = 0;
  uint32_t next_slot_ = 0;
};

}  // namespace embank

#endif  // EMBANK_STORE_SCAN_SCAN_NOTES_H_
