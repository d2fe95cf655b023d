#include "tiers/segment/segment_format.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/memory/memory.h"
#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

constexpr uint64_t kHeaderMagic = 0x31474553424D45u;   // "EMBSEG1" and a zero
constexpr uint64_t kTrailerMagic = 0x31444E45424D45u;  // "EMBEND1" and a zero

// The first bytes of the header block; its last four are the checksum of all before.
struct HeaderImage {
  uint64_t magic;
  uint32_t version;
  uint32_t row_class;
  uint64_t store_id;
  uint64_t segment_id;
  uint64_t segment_bytes;
  uint32_t record_bytes;
  uint32_t zero;
};
static_assert(sizeof(HeaderImage) == 48);

// The last bytes of the footer.
struct TrailerImage {
  uint64_t magic;
  uint64_t store_id;
  uint64_t segment_id;
  uint32_t slots;
  uint32_t crc;  // of the footer before it
};
static_assert(sizeof(TrailerImage) == 32);

constexpr uint64_t kFooterBytesPerSlot = sizeof(Key) + sizeof(TableId);
constexpr uint32_t kRecordBytesMin = 48;  // a header and the least row

uint64_t FooterBytes(uint64_t slots) {
  return RoundUp(slots * kFooterBytesPerSlot + sizeof(TrailerImage), kBlockBytes);
}

uint32_t ChecksumBefore(std::span<const std::byte> bytes) {
  return ExtendCrc32c(0, bytes.first(bytes.size() - sizeof(uint32_t)));
}

void StoreChecksum(std::span<std::byte> bytes) {
  const uint32_t crc = ChecksumBefore(bytes);
  std::memcpy(bytes.data() + bytes.size() - sizeof crc, &crc, sizeof crc);
}

bool ChecksumStands(std::span<const std::byte> bytes) {
  uint32_t crc;
  std::memcpy(&crc, bytes.data() + bytes.size() - sizeof crc, sizeof crc);
  return crc == ChecksumBefore(bytes);
}

Status Damaged(const char* what) {
  return DataLossError(StrCat("the segment's ", what, " is damaged"));
}

bool AreTables(std::span<const TableId> tables) {
  return std::all_of(tables.begin(), tables.end(), [](TableId table) { return table <= kNoTable; });
}

}  // namespace

std::string SegmentName(uint64_t segment_id) { return StrCat("segment-", Hex(segment_id, 16)); }

bool IsSound(const SegmentHeader& header) {
  return header.record_bytes >= kRecordBytesMin && header.record_bytes % 16 == 0 &&
         header.record_bytes <= kRecordBytesMax && header.segment_bytes % kBlockBytes == 0 &&
         header.segment_bytes <= kSegmentBytesMax &&
         SegmentGeometry::Of(header.record_bytes, header.segment_bytes).slots > 0;
}

SegmentGeometry SegmentGeometry::Of(uint32_t record_bytes, uint64_t segment_bytes) {
  SegmentGeometry geometry;
  geometry.record_bytes = record_bytes;
  EMBANK_CHECK(segment_bytes <= kSegmentBytesMax);
  if (segment_bytes <= 2 * kBlockBytes) return geometry;
  const uint64_t space_bytes = segment_bytes - kBlockBytes;
  // Both ends of the middle are rounded to blocks: the first guess may be some slots too many.
  uint64_t slots = space_bytes / (record_bytes + kFooterBytesPerSlot);
  const auto needed_bytes = [&] {
    return RoundUp(slots * record_bytes, kBlockBytes) + FooterBytes(slots);
  };
  while (slots > 0 && needed_bytes() > space_bytes) --slots;
  geometry.slots = static_cast<uint32_t>(slots);
  geometry.footer_bytes = FooterBytes(slots);
  geometry.footer_offset = segment_bytes - geometry.footer_bytes;
  return geometry;
}

uint64_t SegmentGeometry::BytesFor(uint32_t record_bytes, uint32_t slots) {
  return kBlockBytes + RoundUp(uint64_t{slots} * record_bytes, kBlockBytes) + FooterBytes(slots);
}

uint32_t SegmentGeometry::SlotInFreshBlock(uint32_t used) const {
  const uint64_t fresh = RoundUp(OffsetOf(used), kBlockBytes) - kBlockBytes;
  return static_cast<uint32_t>((fresh + record_bytes - 1) / record_bytes);
}

void EncodeSegmentHeader(const SegmentHeader& header, std::span<std::byte> block) {
  EMBANK_CHECK(block.size() == kBlockBytes && IsSound(header));
  const HeaderImage image = {.magic = kHeaderMagic,
                             .version = kSegmentFormatVersion,
                             .row_class = header.row_class,
                             .store_id = header.store_id,
                             .segment_id = header.segment_id,
                             .segment_bytes = header.segment_bytes,
                             .record_bytes = header.record_bytes,
                             .zero = 0};
  std::fill(block.begin(), block.end(), std::byte{0});
  std::memcpy(block.data(), &image, sizeof image);
  StoreChecksum(block);
}

StatusOr<SegmentHeader> DecodeSegmentHeader(std::span<const std::byte> block) {
  EMBANK_CHECK(block.size() == kBlockBytes);
  HeaderImage image;
  std::memcpy(&image, block.data(), sizeof image);
  if (image.magic != kHeaderMagic || !ChecksumStands(block)) return Damaged("header");
  if (image.version != kSegmentFormatVersion) {
    return FailedPreconditionError(StrCat("the segment's format is version ", image.version,
                                          "; this library reads version ", kSegmentFormatVersion));
  }
  const SegmentHeader header = {.store_id = image.store_id,
                                .segment_id = image.segment_id,
                                .row_class = image.row_class,
                                .record_bytes = image.record_bytes,
                                .segment_bytes = image.segment_bytes};
  if (!IsSound(header)) return Damaged("header");
  return header;
}

