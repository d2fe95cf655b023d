// Saves the readable rows of a damaged store into a new one.
//
//   source:  manifest     segment: footer, records     heat
//               |                        |               |
//            the newest        records that are whole   if it is whole
//            that is whole,    and the checkpoint's
//               |                        |               |
//   target:  manifest     segment of the same number,   heat
//            of these rows  each record in its slot,
//                           a new footer
//
// A record keeps its place, and the target has the id of the source. So the bytes of a record,
// checksum included, stay the same. Nothing else of the source is needed: a row is its record, and
// the manifest says which rows exist.
#ifndef EMBANK_STORE_INSPECT_REPAIR_H_
#define EMBANK_STORE_INSPECT_REPAIR_H_

#include <cstdint>
#include <string>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/status_or.h"
#include "store/inspect/repair_report.h"

namespace embank {

struct RepairOptions {
  std::string directory;
  std::string target;     // must not exist, or be empty; not within the directory
  bool previous = false;  // saves the checkpoint before the last one
  // The directory of the PMem; empty: where the manifest says.
  std::string pmem_path = {};
};

// Reports that `done` of `total` segments are done; returns false to stop.
using RepairProgress = FunctionRef<bool(uint64_t, uint64_t)>;

// Makes a store of the newest checkpoint whose manifest can be read, with those of its rows whose
// records are whole; its manifest counts the others as lost. The target is durable when it returns
// OK, and has that one checkpoint. Writes nothing into the source, which may be open read-only. A
// read that fails counts as damage. Memory: the manifests, a segment and its footer, and the
// losses. After an error it removes what it made. Only files of an error behind the manifest's
// rename stay, and may turn out to be the store. Throws std::bad_alloc only before anything is
// made.
// kDataLoss: no manifest can be read.
// kNotFound: there is no store.
// kUnavailable: it is open to be changed, or the target's device fails.
// kFailedPrecondition: it has a newer format, or no previous checkpoint.
// kAlreadyExists: the target is not empty.
// kCancelled, kPermissionDenied, kResourceExhausted.
StatusOr<RepairReport> RepairStore(FileSystem* files, const RepairOptions& options,
                                   RepairProgress progress);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_REPAIR_H_
