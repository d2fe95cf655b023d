// The bytes of a segment file (docs/file_formats.md): a part of the log, whose slots have one size.
//
//   | header block | slot 0 | slot 1 | ... | slot n - 1 | (rest) | footer: keys, tables, trailer |
//   0              4096                                          a multiple of 4096
//
// Slots follow each other without gaps: a record may lie across two blocks of the device, which one
// read brings; padding each block would cost more bytes than that costs reads.
#ifndef EMBANK_TIERS_SEGMENT_SEGMENT_FORMAT_H_
#define EMBANK_TIERS_SEGMENT_SEGMENT_FORMAT_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "base/files/file_system.h"
#include "base/status.h"
#include "base/status_or.h"
#include "tiers/row/row_header.h"

namespace embank {

inline constexpr uint32_t kSegmentFormatVersion = 1;
inline constexpr uint64_t kSegmentBytesMax = uint64_t{1} << 26;

// What a segment is; as its header block says.
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

// Whether these are sizes that a writer may have chosen.
bool IsSound(const SegmentHeader& header);

// How many slots a segment has, and where. A pure function of two numbers of its header.
struct SegmentGeometry {
  uint32_t record_bytes = 0;
  uint32_t slots = 0;
  uint64_t footer_offset = 0;
  uint64_t footer_bytes = 0;

  // Of sizes that a header allows. No slots: a segment of that size does not hold one.
  static SegmentGeometry Of(uint32_t record_bytes, uint64_t segment_bytes);

  uint64_t OffsetOf(uint32_t slot) const { return kBlockBytes + uint64_t{slot} * record_bytes; }
  // The slot that begins at a byte of the file, if there is one.
  bool IsSlotAt(uint64_t offset) const {
    return offset >= kBlockBytes && (offset - kBlockBytes) % record_bytes == 0 &&
           (offset - kBlockBytes) / record_bytes < slots;
  }
  uint32_t SlotAt(uint64_t offset) const {
    return static_cast<uint32_t>((offset - kBlockBytes) / record_bytes);
  }
  // The first slot that begins in a block after the one in which slot `used` - 1 ends: where
  // writing goes on behind a block that must not be written again; maybe behind the last slot.
  uint32_t SlotInFreshBlock(uint32_t used) const;
};

// Writes the header block; `block` has kBlockBytes.
void EncodeSegmentHeader(const SegmentHeader& header, std::span<std::byte> block);
// kDataLoss: damaged. kFailedPrecondition: of a newer format, with its version.
StatusOr<SegmentHeader> DecodeSegmentHeader(std::span<const std::byte> block);

// Whose records the slots were written for, in order; a slot that was left out has kNoTable.
struct SegmentFooter {
  std::span<const Key> keys;
  std::span<const TableId> tables;
};

// Writes a footer of as many slots as the spans have (equally many, at most the geometry's; tables
// up to kNoTable); `bytes` has footer_bytes. The header is one that can be written.
void EncodeSegmentFooter(const SegmentHeader& header, const SegmentFooter& footer,
                         std::span<std::byte> bytes);
// The footer of this segment in `bytes`, which are aligned to 8 and into which its spans look;
// kDataLoss. The header is one that was decoded.
StatusOr<SegmentFooter> DecodeSegmentFooter(const SegmentHeader& header,
                                            std::span<const std::byte> bytes);

// Whose record a slot was written for.
struct SlotOwner {
  TableId table;
  Key key;
};

// As the footer of the segment in `file` says, which is read piece by piece into `buffer` (whole
// blocks, aligned to one). kDataLoss: the footer is damaged, or says nothing of the slot; the
// statuses of files. The header is one that was decoded.
StatusOr<SlotOwner> ReadSlotOwner(const SegmentHeader& header, uint32_t slot, File* file,
                                  std::span<std::byte> buffer);

}  // namespace embank

#endif  // EMBANK_TIERS_SEGMENT_SEGMENT_FORMAT_H_
