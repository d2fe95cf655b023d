// The system's files.
#ifndef EMBANK_BASE_POSIX_FILE_SYSTEM_H_
#define EMBANK_BASE_POSIX_FILE_SYSTEM_H_

#include <memory>

#include "base/file_system.h"

namespace embank {

struct PosixFileOptions {
  // Lists of transfers go through io_uring where the system lets it; else, and where a ring fails,
  // through threads that read and write.
  bool use_io_uring = true;
  uint32_t transfer_threads = 32;
};

// Thread-safe, as all of it.
std::unique_ptr<FileSystem> MakePosixFileSystem(const PosixFileOptions& options);

// "yes", or why transfers go through threads on this machine: what a first ring says.
const char* IoUringState();

}  // namespace embank

#endif  // EMBANK_BASE_POSIX_FILE_SYSTEM_H_
