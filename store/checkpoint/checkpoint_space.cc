#include "store/checkpoint/checkpoint_space.h"

#include <algorithm>
#include <utility>

#include "base/str_cat.h"
#include "store/checkpoint/ssd_need.h"

namespace embank {
namespace {

// Blobs are at most as large as the last one, or of a common size.
constexpr uint64_t kBlobBytes = uint64_t{16} << 10;

}  // namespace

Manifest DescribeTables(const Catalog& catalog) {
  Manifest manifest;
  manifest.row_classes = catalog.ListRowClasses();
  for (const Table* const table : catalog.live()) {
    manifest.tables.push_back({table->id(), table->name(), table->options()});
  }
  return manifest;
}

void CheckpointSpace::Accept(const Manifest& tables, uint64_t blob_bytes, uint64_t heat_bytes) {
  heat_bytes_ = heat_bytes;
  Reserve(tables, blob_bytes, /*must=*/true);
}

Status CheckpointSpace::ReserveForTable(Manifest tables, ManifestTable table) {
  const RowClass row_class = RowClassOf(table.options);
  const std::vector<RowClass>& classes = tables.row_classes;
  const bool is_known = std::find(classes.begin(), classes.end(), row_class) != classes.end();
  if (!is_known) tables.row_classes.push_back(row_class);
  tables.tables.push_back(std::move(table));
  // If no row of it would ever fit, no checkpoint helps.
  if (options_.ssd_bytes != 0 &&
      !HasSpaceForRows(tables, options_.ssd_bytes, logs_->lowest().options().segment_bytes,
                       kBlobBytes + OtherLogsBytesMax(tables))) {
    return ResourceExhaustedError(StrCat(
        "ssd_bytes is ", options_.ssd_bytes, "; for a row of each of its tables, with table \"",
        tables.tables.back().name, "\", the store needs at least ",
        LeastSsdBytes(tables, options_, segment_bytes_, kBlobBytes + OtherLogsBytesMax(tables))));
  }
  if (Reserve(tables, blob_bytes_, /*must=*/false)) return OkStatus();
  return ResourceExhaustedError(StrCat("a table more has no space in a checkpoint; ",
                                       logs_->lowest().space().RefusalReason()));
}

Status CheckpointSpace::ReserveForBlob(const Manifest& tables, uint64_t bytes) {
  if (Reserve(tables, std::max(bytes, blob_bytes_), /*must=*/false)) return OkStatus();
  return ResourceExhaustedError(StrCat(
      "blob_bytes: ", bytes, "; what is kept of ssd_bytes for a checkpoint holds ", blob_bytes_));
}

bool CheckpointSpace::ReserveForHeat(const Manifest& tables, uint64_t bytes, bool must) {
  const uint64_t former = std::exchange(heat_bytes_, bytes);
  if (Reserve(tables, blob_bytes_, must)) return true;
  heat_bytes_ = former;
  return false;
}

// Each manifest names the segments of all logs.
uint64_t CheckpointSpace::OtherLogsBytesMax(const Manifest& tables) const {
  uint64_t bytes = 0;
  for (const RowLog* const log : logs_->all()) {
    if (log == &logs_->lowest()) continue;
    const RowLogOptions& of = log->options();
    bytes +=
        ManifestBytesMax(tables, of.ssd_bytes, std::min(of.segment_bytes_min, of.segment_bytes),
                         of.segment_bytes, 0);
  }
  return bytes;
}

bool CheckpointSpace::Reserve(const Manifest& tables, uint64_t blob_bytes, bool must) {
  if (options_.ssd_bytes == 0 || options_.read_only) return true;
  const uint64_t blob_bytes_min = std::max(blob_bytes, kBlobBytes);
  const uint64_t bytes =
      ManifestsBytesMax(tables, options_.ssd_bytes, logs_->lowest().options().segment_bytes,
                        blob_bytes_min + OtherLogsBytesMax(tables)) +
      heat_bytes_;
  if (!logs_->lowest().space().ReserveMetadata(bytes, must)) return false;
  blob_bytes_ = blob_bytes_min;
  return true;
}

}  // namespace embank
