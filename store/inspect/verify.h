// Checks that the files of a store are as they were written, and agree with each other.
//
//   directory -> manifests kept -> segments that they name: header, footer, records that live
//
// Each record of a kept checkpoint is read once, even if both checkpoints have it. Data that an
// opening would not read is skipped: rows that are gone, and segments that no checkpoint has.
#ifndef EMBANK_STORE_INSPECT_VERIFY_H_
#define EMBANK_STORE_INSPECT_VERIFY_H_

#include <cstdint>
#include <string>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/status_or.h"
#include "store/inspect/verify_report.h"

namespace embank {

// Reports that `done` of `total` segments are done; returns false to stop.
using VerifyProgress = FunctionRef<bool(uint64_t, uint64_t)>;

// Verifies a store. Writes nothing. While it runs, no process opens the store to change it, but
// others may read or verify it. Memory: the manifests, a window of a segment and its footer, and
// the findings. A read that fails counts as damage of its data. `pmem_path` is the directory of the
// PMem; empty: where the manifests say.
// kNotFound: there is no store.
// kUnavailable: it is open to be changed.
// kFailedPrecondition: a file has a newer format.
// kCancelled, kPermissionDenied, kResourceExhausted. Throws std::bad_alloc.
StatusOr<VerifyReport> VerifyStore(FileSystem* files, const std::string& path,
                                   VerifyProgress progress, const std::string& pmem_path = {});

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_VERIFY_H_
