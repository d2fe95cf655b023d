// Whether the files of a store are as it wrote them, and agree with each other.
//
//   directory -> manifests kept -> segments that they name: header, footer, records that live
//
// Each record that a kept checkpoint has is read, once, whichever of them have it. What nobody
// would read when the store is opened is not looked at: rows that are gone, segments of nobody.
#ifndef EMBANK_STORE_INSPECT_VERIFY_H_
#define EMBANK_STORE_INSPECT_VERIFY_H_

#include <cstdint>
#include <string>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/status_or.h"
#include "store/inspect/verify_report.h"

namespace embank {

// Told how many segments of how many are done; false: stop.
using VerifyProgress = FunctionRef<bool(uint64_t, uint64_t)>;

// Writes nothing; while it runs nobody opens the store to change it, but others may read or verify
// it. Memory: the manifests, a window of a segment and its footer, and what is found. Reads that
// fail count as damage of what they were to bring. kNotFound: there is no store; kUnavailable: it
// is open to be changed;
// kFailedPrecondition: a file is of a newer format; kCancelled; kPermissionDenied,
// kResourceExhausted. std::bad_alloc leaves it.
StatusOr<VerifyReport> VerifyStore(FileSystem* files, const std::string& path,
                                   VerifyProgress progress);

}  // namespace embank

#endif  // EMBANK_STORE_INSPECT_VERIFY_H_
