#include "store/checkpoint/ssd_need.h"

#include <algorithm>

#include "base/files/file_system.h"
#include "base/memory/memory.h"
#include "store/placement/memory_plan.h"
#include "tiers/segment/log_record.h"
#include "tiers/space/space_accounts.h"

namespace embank {
namespace {

// Returns the whole segments that are left, or missing (negative), when each class has a dirty row
// and a full segment of rows that only checkpoints have. With fewer segments the row could be
// created, but not changed for ever.
int64_t SpareSegments(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes,
                      uint64_t blob_bytes) {
  // A budget without a limit needs no reservation of memory.
  MemoryBudget budget(0);
  SpaceFigures figures;
  SpaceAccounts accounts(SystemMemorySource(), &budget,
                         {.ssd_bytes = ssd_bytes, .segment_bytes = segment_bytes}, &figures);
  accounts.ReserveMetadata(ManifestsBytesMax(tables, ssd_bytes, segment_bytes, blob_bytes),
                           /*must=*/true);
  for (uint32_t i = 0; i < tables.row_classes.size(); ++i) {
    // A log that writes none of the rows needs no memory for its segments.
    accounts
        .AddClass(i, RecordBytesOf(tables.row_classes[i].slot_bytes), /*forgets=*/false,
                  /*is_written=*/false)
        .IgnoreError();
    accounts.Reserve(i, 1, /*must=*/true);
  }
  return accounts.SpareSegments() - static_cast<int64_t>(tables.row_classes.size());
}

}  // namespace

uint64_t ManifestsBytesMax(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes,
                           uint64_t blob_bytes) {
  constexpr uint64_t kManifests = 3;
  return kManifests * ManifestBytesMax(tables, ssd_bytes, segment_bytes, segment_bytes, blob_bytes);
}

bool HasSpaceForRows(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes,
                     uint64_t blob_bytes) {
  return SpareSegments(tables, ssd_bytes, segment_bytes, blob_bytes) >= 0;
}

uint64_t LeastSsdBytes(const Manifest& tables, const StoreOptions& options,
                       std::optional<uint64_t> segment_bytes, uint64_t blob_bytes) {
  StoreOptions larger = options;
  const auto segment_bytes_now = [&] {
    return segment_bytes.has_value() ? *segment_bytes : LogSizes(larger).segment_bytes;
  };
  larger.ssd_bytes = 1;
  larger.ssd_bytes = SpaceAccounts::kSegmentsMin * segment_bytes_now();
  // More segments need larger manifests: a few rounds.
  while (true) {
    const int64_t spare = SpareSegments(tables, larger.ssd_bytes, segment_bytes_now(), blob_bytes);
    if (spare >= 0) break;
    larger.ssd_bytes += static_cast<uint64_t>(-spare) * segment_bytes_now();
  }
  // Takes off bytes beyond whole segments; with fewer segments, manifests need less.
  while (true) {
    const uint64_t segment = segment_bytes_now();
    const uint64_t enough = larger.ssd_bytes;
    const uint64_t aside = ManifestsBytesMax(tables, enough, segment, blob_bytes);
    larger.ssd_bytes -= std::max<uint64_t>((enough - aside) % segment, 1);
    if (larger.ssd_bytes < SpaceAccounts::kSegmentsMin * segment ||
        !HasSpaceForRows(tables, larger.ssd_bytes, segment_bytes_now(), blob_bytes)) {
      return enough;
    }
  }
}

}  // namespace embank
