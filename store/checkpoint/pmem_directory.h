// The directory of a store's PMem tier: segments alone. It is locked while the store is open.
//
//   LOCK           is locked as in the store's own directory (store/checkpoint/store_lock.h)
//   PMEM-<id>      the id of the directory. The store's own directory has a file of the same name;
//                  that of an export, or of a repaired store, does not. Either is made again where
//                  the manifest proves that the directory is the store's
//   COMPLETED-<n>  the store completed checkpoint n with this PMem. A copy of the store that has no
//                  such checkpoint must not remove segments
//   segment-<id>   a segment of the log in PMem
#ifndef EMBANK_STORE_CHECKPOINT_PMEM_DIRECTORY_H_
#define EMBANK_STORE_CHECKPOINT_PMEM_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>

#include "base/files/file_system.h"
#include "base/function_ref.h"
#include "base/pmem/pmem_file_system.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/checkpoint_directory.h"
#include "store/checkpoint/manifest.h"
#include "store/checkpoint/opened_manifests.h"
#include "store/checkpoint/store_listing.h"
#include "store/checkpoint/store_lock.h"
#include "store/table/options.h"

namespace embank {

// Says whether a store may be opened with an open directory of PMem. `path` is the directory's,
// absolute; `store` lists the store's directory, whose path is `store_path`; `opened` is the
// manifest of the checkpoint, and `kept` are all that the store keeps. Reads headers of segments if
// the files PMEM-<id> do not tell. Throws std::bad_alloc. kFailedPrecondition: the manifest has
// rows in PMem, and this is not known to be theirs. kInvalidArgument: it is a store itself, another
// store's PMem, or that of a later checkpoint than the store has. The statuses of files.
Status CheckIsPmemOf(Directory* pmem, const std::string& path, const Manifest& opened,
                     std::span<const Manifest* const> kept, const StoreListing& store,
                     const std::string& store_path);

// Used by one thread at a time.
class PmemDirectory {
 public:
  // kInvalidArgument: the options name one directory for the store and for its PMem, or a file for
  // its PMem.
  static Status CheckPaths(const StoreOptions& options);
  // Opens and locks the directory that the options name, for the store of the manifests. Makes
  // the directory for a store that may be created, gives an empty one its id, which `now_ns` is a
  // part of, and makes missing files PMEM-<id> again. After an error it has made nothing. nullptr:
  // the store has no PMem. `files` outlives it; nullptr: mapped files of libpmem. Throws
  // std::bad_alloc.
  // kFailedPrecondition: the manifest has rows in PMem, and the options name no directory, or one
  // that is not there; or as CheckIsPmemOf; or its LOCK is a directory.
  // kInvalidArgument: the directory is no directory, its name is too long, its parent is not there,
  // or files cannot be made in it; or as CheckIsPmemOf.
  // kUnavailable: libpmem is not installed, which a store that is only read does not need; or the
  // directory is locked elsewhere. The statuses of files.
  static StatusOr<std::unique_ptr<PmemDirectory>> Open(FileSystem* files,
                                                       const StoreOptions& options,
                                                       CheckpointDirectory* store,
                                                       const OpenedManifests& manifests,
                                                       uint64_t now_ns);
  ~PmemDirectory();
  PmemDirectory(const PmemDirectory&) = delete;
  PmemDirectory& operator=(const PmemDirectory&) = delete;

  FileSystem* file_system() const { return files_; }
  Directory* files() const { return directory_.get(); }
  // The path and the id that manifests keep. The path is absolute; id 0: it is not known, as the
  // store is only read.
  const std::string& path() const { return path_; }
  uint64_t id() const {
    return listing_.directory_ids.empty() ? 0 : *listing_.directory_ids.rbegin();
  }
  // The number from which on names of segments are new here.
  uint64_t next_segment_id() const { return listing_.next_segment_ids[Tier::kPmem]; }

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
  // Says whether the directory has its name, its lock, and the files of all segments. `names`
  // returns the names of those that the log has; it is called before the directory is listed and
  // afterwards, since segments come and go meanwhile. Throws std::bad_alloc.
  // kNotFound: it does not; the message says what is missing. The statuses of files.
  Status CheckInPlace(FunctionRef<std::set<std::string>()> names) const;
  // Undoes what Open has made here and in the store's directory.
  void Abandon(CheckpointDirectory* store);

 private:
  PmemDirectory(std::unique_ptr<FileSystem> base, std::unique_ptr<PmemFileSystem> own,
                FileSystem* files);
  Status Take(const StoreOptions& options, const StoreListing& store,
              const OpenedManifests& manifests);
  Status OpenOrMake(const StoreOptions& options, const Manifest& opened);
  Status Lock(const StoreOptions& options);
  Status CheckMaps();
  Status MakeMarks(CheckpointDirectory* store, const Manifest& opened, uint64_t now_ns);
  Status MakeOwnMark(uint64_t id);

  const std::unique_ptr<FileSystem> base_files_;  // nullptr: the files are the caller's
  const std::unique_ptr<PmemFileSystem> own_files_;
  FileSystem* const files_;
  std::string path_;
  std::unique_ptr<Directory> directory_;
  std::unique_ptr<StoreLock> lock_;
  StoreListing listing_;
  const char* kind_ = nullptr;
  // This object has made them: the directory, and files PMEM-<id> here and in the store's.
  bool is_made_ = false;
  std::set<uint64_t> marked_here_;
  std::set<uint64_t> marked_in_store_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_PMEM_DIRECTORY_H_
