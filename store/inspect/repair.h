// Saves what can still be read of a damaged store into a new one.
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
// A record keeps its place, and the target the source's id: so its bytes, checksum included, are
// those of the source. What else there is of the source is not needed: a row is its record, and
// which rows there are the manifest says.
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
  std::string target;     // that does not exist, or is empty; not within the directory
  bool previous = false;  // saves the last checkpoint but one, as if the last had not been
};

// Told how many segments of how many are done; false: stop.
using RepairProgress = FunctionRef<bool(uint64_t, uint64_t)>;

// Makes a store of the newest checkpoint whose manifest can be read, with those of its rows whose
// records are whole; once it returns OK the target is durable, and has that one checkpoint.
// Writes nothing into the source, which may be open read-only. Memory: the manifests, a segment and
// its footer, and what is lost. Reads that fail count as damage. kDataLoss: no manifest can be
// read; kNotFound: there is no store; kUnavailable: it is open to be changed, or the target's
// device fails; kFailedPrecondition: it is of a newer format, or has no previous checkpoint;
// kAlreadyExists: the target is not empty; kCancelled; kPermissionDenied, kResourceExhausted. Then
// what was made is removed; only what fails after the manifest got its name stays, and may turn out
// to be the store. std::bad_alloc leaves it only before anything is made.
StatusOr<RepairReport> RepairStore(FileSystem* files, const RepairOptions& options,
                                   RepairProgress progress);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_REPAIR_H_
