// Any bytes as a manifest with its bitmaps, as they are and with a right checksum: an accepted
// manifest is sound, and is the same when it is written again.
#include <algorithm>
#include <vector>

#include "base/check.h"
#include "store/checkpoint/manifest.h"
#include "tests/fuzz/fuzz_input.h"
#include "tests/support/sealed_bytes.h"

namespace embank::test {
namespace {

void TryManifest(std::span<const std::byte> bytes) {
  const StatusOr<Manifest> manifest = DecodeManifest(bytes);
  if (!manifest.ok()) {
    EMBANK_CHECK(IsDataLoss(manifest.status()) || IsFailedPrecondition(manifest.status()));
    return;
  }
  for (const SegmentRows& rows : manifest->segments) {
    EMBANK_CHECK(IsSound(rows.header) && rows.header.row_class < manifest->row_classes.size());
    const auto geometry = SegmentGeometry::Of(rows.header.record_bytes, rows.header.segment_bytes);
    EMBANK_CHECK(rows.used_slots <= geometry.slots);
    EMBANK_CHECK(rows.bits.size() == (rows.used_slots + 63) / 64);
  }
  const std::vector<std::byte> again = EncodeManifest(*manifest);
  const StatusOr<Manifest> decoded = DecodeManifest(again);
  EMBANK_CHECK(decoded.ok() && EncodeManifest(*decoded) == again);
}

}  // namespace

void FuzzOne(std::span<const std::byte> bytes) {
  TryManifest(bytes);
  if (bytes.size() < sizeof(uint32_t)) return;
  std::vector<std::byte> sealed(bytes.begin(), bytes.end());
  SealAgain(sealed);
  TryManifest(sealed);
}

}  // namespace embank::test
