// The record of a row on an SSD, in a slot of a segment (docs/file_formats.md).
//
//   byte 0          4        6        8      16            24      28           32
//        | crc 32   | class  | table  | key  | sequence    | heat  | checkpoint | vector, state ...
//
// Little-endian. The checksum covers the store's id, the segment's id and the slot's number, which
// are not written, and all bytes behind it. So a record does not match if it is torn or damaged, or
// belongs to another place or to an earlier use of the place.
#ifndef EMBANK_TIERS_SEGMENT_LOG_RECORD_H_
#define EMBANK_TIERS_SEGMENT_LOG_RECORD_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "tiers/row/row_layout.h"

namespace embank {

// The place of a record, by numbers that are never used again.
struct RecordPlace {
  uint64_t store_id;
  uint64_t segment_id;
  uint32_t slot;
};

struct RecordHeader {
  uint32_t crc;
  uint16_t row_class;
  uint16_t table;
  Key key;
  uint64_t sequence;    // grows with every record of the store
  uint32_t heat;        // heat of the row when it was written
  uint32_t checkpoint;  // the first one that may hold this version of the row
};
static_assert(sizeof(RecordHeader) == 32);

// The bytes of the record of a row with so many bytes (header, vector and state as in memory): a
// multiple of 16.
constexpr uint32_t RecordBytesOf(uint32_t row_bytes) {
  return row_bytes + static_cast<uint32_t>(sizeof(RecordHeader) - sizeof(RowHeader));
}
inline constexpr uint32_t kRecordBytesMax = RecordBytesOf(kRowBytesMax);

// Fills a record's header. The checksum is computed from the record as it is now, and replaces
// header.crc.
void SealRecord(const RecordPlace& place, RecordHeader header, std::span<std::byte> record);

// Whether the record is whole, and was written at this place.
bool RecordIsWhole(const RecordPlace& place, std::span<const std::byte> record);

// The header of a whole record.
RecordHeader LoadRecordHeader(std::span<const std::byte> record);

// Records that will live about equally long share segments.
enum class LogStream : uint32_t { kUser, kCompaction };

// A row to be appended to the log.
struct RowToLog {
  uint16_t row_class = 0;
  uint32_t record_bytes = 0;
  TableId table = kNoTable;
  Key key = 0;
  uint32_t heat = 0;
  uint32_t checkpoint = 0;                  // the first that may hold the row as it is
  std::span<const std::byte> payload = {};  // vector and state; may end before the record does
  bool lives = true;       // false: it belongs to a checkpoint alone, and the row is about to
                           // change
  bool was_dirty = false;  // space was reserved for the record; it uses that
};

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_LOG_RECORD_H_
