// The functions of libpmem that mapped files use. The library is loaded while the program runs, so
// that a program without persistent memory does not need it.
//
// Their prototypes are those of libpmem 1 (soname libpmem.so.1), which its manual documents.
#ifndef EMBANK_BASE_PMEM_PMEM_LIBRARY_H_
#define EMBANK_BASE_PMEM_PMEM_LIBRARY_H_

#include <sys/types.h>

#include <cstddef>

#include "base/status_or.h"

namespace embank {

inline constexpr const char* kPmemLibraryFile = "libpmem.so.1";
inline constexpr const char* kPmemLibraryPackage = "libpmem1";

// Flags of PmemLibrary::copy: PMEM_F_MEM_NODRAIN and PMEM_F_MEM_NONTEMPORAL.
inline constexpr unsigned kPmemNoDrain = 1u << 0;
inline constexpr unsigned kPmemNonTemporal = 1u << 1;

// A test fills it with functions of its own. All functions are thread-safe.
struct PmemLibrary {
  // pmem_map_file: maps a file to be read and written, whole where bytes and flags are 0. nullptr:
  // it failed, and errno tells why.
  void* (*map_file)(const char* path, size_t bytes, int flags, mode_t mode, size_t* mapped_bytes,
                    int* is_pmem) = nullptr;
  // pmem_unmap: ends a map of map_file.
  int (*unmap)(void* address, size_t bytes) = nullptr;
  // pmem_memcpy: copies into persistent memory.
  void* (*copy)(void* to, const void* from, size_t bytes, unsigned flags) = nullptr;
  // pmem_drain: waits until the copies of the calling thread are persistent.
  void (*drain)() = nullptr;
  // pmem_msync: makes bytes of any mapped file durable. Not 0: it failed, and errno tells why.
  int (*msync)(const void* address, size_t bytes) = nullptr;
  // pmem_errormsg: why the last call of this thread failed.
  const char* (*error_message)() = nullptr;
};

// The functions of a library, which stays loaded. Thread-safe.
// kUnavailable: the library or one of its functions is missing. The message names the package and
// the loader's reason.
StatusOr<PmemLibrary> LoadPmemLibrary(const char* file = kPmemLibraryFile);

// Describes for people how a store with a pmem_path works here; static. nullptr: libpmem is not
// installed.
const char* PmemState();

}  // namespace embank

#endif  // EMBANK_BASE_PMEM_PMEM_LIBRARY_H_
