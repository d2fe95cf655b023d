// The ssd_bytes that a store needs before its log has space for any row.
#ifndef EMBANK_STORE_CHECKPOINT_SSD_NEED_H_
#define EMBANK_STORE_CHECKPOINT_SSD_NEED_H_

#include <cstdint>
#include <optional>

#include "store/checkpoint/manifest.h"
#include "store/table/options.h"

namespace embank {

// Bytes reserved for manifests: the two that stay, and the next one while it is written.
uint64_t ManifestsBytesMax(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes,
                           uint64_t blob_bytes);

// Whether a log of `ssd_bytes` (not 0) has space for a row of each row class, changed again and
// again, and for checkpoints of them. `tables` has the classes and the tables of the store.
bool HasSpaceForRows(const Manifest& tables, uint64_t ssd_bytes, uint64_t segment_bytes,
                     uint64_t blob_bytes);

// The least ssd_bytes with that space. `segment_bytes`: for stores whose segments do not follow
// from their options.
uint64_t LeastSsdBytes(const Manifest& tables, const StoreOptions& options,
                       std::optional<uint64_t> segment_bytes, uint64_t blob_bytes);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_SSD_NEED_H_
