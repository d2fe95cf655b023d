// Recovery: a store that is opened gets back the tables, the rows and the heat of a checkpoint.
//
//   manifest  ->  row classes, tables
//   footers of the manifest's segments  ->  index; rows are read when they are first looked up
//   heat file  ->  sketch
#ifndef EMBANK_STORE_CHECKPOINT_RECOVERY_H_
#define EMBANK_STORE_CHECKPOINT_RECOVERY_H_

#include "base/files/file_system.h"
#include "base/status.h"
#include "store/catalog/catalog.h"
#include "store/checkpoint/opened_manifests.h"
#include "store/table/store_context.h"

namespace embank {

// Recovers the opened checkpoint, before the first batch. The log also takes over the segments of
// the other kept checkpoint, unless the store is read-only. The catalog, the index and the logs of
// the store are empty, and cannot be used after an error. `files`: of the directory. Throws
// std::bad_alloc. kResourceExhausted: dram_bytes has no memory for tables or index. kDataLoss: a
// segment is damaged; the message names a checkpoint that can be opened instead. The statuses of
// files.
Status Recover(const StoreContext& store, Directory* files, Catalog* catalog,
               const OpenedManifests& manifests);

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_RECOVERY_H_
