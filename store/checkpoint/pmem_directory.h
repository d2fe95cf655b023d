// The directory of a store's PMem tier: segments alone. It is locked while the store is open.
//
//   LOCK           is locked as in the store's own directory (store/checkpoint/store_lock.h)
//   PMEM-<id>      empty: the id of the directory. The store's own directory has a file of the same
//                  name; that of an export, or of a repaired store, does not
//   COMPLETED-<n>  empty: the store completed checkpoint n with this PMem. A copy of the store that
//                  has no such checkpoint must not remove segments
//   segment-<id>   a segment of the log in PMem
#ifndef EMBANK_STORE_CHECKPOINT_PMEM_DIRECTORY_H_
#define EMBANK_STORE_CHECKPOINT_PMEM_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "base/files/file_system.h"
#include "base/pmem/pmem_file_system.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/manifest.h"
#include "store/checkpoint/store_listing.h"
#include "store/checkpoint/store_lock.h"
#include "store/table/options.h"

namespace embank {

// Used by one thread at a time.
class PmemDirectory {
 public:
  // kInvalidArgument: the options name one directory for the store and for its PMem.
  static Status CheckPaths(const StoreOptions& options);
  // Opens and locks the directory that the options name, for the store of an opened manifest. Makes
  // the directory for a store that may be created, and gives an empty one its id, which `now_ns` is
  // a part of. nullptr: the store has no PMem. `files` outlives it; nullptr: mapped files of
  // libpmem. Throws std::bad_alloc.
  // kFailedPrecondition: the manifest has rows in PMem, and the options name no directory, or one
  // that is not there, or that has no id.
  // kInvalidArgument: the directory is no directory, its parent is not there, or files cannot be
  // made in it; or it is another store's, or that of a later checkpoint than the store has.
  // kUnavailable: libpmem is not installed, which a store that is only read does not need; or the
  // directory is locked elsewhere. The statuses of files.
  static StatusOr<std::unique_ptr<PmemDirectory>> Open(FileSystem* files,
                                                       const StoreOptions& options,
                                                       CheckpointDirectory* store,
                                                       const Manifest& opened, uint64_t now_ns);
  ~PmemDirectory();
  PmemDirectory(const PmemDirectory&) = delete;
  PmemDirectory& operator=(const PmemDirectory&) = delete;

  FileSystem* file_system() const { return files_; }
  Directory* files() const { return directory_.get(); }
  const StoreLock& lock() const { return *lock_; }
  // The path that manifests keep: absolute.
  const std::string& path() const { return path_; }
  // The number from which on names of segments are new here.
  uint64_t next_segment_id() const { return listing_.next_pmem_segment_id; }

  // How writes become durable: "pmem" or "mapped files, msync"; nullptr: it is not known, as the
  // store is only read, its PMem is full, or the files are the caller's.
  const char* kind() const { return kind_; }
  // Drains and msync calls so far; 0: the files are the caller's.
  uint64_t drains() const;

  // Removes segments that none of these manifests has in PMem, if `may_remove`. Returns the bytes
  // of those that stay. Throws std::bad_alloc.
  uint64_t RemoveOrphans(std::span<const Manifest> kept, bool may_remove);
  // Notes that the store has completed a checkpoint.
  void MarkCompleted(uint32_t checkpoint);

 private:
  PmemDirectory(std::unique_ptr<FileSystem> base, std::unique_ptr<PmemFileSystem> own,
                FileSystem* files);
  Status OpenAndLock(const StoreOptions& options, const Manifest& opened,
                     const StoreListing& store);
  Status CheckHasRows(const Manifest& opened, const StoreListing& store) const;
  Status CheckStore(const StoreOptions& options, const StoreListing& store) const;
  Status CheckMaps();
  Status MakeId(CheckpointDirectory* store, uint64_t id);
  bool Remove(const std::string& name);

  const std::unique_ptr<FileSystem> base_files_;  // nullptr: the files are the caller's
  const std::unique_ptr<PmemFileSystem> own_files_;
  FileSystem* const files_;
  std::string path_;
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<StoreLock> lock_;
  StoreListing listing_;
  const char* kind_ = nullptr;
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_PMEM_DIRECTORY_H_
