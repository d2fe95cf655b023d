// The directory of a store: it is locked while the store is open, keeps the files of checkpoints,
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

// A checkpoint that the store keeps, or should: its manifest, or why that cannot be had.
struct KeptCheckpoint {
  uint32_t checkpoint;
  StatusOr<Manifest> manifest;
};

// One thread at a time.
class CheckpointDirectory {
 public:
  // Makes the directory if `may_create`, in one that exists; locks it, and looks what is there. A
  // LOCK that is missing beside a manifest is made again. files must outlive it. kNotFound: there
  // is no store; kUnavailable: it is open elsewhere; kDataLoss: it has segments, or had a
  // checkpoint, and has no manifest; the statuses of files.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> Open(FileSystem* files,
                                                             const std::string& path,
                                                             bool may_create);
  // As Open, for a store that is to be made here: kAlreadyExists when the directory has anything
  // in it, but for a lock file.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> OpenVacant(FileSystem* files,
                                                                   const std::string& path);
  // Locks a store's directory together with others who only read, and looks what is there: Keep and
  // RemoveOrphans are not called. Writes nothing; without a LOCK the lock of the directory itself
  // has to do. kNotFound; kUnavailable: it is open to be changed; kFailedPrecondition: there is no
  // LOCK, and the file system does not lock directories; the statuses of files; segments without a
  // manifest are no error here. `argument`: as callers know the path.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> OpenToRead(FileSystem* files,
                                                                   const std::string& path,
                                                                   const char* argument);
  // Looks what is there without a lock, beside whoever has it open: files may go while they are
  // read, which Refresh tells. Writes nothing. kNotFound: there is no directory; the statuses of
  // files. What is in it may be no store.
  static StatusOr<std::unique_ptr<CheckpointDirectory>> OpenUnlocked(FileSystem* files,
                                                                     const std::string& path,
                                                                     const char* argument);
  CheckpointDirectory(const CheckpointDirectory&) = delete;
  CheckpointDirectory& operator=(const CheckpointDirectory&) = delete;

  // Where all of it is, whatever becomes of the path.
  Directory* files() const { return directory_.get(); }
  const StoreLock& lock() const { return lock_; }
  // Returns the files that the directory had when it was opened, and those that were made since.
  const StoreListing& listing() const { return listing_; }

  // Looks what is there now; whether there is another newest checkpoint than before.
  StatusOr<bool> Refresh();
  // kNotFound: there are neither manifests nor segments.
  Status CheckIsStore(const char* argument) const;

  // The manifest of a listed checkpoint. kDataLoss; kFailedPrecondition: of a newer format;
  // statuses of files.
  StatusOr<Manifest> Load(uint32_t checkpoint) const;
  // The newest checkpoint, then the one that is kept with it, if there is one: that which the
  // newest names as previous; where the newest cannot be read, the one before it. Statuses as
  // Load's; kDataLoss also: the newest was completed, and its manifest is missing. Empty: there is
  // no checkpoint.
  std::vector<KeptCheckpoint> LoadKept() const;
  // kDataLoss: there are segments, or was a checkpoint, and there is no manifest.
  Status CheckHasManifest() const;

  // Writes a manifest, whose checkpoint is newer than all; then it and its previous one are kept,
  // and no other, and the directory says durably that it was completed. kUnavailable also as
  // StoreLock::Check. *in_doubt: after the error nobody knows whether it is there, nor which names
  // of the directory are durable; no later sync tells, and Keep has that error from then on.
  Status Keep(const Manifest& manifest, bool* in_doubt);

  // A file with the heat of a checkpoint may come to be, or is there, of so many bytes at most.
  // std::bad_alloc leaves it.
  void NoteHeat(uint32_t checkpoint, uint64_t bytes) { listing_.heats[checkpoint] = bytes; }
  // Of all that were noted.
  uint64_t HeatBytes() const;
  // Removes heat but that of these and of the checkpoints that have a manifest, or may have one.
  void KeepHeatOf(const std::multiset<uint32_t>& checkpoints);

  // Removes other manifests, segments and heat that are in none of these, and what a crash left of
  // writing them.
  void RemoveOrphans(std::span<const Manifest> kept);
  // Of a store that has not come to be: removes its lock file, and the directory if this made it.
  void Abandon();

 private:
  explicit CheckpointDirectory(std::unique_ptr<Directory> directory)
      : directory_(std::move(directory)), lock_(directory_.get()) {}

  Status LockToChange(bool may_create);
  Status LockToRead(const char* argument);
  Status ListFiles();
  Status LoadMissing(uint32_t checkpoint) const;
  void MarkCompleted(uint32_t checkpoint);
  std::string PathOf(const std::string& name) const { return directory_->PathOf(name); }
  void KeepOnly(const std::set<uint32_t>& checkpoints);
  void Remove(const std::string& name);

  const std::unique_ptr<Directory> directory_;
  StoreLock lock_;
  bool is_made_ = false;  // by this
  Status doubt_;
  uint32_t doubted_checkpoint_ = 0;  // whose manifest may turn out to be there; 0: none
  StoreListing listing_;
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_CHECKPOINT_DIRECTORY_H_