void EncodeSegmentFooter(const SegmentHeader& header, const SegmentFooter& footer,
                         std::span<std::byte> bytes) {
  EMBANK_CHECK(IsSound(header) && AreTables(footer.tables));
  const SegmentGeometry geometry = SegmentGeometry::Of(header.record_bytes, header.segment_bytes);
  EMBANK_CHECK(bytes.size() == geometry.footer_bytes);
  EMBANK_CHECK(footer.keys.size() == footer.tables.size());
  EMBANK_CHECK(footer.keys.size() <= geometry.slots);
  const TrailerImage trailer = {.magic = kTrailerMagic,
                                .store_id = header.store_id,
                                .segment_id = header.segment_id,
                                .slots = static_cast<uint32_t>(footer.keys.size()),
                                .crc = 0};
  std::fill(bytes.begin(), bytes.end(), std::byte{0});
  if (!footer.keys.empty()) {
    std::memcpy(bytes.data(), footer.keys.data(), footer.keys.size_bytes());
    std::memcpy(bytes.data() + footer.keys.size_bytes(), footer.tables.data(),
                footer.tables.size_bytes());
  }
  std::memcpy(bytes.data() + bytes.size() - sizeof trailer, &trailer, sizeof trailer);
  StoreChecksum(bytes);
}

StatusOr<SegmentFooter> DecodeSegmentFooter(const SegmentHeader& header,
                                            std::span<const std::byte> bytes) {
  EMBANK_CHECK(IsSound(header) && reinterpret_cast<uintptr_t>(bytes.data()) % sizeof(Key) == 0);
  const SegmentGeometry geometry = SegmentGeometry::Of(header.record_bytes, header.segment_bytes);
  if (bytes.size() != geometry.footer_bytes || !ChecksumStands(bytes)) return Damaged("footer");
  TrailerImage trailer;
  std::memcpy(&trailer, bytes.data() + bytes.size() - sizeof trailer, sizeof trailer);
  if (Seeded(SeededBug::kNoFooterIdentity)) trailer.segment_id = header.segment_id;
  // The same bytes in another segment's place are whole, but do not belong to it.
  if (trailer.magic != kTrailerMagic || trailer.store_id != header.store_id ||
      trailer.segment_id != header.segment_id || trailer.slots > geometry.slots) {
    return Damaged("footer");
  }
  const std::span keys(reinterpret_cast<const Key*>(bytes.data()), trailer.slots);
  const std::span tables(reinterpret_cast<const TableId*>(keys.data() + keys.size()), keys.size());
  if (!AreTables(tables)) return Damaged("footer");
  return SegmentFooter{keys, tables};
}

// The trailer says where the slot's entries stand; they count once the checksum of all has come
// out.
StatusOr<SlotOwner> ReadSlotOwner(const SegmentHeader& header, uint32_t slot, File* file,
                                  std::span<std::byte> buffer) {
  EMBANK_CHECK(IsSound(header) && buffer.size() % kBlockBytes == 0 && !buffer.empty());
  const auto damaged = [] {
    return NoThrowStatus(StatusCode::kDataLoss,
                         [] { return "the segment's footer does not tell whose the slot is"; });
  };
  const SegmentGeometry geometry = SegmentGeometry::Of(header.record_bytes, header.segment_bytes);
  const uint64_t begin = geometry.footer_offset;
  const uint64_t end = begin + geometry.footer_bytes;
  const auto read = [&](uint64_t offset, std::span<std::byte> into) {
    const Status status = file->Read(offset, into);
    return IsOutOfRange(status) ? damaged() : status;
  };
  EMBANK_RETURN_IF_ERROR(read(end - kBlockBytes, buffer.first(kBlockBytes)));
  TrailerImage trailer;
  std::memcpy(&trailer, buffer.data() + kBlockBytes - sizeof trailer, sizeof trailer);
  if (trailer.magic != kTrailerMagic || trailer.store_id != header.store_id ||
      trailer.segment_id != header.segment_id || trailer.slots > geometry.slots ||
      slot >= trailer.slots) {
    return damaged();
  }
  const uint64_t key_at = begin + slot * sizeof(Key);
  const uint64_t table_at = begin + trailer.slots * sizeof(Key) + slot * sizeof(TableId);
  EMBANK_CHECK(table_at + sizeof(TableId) + sizeof trailer <= end);
  SlotOwner owner = {};
  uint32_t crc = 0;
  for (uint64_t offset = begin; offset < end; offset += buffer.size()) {
    const std::span<std::byte> piece =
        buffer.first(std::min<uint64_t>(buffer.size(), end - offset));
    EMBANK_RETURN_IF_ERROR(read(offset, piece));
    const bool is_last = offset + piece.size() == end;
    crc = ExtendCrc32c(crc, piece.first(piece.size() - (is_last ? sizeof crc : 0)));
    // Pieces are whole blocks: no entry lies across two.
    const auto take = [&](uint64_t at, void* into, size_t bytes) {
      if (at < offset || at >= offset + piece.size()) return;
      std::memcpy(into, piece.data() + (at - offset), bytes);
    };
    take(key_at, &owner.key, sizeof owner.key);
    take(table_at, &owner.table, sizeof owner.table);
  }
  if (crc != trailer.crc || owner.table >= kNoTable) return damaged();
  return owner;
}

}  // namespace embank
