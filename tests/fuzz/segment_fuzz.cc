// Any bytes as a segment's header and footer, as they are and with right checksums: accepted ones
// are sound, and are the same when they are written again.
#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/sealed_bytes.h"
#include "tiers/segment/segment_format.h"

namespace embank::test {
namespace {

void TryHeader(std::span<const std::byte> block) {
  const StatusOr<SegmentHeader> header = DecodeSegmentHeader(block);
  if (!header.ok()) {
    EMBANK_CHECK(IsDataLoss(header.status()) || IsFailedPrecondition(header.status()));
    return;
  }
  EMBANK_CHECK(IsSound(*header));
  const auto geometry = SegmentGeometry::Of(header->record_bytes, header->segment_bytes);
  EMBANK_CHECK(geometry.OffsetOf(geometry.slots) <= geometry.footer_offset);
  EMBANK_CHECK(geometry.footer_offset + geometry.footer_bytes == header->segment_bytes);
  std::vector<std::byte> again(kBlockBytes);
  EncodeSegmentHeader(*header, again);
  EMBANK_CHECK(*DecodeSegmentHeader(again) == *header);
}

void TryFooter(const SegmentHeader& header, std::span<const std::byte> bytes) {
  const StatusOr<SegmentFooter> footer = DecodeSegmentFooter(header, bytes);
  if (!footer.ok()) {
    EMBANK_CHECK(IsDataLoss(footer.status()));
    return;
  }
  EMBANK_CHECK(footer->keys.size() == footer->tables.size());
  std::vector<uint64_t> again(bytes.size() / sizeof(uint64_t));
  EncodeSegmentFooter(header, *footer, std::as_writable_bytes(std::span(again)));
  const auto decoded = DecodeSegmentFooter(header, std::as_bytes(std::span(again)));
  EMBANK_CHECK(decoded.ok() &&
               std::equal(decoded->keys.begin(), decoded->keys.end(), footer->keys.begin(),
                          footer->keys.end()) &&
               std::equal(decoded->tables.begin(), decoded->tables.end(), footer->tables.begin(),
                          footer->tables.end()));
}

}  // namespace

void FuzzOne(std::span<const std::byte> bytes) {
  FuzzInput input(bytes);
  // A header: the beginning of its block, whose rest is zeros.
  std::vector<std::byte> block(kBlockBytes);
  std::copy_n(bytes.begin(), std::min<size_t>(bytes.size(), 64), block.begin());
  TryHeader(block);
  SealAgain(block);
  TryHeader(block);

  // A footer: its end is the input's.
  const SegmentHeader header = {
      .store_id = input.Take<uint8_t>(),
      .segment_id = input.Take<uint8_t>(),
      .row_class = 1,
      .record_bytes = 48u + 16u * input.Take<uint8_t>(),
      .segment_bytes = (8u + uint64_t{input.Take<uint8_t>()}) * kBlockBytes};
  EMBANK_CHECK(IsSound(header));
  const auto geometry = SegmentGeometry::Of(header.record_bytes, header.segment_bytes);
  std::vector<uint64_t> words(geometry.footer_bytes / sizeof(uint64_t));
  const std::span<std::byte> footer = std::as_writable_bytes(std::span(words));
  const std::span<const std::byte> rest = input.rest();
  const size_t used = std::min(rest.size(), footer.size());
  std::copy(rest.end() - static_cast<ptrdiff_t>(used), rest.end(),
            footer.end() - static_cast<ptrdiff_t>(used));
  TryFooter(header, footer);
  SealAgain(footer);
  TryFooter(header, footer);
}

}  // namespace embank::test
