// The part of ssd_bytes that the log reserves for checkpoints: the manifests of the two that are
// kept and of the next one, each with a blob, and the files with the heat of rows.
#ifndef EMBANK_STORE_CHECKPOINT_CHECKPOINT_SPACE_H_
#define EMBANK_STORE_CHECKPOINT_CHECKPOINT_SPACE_H_

#include <cstdint>
#include <optional>

#include "base/status.h"
#include "store/catalog/catalog.h"
#include "store/checkpoint/manifest.h"
#include "tiers/logs/row_logs.h"

namespace embank {

// Describes the tables and row classes of a catalog as a manifest without number and segments.
// Throws std::bad_alloc.
Manifest DescribeTables(const Catalog& catalog) EMBANK_SHARED_LOCKS_REQUIRED(catalog.mutex());

// The callers hold the lock of the catalog that they describe. A caller that shares that lock also
// holds the lock of checkpoints. All calls succeed if ssd_bytes has no limit, or the store is
// read-only. They throw std::bad_alloc.
class CheckpointSpace {
 public:
  // `segment_bytes` is given where the size of segments does not follow from the options.
  CheckpointSpace(const StoreOptions& options, RowLogs* logs, std::optional<uint64_t> segment_bytes)
      : options_(options), logs_(logs), segment_bytes_(segment_bytes) {}
  CheckpointSpace(const CheckpointSpace&) = delete;
  CheckpointSpace& operator=(const CheckpointSpace&) = delete;

  // Reserves the space of a store that is opened, however much that is. If it is too much, no row
  // changes until rows are erased.
  void Accept(const Manifest& tables, uint64_t blob_bytes, uint64_t heat_bytes);

  // Reserves space for one more table, and for its row class. kResourceExhausted: ssd_bytes has too
  // little space for it, now or ever.
  Status ReserveForTable(Manifest tables, ManifestTable table);
  // Reserves space for a blob of `bytes`. kResourceExhausted.
  Status ReserveForBlob(const Manifest& tables, uint64_t bytes);
  // Reserves `bytes` for all heat files, instead of the former reservation; with `must` in
  // any case. False: there is no space, and the former reservation stays.
  bool ReserveForHeat(const Manifest& tables, uint64_t bytes, bool must);

 private:
  uint64_t OtherLogsBytesMax(const Manifest& tables) const;
  bool Reserve(const Manifest& tables, uint64_t blob_bytes, bool must);

  const StoreOptions& options_;
  RowLogs* const logs_;
  const std::optional<uint64_t> segment_bytes_;
  uint64_t heat_bytes_ = 0;
  uint64_t blob_bytes_ = 0;  // of each manifest
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_CHECKPOINT_SPACE_H_
