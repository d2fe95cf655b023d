// Files and directories, injected: what the store asks of the system that outlives it, so that a
// test can be the disk.
//
// Nothing written is durable before a Sync of the file that completes; nothing created, renamed,
// linked or removed before a Sync of its directory that does. After a Sync that failed
// nobody knows what is durable: the file is not synced again, its contents are written to another;
// nor is a directory after its Sync.
//
// Statuses of all calls, with a message that names the file and the system's reason:
//   kNotFound, kAlreadyExists, kPermissionDenied (also a read-only file system),
//   kResourceExhausted   no space, quota, descriptors, locks or memory
//   kUnimplemented       not on this file system (Preallocate, Link, LockItself), not across two
//                        (Link)
//   kOutOfRange          a read that begins or ends behind the end of the file
//   kUnavailable         everything else: the device fails
#ifndef EMBANK_BASE_FILES_FILE_SYSTEM_H_
#define EMBANK_BASE_FILES_FILE_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/status_or.h"

namespace embank {

// What direct files ask of offsets, lengths and addresses.
inline constexpr uint64_t kBlockBytes = 4096;

// An open file; closed by its destructor. Thread-safe.
class File {
 public:
  virtual ~File() = default;

  // All of `into`, or an error.
  virtual Status Read(uint64_t offset, std::span<std::byte> into) = 0;
  // All of `bytes`; on an error any part of them may have been written.
  virtual Status Write(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Takes the space of the first `bytes` bytes, which read as zeros until written; the file is at
  // least so long afterwards.
  virtual Status Preallocate(uint64_t bytes) = 0;
  // Makes what was written before this call durable, and the file's length.
  virtual Status Sync() = 0;
  virtual StatusOr<uint64_t> SizeBytes() = 0;
  // From now on the system may close it while nobody uses it and nothing in it is unsynced, and
  // open it again by its name: it keeps this name while it is open, and its directory outlives it.
  // A use that finds another file there, or none, is kDataLoss. Called once, before other threads
  // know of the file.
  virtual void MayRest() {}
  // Whether reads and writes pass the system's page cache by, and must be whole blocks.
  virtual bool direct() const = 0;
  // The file's bytes in memory, for as long as the file is open; empty: it is not mapped. What
  // Write has written is visible there at once.
  virtual std::span<const std::byte> mapping() const { return {}; }
};

enum class FileAccess {
  kRead,    // an existing file
  kWrite,   // an existing file, to read and write
  kCreate,  // a new file, to read and write
};

enum class FileCaching {
  kCached,
  kDirect,  // where the file system can; else cached
};

// One read or write of a list.
struct Transfer {
  enum class Kind { kRead, kWrite };
  Kind kind;
  File* file;
  uint64_t offset;
  std::span<std::byte> bytes;  // read into, or written from
  Status status;               // out
};

// A lock that other processes respect; given up by its destructor and by the end of the process,
// however it ends. (Children that the process forks keep it alive until they end, if the destructor
// has not run before.)
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Whether the name under which it was locked is still that of the locked file.
  virtual StatusOr<bool> IsInPlace() = 0;
};

// A directory that is held open, and its files by their names in it: no path is looked up again, so
// that it stays the same directory whatever becomes of its own name and of the process's directory.
// Thread-safe. Must outlive the locks that it gave.
class Directory {
 public:
  virtual ~Directory() = default;

  // As it was opened by, which messages name.
  virtual const std::string& path() const = 0;
  std::string PathOf(const std::string& name) const;

  // An open file, whose former contents stay.
  virtual StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                               FileCaching caching) = 0;
  // Of a file, which takes the place of the file `to` if that exists.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // A second name of the same file, in this directory or another of the same FileSystem.
  // kUnimplemented also: it has as many as it may have.
  virtual Status Link(const std::string& from, Directory* directory, const std::string& to) = 0;
  // Of a file.
  virtual Status Remove(const std::string& name) = 0;
  // Names, "." and ".." left out, in any order.
  virtual StatusOr<std::vector<std::string>> List() = 0;
  // kResourceExhausted: nothing was tried. After other errors some names may never be durable.
  virtual Status Sync() = 0;
  // Makes its own name durable, as Sync of the directory in which that stands.
  virtual Status SyncName() = 0;
  // Removes the directory itself, which must be empty. kNotFound: the path by which it was opened
  // is not its name any more.
  virtual Status RemoveItself() = 0;
  virtual StatusOr<uint64_t> FreeBytes() = 0;

  // Locks an existing file, shared with other shared locks or alone. kUnavailable: somebody else
  // has it, in this process or another.
  virtual StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) = 0;
  // As Lock, of the directory itself, which nobody can remove while it has files. kUnimplemented:
  // this file system has no such locks.
  virtual StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) = 0;
};

// Thread-safe. Paths are absolute or relative to the process's directory. Must outlive what it
// opens and locks. Not to be used in a child that was forked.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Its parent must exist.
  virtual Status CreateDirectory(const std::string& path) = 0;
  // kNotFound also: it is no directory.
  virtual StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) = 0;

  // Does all of a list, in any order, as many at once as the device likes; returns when all are
  // done. Each tells its status. The files must be this system's.
  virtual void TransferAll(std::span<Transfer> transfers) = 0;

  // How many files that may rest are open at once, at most.
  virtual uint32_t OpenFilesMax() const = 0;

  // Memory that many lists of transfers will use, until UnregisterMemory of the same, which must
  // come before it is given back. What it is good for is speed: a system may leave it at that.
  virtual void RegisterMemory(std::span<std::byte>) {}
  virtual void UnregisterMemory(std::span<std::byte>) {}
};

// The directory in which a path's last name stands: "." if there is no slash before it, "/" if that
// is the first character alone. Slashes at the end do not count.
std::string DirectoryOf(const std::string& path);

// Reads a whole file of at most `bytes_max` bytes; kOutOfRange when it is longer.
StatusOr<std::vector<std::byte>> ReadWholeFile(Directory* directory, const std::string& name,
                                               uint64_t bytes_max);
// Puts a whole file in the place of `name`: written under another name, synced, renamed, and the
// directory synced. A crash leaves the former file or the new one, whole; so does an error.
// *in_doubt: nobody knows which, and no later sync of the directory tells.
Status ReplaceFile(Directory* directory, const std::string& name, std::span<const std::byte> bytes,
                   bool* in_doubt = nullptr);

}  // namespace embank

#endif  // EMBANK_BASE_FILES_FILE_SYSTEM_H_
