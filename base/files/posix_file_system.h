// The system's files.
#ifndef EMBANK_BASE_FILES_POSIX_FILE_SYSTEM_H_
#define EMBANK_BASE_FILES_POSIX_FILE_SYSTEM_H_

#include <memory>

#include "base/files/file_system.h"
#include "base/files/uring.h"

namespace embank {

struct PosixFileOptions {
  // Lists of transfers use io_uring where the system allows it. Elsewhere, and where a ring fails,
  // threads read and write.
  bool use_io_uring = true;
  // The best features that rings may use; features that the system lacks are left out.
  IoCompletions completions = IoCompletions::kDeferred;
  uint32_t transfer_threads = 32;
  // The limit of resting files that are open at once. 0: half of the descriptors that the process
  // may have when the file system is made (RLIMIT_NOFILE, the soft limit), from 8 to 524,288.
  uint32_t open_files_max = 0;
};

// Thread-safe, with all of its files.
std::unique_ptr<FileSystem> MakePosixFileSystem(const PosixFileOptions& options);

// Returns "yes: " and the features of rings on this machine, or "no: " and why transfers use
// threads. It makes a first ring to find out.
const char* IoUringState();

}  // namespace embank

#endif  // EMBANK_BASE_FILES_POSIX_FILE_SYSTEM_H_
