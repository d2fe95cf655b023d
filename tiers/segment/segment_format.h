// The bytes of a segment file (docs/file_formats.md): a part of the log, whose slots have one size.
//
//   | header block | slot 0 | slot 1 | ... | slot n - 1 | (rest) | footer: keys, tables, trailer |
//   0              4096                                          a multiple of 4096
//
// Slots follow each other without gaps. A record may lie across two blocks of the device, which one
// read reads; padding each block would waste more bytes than that costs reads.
#ifndef EMBANK_TIERS_SEGMENT_SEGMENT_FORMAT_H_
#define EMBANK_TIERS_SEGMENT_SEGMENT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/files/file_system.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tiers/row/location.h"
#include "tiers/row/row_header.h"

namespace embank {

inline constexpr uint32_t kSegmentFormatVersion = 1;
inline constexpr uint64_t kSegmentBytesMax = uint64_t{1} << 26;

// The description of a segment in its header block.
struct SegmentHeader {
  uint64_t store_id;
  uint64_t segment_id;
  uint32_t row_class;
  uint32_t record_bytes;   // a multiple of 16, 48 to kRecordBytesMax
  uint64_t segment_bytes;  // a multiple of kBlockBytes, at most kSegmentBytesMax

  bool operator==(const SegmentHeader&) const = default;
};

// The name of a segment's file.
std::string SegmentName(uint64_t segment_id);

// Segments that were written to PMem have numbers from here on: checksums depend on the number, so
// that no two segments of a store share one.
inline constexpr uint64_t kPmemSegmentIdMin = uint64_t{1} << 62;
// The first number of the segments that each log writes.
inline constexpr ByTier<uint64_t> kFirstSegmentIds = {{0, kPmemSegmentIdMin, 1, 0}};
// The tier whose log has given a segment its number. An export keeps numbers, and has all segments
// on the SSD.
constexpr Tier NumberedIn(uint64_t segment_id) {
  return segment_id < kPmemSegmentIdMin ? Tier::kSsd : Tier::kPmem;
}

// Whether these are sizes that a writer may have chosen.
bool IsSound(const SegmentHeader& header);

// The number and offsets of a segment's slots. A pure function of two numbers of its header.
struct SegmentGeometry {
  uint32_t record_bytes = 0;
  uint32_t slots = 0;
  uint64_t footer_offset = 0;
  uint64_t footer_bytes = 0;

  // The geometry of a segment with sizes that a header allows. No slots: a segment of that size
  // does not hold one.
  static SegmentGeometry Of(uint32_t record_bytes, uint64_t segment_bytes);
  // The bytes of a segment with no fewer slots, and no block more than they need.
  static uint64_t BytesFor(uint32_t record_bytes, uint32_t slots);

  uint64_t OffsetOf(uint32_t slot) const { return kBlockBytes + uint64_t{slot} * record_bytes; }
  // The slot that begins at a byte of the file, if there is one.
  bool IsSlotAt(uint64_t offset) const {
    return offset >= kBlockBytes && (offset - kBlockBytes) % record_bytes == 0 &&
           (offset - kBlockBytes) / record_bytes < slots;
  }
  uint32_t SlotAt(uint64_t offset) const {
    return static_cast<uint32_t>((offset - kBlockBytes) / record_bytes);
  }
  // Returns the first slot that begins in a block after the one in which slot `used` - 1 ends; it
  // may be behind the last slot. Writing continues there if the block must not be written again.
  uint32_t SlotInFreshBlock(uint32_t used) const;
};

// Writes the header block; `block` has kBlockBytes.
void EncodeSegmentHeader(const SegmentHeader& header, std::span<std::byte> block);
// Decodes a header block. kDataLoss: it is damaged. kFailedPrecondition: it has a newer format; the
// message names its version.
StatusOr<SegmentHeader> DecodeSegmentHeader(std::span<const std::byte> block);

// The owners of the slots, in order; a slot that was left out has kNoTable.
struct SegmentFooter {
  std::span<const Key> keys;
  std::span<const TableId> tables;
};

// Writes a footer for as many slots as the spans have (equally many, at most the geometry's; tables
// up to kNoTable). `bytes` has footer_bytes. The header is valid.
void EncodeSegmentFooter(const SegmentHeader& header, const SegmentFooter& footer,
                         std::span<std::byte> bytes);
// Decodes the footer of this segment in `bytes`, which are aligned to 8, and to which the result's
// spans refer. kDataLoss. The header was decoded.
StatusOr<SegmentFooter> DecodeSegmentFooter(const SegmentHeader& header,
                                            std::span<const std::byte> bytes);

// The owner of a slot: the table and key of its record.
struct SlotOwner {
  TableId table;
  Key key;
};

// Reads a slot's owner from the footer of the segment in `file`, piece by piece into `buffer`
// (whole blocks, aligned to one). kDataLoss: the footer is damaged, or does not have the slot; the
// statuses of files. The header was decoded.
StatusOr<SlotOwner> ReadSlotOwner(const SegmentHeader& header, uint32_t slot, File* file,
                                  std::span<std::byte> buffer);

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_SEGMENT_FORMAT_H_
