// The lock of a store's directory: the file LOCK and the directory itself are locked together. One
// process that changes the store holds both exclusively, or any number of readers share them.
//
// Any process that may write to the directory can remove the file LOCK, but not the directory
// itself. Some file systems do not lock directories; there LOCK is the only lock.
#ifndef EMBANK_STORE_CHECKPOINT_STORE_LOCK_H_
#define EMBANK_STORE_CHECKPOINT_STORE_LOCK_H_

#include <memory>

#include "base/files/file_system.h"
#include "base/status.h"
#include "base/status_or.h"

namespace embank {

// Used by one thread at a time. Its destructor releases the locks.
class StoreLock {
 public:
  static constexpr char kFileName[] = "LOCK";

  // The directory outlives the lock. Nothing is locked yet.
  explicit StoreLock(Directory* directory) : directory_(directory) {}
  StoreLock(const StoreLock&) = delete;
  StoreLock& operator=(const StoreLock&) = delete;

  // Takes the lock exclusively. Makes a missing LOCK if `may_make_file`. `argument` is the caller's
  // name for the path.
  // kUnavailable: the store is open elsewhere.
  // kNotFound: there is no LOCK. The directory itself stays locked, and the call can be repeated.
  // kFailedPrecondition: LOCK is a directory.
  // The statuses of files.
  Status LockToChange(bool may_make_file, const char* argument);
  // Takes the lock together with other readers, and writes nothing. Without a LOCK the lock of the
  // directory itself is enough. `argument` as above.
  // kUnavailable: the store is open to be changed.
  // kNotFound: there is no LOCK, and the file system does not lock directories.
  // kFailedPrecondition: LOCK is a directory.
  // The statuses of files.
  Status LockToRead(const char* argument);
  // Removes LOCK if LockToChange has made it and holds it; the directory stays locked.
  void RemoveMade();

  // Says whether LOCK is still the file that was locked. There was a LOCK to lock.
  // kUnavailable: it was removed or replaced, so that others may open the store.
  // The statuses of files.
  Status Check() const;
  // Like Check, but for the status: true also where the lock of the directory itself is held, which
  // keeps others out whatever LOCK is.
  StatusOr<bool> HoldsDirectory() const;

 private:
  Status OpenElsewhere(bool shared, const char* argument) const;
  Status MakeFile();
  Status LockDirectory(bool shared, const char* argument);
  Status LockFile(bool shared, const char* argument);

  Directory* const directory_;
  std::unique_ptr<FileLock> directory_lock_;  // nullptr: the file system does not lock directories
  std::unique_ptr<FileLock> file_lock_;       // nullptr: there is no LOCK
  bool is_made_ = false;                      // LOCK, by this object
};

}  // namespace embank

#endif  // EMBANK_STORE_CHECKPOINT_STORE_LOCK_H_
