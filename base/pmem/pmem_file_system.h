// Files of persistent memory: those of the system, mapped.
//
//   open, created    an ordinary file, until Preallocate maps it with the length that it keeps
//   open, with bytes mapped, whole
//   Write            non-temporal stores and a drain where the map is persistent memory, else a
//                    copy
//   Sync             nothing more there, else msync; the first one also makes the file's length
//                    durable
//
// A file is persistent memory where the kernel maps it with MAP_SYNC (DAX), or where libpmem is
// told so (PMEM_IS_PMEM_FORCE=1). Where it is not, everything works, at the speed of msync.
//
// Nobody can return a status for a load or store of mapped memory that fails: the process gets
// SIGBUS. It fails where the memory is damaged, and behind the end of a file that another process
// has cut off.
#ifndef EMBANK_BASE_PMEM_PMEM_FILE_SYSTEM_H_
#define EMBANK_BASE_PMEM_PMEM_FILE_SYSTEM_H_

#include <cstdint>
#include <memory>

#include "base/files/file_system.h"
#include "base/pmem/bad_ranges.h"
#include "base/pmem/pmem_library.h"
#include "base/status_or.h"

namespace embank {

// How writes to the files of a directory become durable.
enum class PmemKind {
  kPmem,         // drains
  kMappedFiles,  // msync
};
// "pmem" or "mapped files, msync".
const char* NameOf(PmemKind kind);

struct PmemCounters {
  uint64_t written_bytes = 0;  // of mapped files
  uint64_t drains = 0;         // one for each write, and for each list of transfers
  uint64_t msyncs = 0;
};

// Its files: Write and Preallocate are kOutOfRange and kUnimplemented behind the end of a mapped
// file. After Sync has failed, it fails for good. Other statuses are as file_system.h has them; a
// map that is refused is as in PmemMapping. A file whose Preallocate fails loses its name if it was
// created.
//
// A file has a descriptor while it is not mapped, and until its first Sync; and a map while it is
// open, of which a process has 65,530 by default (vm.max_map_count).
class PmemFileSystem : public FileSystem {
 public:
  // Maps a page of a new file in the directory, which is this file system's, and removes the file.
  virtual StatusOr<PmemKind> KindOf(Directory* directory) = 0;
  // Since the file system was made.
  virtual PmemCounters counters() const = 0;
};

// base: of MakePosixFileSystem; its directories, locks and descriptors are used. It must outlive
// the file system. The library's functions are copied.
std::unique_ptr<PmemFileSystem> MakePmemFileSystem(FileSystem* base, const PmemLibrary& library,
                                                   BadRangeFinder find_bad_ranges = BadRangesOf);

}  // namespace embank

#endif  // EMBANK_BASE_PMEM_PMEM_FILE_SYSTEM_H_
