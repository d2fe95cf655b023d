// The directory of a store. It is locked while the store is open, keeps the files of checkpoints,
// and loses files that no checkpoint has. store/checkpoint/store_listing.h draws its files.
#ifndef EMBANK_STORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
#define EMBANK_STORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_system.h"
#include "base/status.h"
#include "base/status_or.h"
#include "store/checkpoint/manifest.h"
#include "store/checkpoint/store_listing.h"
#include "store/checkpoint/store_lock.h"

namespace embank {

// A checkpoint that the store should keep: its manifest, or the status of loading it.
struct KeptCheckpoint {
  uint32_t checkpoint;
  StatusOr<Manifest> manifest;
};

// Removes a file that no checkpoint has. False: it stays, and takes space, which is worth a warning
// alone. Throws std::bad_alloc.
bool RemoveUnneeded(Directory* directory, const std::string& name);
// Notes in a directory, whose marks are `completed`, that a checkpoint was completed, and removes
// its older marks. Without a sync. The statuses of files: there is no new mark. Throws
// std::bad_alloc.
Status NoteCompleted(Directory* directory, uint32_t checkpoint, std::set<uint32_t>* completed);

// One thread at a time.
class CheckpointDirectory {
 public:
  // Opens and locks the directory of a store, and lists its files. If `may_create`, makes the
  // directory in an existing one. Makes a missing LOCK beside a manifest again. files must outlive
  // it.
  // kNotFound: there is no store.
  // kUnavailable: it is open elsewhere.
  // kDataLoss: there are segments, or was a checkpoint, but no manifest.
  // The statuses of files.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> Open(FileSystem* files,
                                                             const std::string& path,
                                                             bool may_create);
  // Like Open, for a new store. kAlreadyExists: the directory has other files than a lock file.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> OpenVacant(FileSystem* files,
                                                                   const std::string& path);
  // Locks a store's directory together with other readers, and lists its files. Keep and
  // RemoveOrphans must not be called. Writes nothing; without a LOCK the lock of the directory
  // itself is enough. Segments without a manifest are no error here. `argument`: the caller's name
  // for the path.
  // kNotFound: there is no store.
  // kUnavailable: it is open to be changed.
  // kFailedPrecondition: there is no LOCK, and the file system does not lock directories.
  // The statuses of files.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> OpenToRead(FileSystem* files,
                                                                   const std::string& path,
                                                                   const char* argument);
  // Lists the directory without a lock, beside processes that have it open. Files may go while they
  // are read; Refresh notices that. Writes nothing. The directory may hold no store.
  // kNotFound: there is no directory.
  // The statuses of files.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> OpenUnlocked(FileSystem* files,
                                                                     const std::string& path,
                                                                     const char* argument);
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

  // The open directory, whatever its path means now.
  Directory* files() const { return directory_.get(); }
  const StoreLock& lock() const { return lock_; }
  // Returns the files that the directory had when it was opened, and those that were made since.
  const StoreListing& listing() const { return listing_; }

  // Lists the files again. Returns whether the newest checkpoint is another one than before.
  StatusOr<bool> Refresh();
  // kNotFound: there are neither manifests nor segments.
  Status CheckIsStore(const char* argument) const;

  // Loads the manifest of a listed checkpoint. kDataLoss: it is damaged. kFailedPrecondition: it
  // has a newer format. The statuses of files.
  StatusOr<Manifest> Load(uint32_t checkpoint) const;
  // Loads the newest checkpoint, then the one that is kept with it, if there is one: the newest
  // names it; if the newest cannot be read, it is the one before. Empty: there is no checkpoint.
  // Statuses like Load; kDataLoss also: the newest was completed, and its manifest is missing.
  std::vector<KeptCheckpoint> LoadKept() const;
  // kDataLoss: there are segments, or was a checkpoint, but no manifest.
  Status CheckHasManifest() const;

  // Writes a manifest, whose checkpoint is newer than all others. Then that and its previous one
  // are kept, and no other, and the directory says durably that it was completed. kUnavailable also
  // like StoreLock::Check. *in_doubt: after the error it is unknown whether the manifest is there,
  // and which names of the directory are durable. No later sync tells, and Keep has that error from
  // then on.
  Status Keep(const Manifest& manifest, bool* in_doubt);

  // Notes that a file with the heat of a checkpoint is there, or may be made, of at most
  // `bytes`. Throws std::bad_alloc.
  void NoteHeat(uint32_t checkpoint, uint64_t bytes) { listing_.heats[checkpoint] = bytes; }
  // The bytes of all heat that was noted.
  uint64_t HeatBytes() const;
  // Removes heat files, except those of these checkpoints and of checkpoints that have a manifest
  // or may have one.
  void KeepHeatOf(const std::multiset<uint32_t>& checkpoints);

  // Removes manifests, segments and heat files that belong to none of these, and unfinished files
  // of a crash.
  void RemoveOrphans(std::span<const Manifest> kept);
  // Undoes the creation of a store: removes its manifests, and of lock file and directory what this
  // object made, as far as memory allows. Of a store that was there, removes a lock file alone.
  void Abandon();

 private:
  // Takes the directory over. Without memory for this object, it stays the caller's.
  explicit CheckpointDirectory(std::unique_ptr<Directory>* directory)
      : directory_(std::move(*directory)), lock_(directory_.get()) {}

  Status Enter(bool may_create);
  Status LockToChange(bool may_create);
  Status LockToRead(const char* argument);
  Status ListFiles();
  Status LoadMissing(uint32_t checkpoint) const;
  std::string PathOf(const std::string& name) const { return directory_->PathOf(name); }
  void KeepOnly(const std::set<uint32_t>& checkpoints);
  void Remove(const std::string& name) { RemoveUnneeded(directory_.get(), name); }

  const std::unique_ptr<Directory> directory_;
  StoreLock lock_;
  bool is_made_ = false;  // by this object
  bool is_new_ = false;   // there was no store when it was opened
  Status doubt_;
  uint32_t doubted_checkpoint_ = 0;  // its manifest may turn out to exist; 0: none
  StoreListing listing_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
