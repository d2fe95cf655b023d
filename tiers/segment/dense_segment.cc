#include "tiers/segment/dense_segment.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "tiers/segment/log_record.h"

namespace embank {
namespace {

constexpr uint64_t kPieceBytes = uint64_t{1} << 20;
// A piece of records, and the rests of blocks: of the source before and after it; of the target
// before it, or its header.
constexpr uint64_t kBufferBytes = kPieceBytes + 2 * kBlockBytes;
static_assert(kRecordBytesMax <= kPieceBytes);

}  // namespace

DenseSegment::DenseSegment(const SegmentRows& source) : source_(source), header_(source.header) {
  const auto rows = static_cast<uint32_t>(source.CountRows());
  EMBANK_CHECK(rows > 0 && source.keys.size() == source.used_slots);
  header_.segment_bytes = SegmentGeometry::BytesFor(header_.record_bytes, rows);
  geometry_ = SegmentGeometry::Of(header_.record_bytes, header_.segment_bytes);
  EMBANK_CHECK(geometry_.slots >= rows && header_.segment_bytes <= source.header.segment_bytes);
}

SegmentRows DenseSegment::Describe() const {
  const auto rows = static_cast<uint32_t>(source_.CountRows());
  SegmentRows described = {.header = header_,
                           .tier = Tier::kSsd,
                           .used_slots = rows,
                           .bits = std::vector<uint64_t>(RoundUp(rows, 64) / 64),
                           .keys = {},
                           .tables = {}};
  for (uint32_t slot = 0; slot < rows; ++slot) {
    described.bits[slot / 64] |= uint64_t{1} << (slot % 64);
  }
  return described;
}

Status DenseSegment::Copy(File* source, MemorySource* memory, File* target, CountDone done) {
  EMBANK_ASSIGN_OR_RETURN(piece_, AlignedBuffer::Create(memory, &budget_, kBufferBytes));
  EMBANK_ASSIGN_OR_RETURN(buffer_, AlignedBuffer::Create(memory, &budget_, kBufferBytes));
  EncodeSegmentHeader(header_, {buffer_.data(), kBlockBytes});
  begin_ = 0;
  end_ = kBlockBytes;
  const auto slots =
      static_cast<uint32_t>(std::max<uint64_t>(kPieceBytes / header_.record_bytes, 1));
  for (uint32_t slot = 0; slot < source_.used_slots; slot += slots) {
    EMBANK_RETURN_IF_ERROR(CopyPiece(source, slot, std::min(slot + slots, source_.used_slots)));
    EMBANK_RETURN_IF_ERROR(Write(target, RoundDown(end_ - begin_, kBlockBytes), done));
  }
  const uint64_t rest_bytes = RoundUp(end_ - begin_, kBlockBytes);
  std::fill(buffer_.data() + (end_ - begin_), buffer_.data() + rest_bytes, std::byte{0});
  EMBANK_RETURN_IF_ERROR(Write(target, rest_bytes, done));
  piece_ = AlignedBuffer();
  buffer_ = AlignedBuffer();
  EMBANK_RETURN_IF_ERROR(WriteFooter(memory, target));
  return done(header_.segment_bytes - begin_);
}

Status DenseSegment::WriteFooter(MemorySource* memory, File* target) {
  EMBANK_ASSIGN_OR_RETURN(
      const AlignedBuffer owners,
      AlignedBuffer::Create(memory, &budget_, rows_ * (sizeof(Key) + sizeof(TableId))));
  const std::span keys(reinterpret_cast<Key*>(owners.data()), rows_);
  const std::span tables(reinterpret_cast<TableId*>(keys.data() + rows_), rows_);
  size_t row = 0;
  for (uint32_t slot = 0; slot < source_.used_slots; ++slot) {
    if (!Lives(slot)) continue;
    keys[row] = source_.keys[slot];
    tables[row++] = source_.tables[slot];
  }
  EMBANK_CHECK(row == rows_);
  EMBANK_ASSIGN_OR_RETURN(const AlignedBuffer footer,
                          AlignedBuffer::Create(memory, &budget_, geometry_.footer_bytes));
  const std::span bytes(footer.data(), geometry_.footer_bytes);
  EncodeSegmentFooter(header_, {keys, tables}, bytes);
  return target->Write(geometry_.footer_offset, bytes);
}

Status DenseSegment::CopyPiece(File* source, uint32_t begin_slot, uint32_t end_slot) {
  while (begin_slot < end_slot && !Lives(begin_slot)) ++begin_slot;
  while (begin_slot < end_slot && !Lives(end_slot - 1)) --end_slot;
  if (begin_slot == end_slot) return OkStatus();
  const auto geometry = SegmentGeometry::Of(header_.record_bytes, source_.header.segment_bytes);
  const uint64_t begin = RoundDown(geometry.OffsetOf(begin_slot), kBlockBytes);
  const uint64_t end = RoundUp(geometry.OffsetOf(end_slot), kBlockBytes);
  EMBANK_CHECK(end - begin <= kBufferBytes);
  EMBANK_RETURN_IF_ERROR(source->Read(begin, {piece_.data(), end - begin}));
  for (uint32_t slot = begin_slot; slot < end_slot; ++slot) {
    if (!Lives(slot)) continue;
    Add(slot, {piece_.data() + (geometry.OffsetOf(slot) - begin), header_.record_bytes});
  }
  return OkStatus();
}

void DenseSegment::Add(uint32_t slot, std::span<const std::byte> record) {
  const uint32_t new_slot = rows_++;
  EMBANK_CHECK(end_ == geometry_.OffsetOf(new_slot));
  EMBANK_CHECK(end_ - begin_ <= kBufferBytes - record.size());
  const std::span copy(buffer_.data() + (end_ - begin_), record.size());
  std::memcpy(copy.data(), record.data(), record.size());
  const uint64_t id = header_.segment_id;
  const bool is_whole = RecordIsWhole({header_.store_id, id, slot}, record);
  if (is_whole || Seeded(SeededBug::kDamageSealed)) {
    SealRecord({header_.store_id, id, new_slot}, LoadRecordHeader(record), copy);
  }
  end_ += record.size();
}

// Writes `bytes` bytes of the buffer, whole blocks, and keeps the rest.
Status DenseSegment::Write(File* target, uint64_t bytes, CountDone done) {
  if (bytes == 0) return OkStatus();
  EMBANK_RETURN_IF_ERROR(target->Write(begin_, {buffer_.data(), bytes}));
  begin_ += bytes;
  end_ = std::max(end_, begin_);
  std::memmove(buffer_.data(), buffer_.data() + bytes, end_ - begin_);
  return done(bytes);
}

}  // namespace embank
