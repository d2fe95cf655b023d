// The system's files.
#ifndef EMBANK_BASE_FILES_POSIX_FILE_SYSTEM_H_
#define EMBANK_BASE_FILES_POSIX_FILE_SYSTEM_H_

#include <memory>

#include "base/files/file_system.h"
#include "base/files/uring.h"

namespace embank {

struct PosixFileOptions {
  // Lists of transfers go through io_uring where the system lets it; else, and where a ring fails,
  // through threads that read and write.
  bool use_io_uring = true;
  // The best that rings may use; what a system does not have is left out.
  IoCompletions completions = IoCompletions::kDeferred;
  uint32_t transfer_threads = 32;
  // How many files that may rest are open at once; 0: half of the descriptors that the process may
  // have when the file system is made (RLIMIT_NOFILE, the soft limit), from 8 to 524,288.
  uint32_t open_files_max = 0;
};

// Thread-safe, as all of it.
std::unique_ptr<FileSystem> MakePosixFileSystem(const PosixFileOptions& options);

// "yes: " and what rings use here, or "no: " and why transfers go through threads on this machine:
// what a first ring says.
const char* IoUringState();

}  // namespace embank

#endif  // EMBANK_BASE_FILES_POSIX_FILE_SYSTEM_H_
