// Files and directories of the system. They are injected, so that a test can be the disk.
//
// Written bytes are durable after a successful Sync of their file. Created, renamed, linked and
// removed names are durable after a successful Sync of their directory. After a failed Sync it is
// unknown what is durable: a file is not synced again, its contents go to another file; a directory
// is not synced again either.
//
// All calls return these statuses, with a message that names the file and the system's reason:
//   kNotFound, kAlreadyExists, kPermissionDenied (also a read-only file system),
//   kResourceExhausted   no space, quota, descriptors, locks or memory
//   kUnimplemented       not on this file system (Preallocate, Link, LockItself), not across two
//                        (Link)
//   kInvalidArgument     a name is too long, or a link that leads to itself
//   kDataLoss            a directory, or another thing that is no file, has the name of a file
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

// Direct files need offsets, lengths and addresses that are multiples of this.
inline constexpr uint64_t kBlockBytes = 4096;

// An open file; closed by its destructor. Thread-safe.
class File {
 public:
  virtual ~File() = default;

  // Reads all of `into`, or returns an error.
  virtual Status Read(uint64_t offset, std::span<std::byte> into) = 0;
  // Writes all of `bytes`. After an error any part of them may have been written.
  virtual Status Write(uint64_t offset, std::span<const std::byte> bytes) = 0;
  // Reserves disk space for the first `bytes` bytes, which read as zeros until they are written.
  // The file is at least that long afterwards.
  virtual Status Preallocate(uint64_t bytes) = 0;
  // Like Preallocate, for `bytes` from `offset` on. The bytes before `offset` may stay a hole.
  // kUnimplemented also: not all of them are in the mapping of a mapped file.
  virtual Status PreallocateRange(uint64_t offset, uint64_t bytes) = 0;
  // Makes everything that was written before this call durable, and the file's length.
  virtual Status Sync() = 0;
  virtual StatusOr<uint64_t> SizeBytes() = 0;
  // Returns the bytes of disk space that the file takes: fewer than its length if it has holes.
  virtual StatusOr<uint64_t> TakenBytes() = 0;
  // From now on the file system may close the descriptor while it is unused and nothing is
  // unsynced, and open it again by name. The file keeps its name while it is open, and its
  // directory outlives it. A use that finds another file there, or none, is kDataLoss. Call it
  // once, after the last write, since a write would fail where the process has no descriptor left.
  // Others may use the file meanwhile.
  virtual void MayRest() {}
  // Whether reads and writes bypass the system's page cache, and must be whole blocks.
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

// A lock that other processes respect. Its destructor and the end of the process release it. (A
// forked child keeps it alive until it ends, unless the destructor has run before.)
class FileLock {
 public:
  virtual ~FileLock() = default;
  // Whether the name under which it was locked is still that of the locked file.
  virtual StatusOr<bool> IsInPlace() = 0;
};

// An open directory; its files are named relative to it. No path is looked up again, so that it
// stays the same directory when it is renamed or the process changes its own directory.
// Thread-safe. It must outlive the locks that it returned.
class Directory {
 public:
  virtual ~Directory() = default;

  // The path of the opening, for messages.
  virtual const std::string& path() const = 0;
  std::string PathOf(const std::string& name) const;

  // Opens a file; its contents stay.
  virtual StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                               FileCaching caching) = 0;
  // Renames a file; it replaces the file `to` if there is one.
  virtual Status Rename(const std::string& from, const std::string& to) = 0;
  // Makes a second name of the same file, in this directory or another of the same FileSystem.
  // kUnimplemented also: the file has as many names as it may have.
  virtual Status Link(const std::string& from, Directory* directory, const std::string& to) = 0;
  // Removes a file.
  virtual Status Remove(const std::string& name) = 0;
  // Returns all names but "." and "..", in any order.
  virtual StatusOr<std::vector<std::string>> List() = 0;
  // Makes the names durable. kResourceExhausted: nothing was tried. After other errors some names
  // may never become durable.
  virtual Status Sync() = 0;
  // Makes the directory's own name durable, by a Sync of its parent.
  virtual Status SyncName() = 0;
  // Removes the directory itself, which must be empty. kNotFound: it no longer has the path by
  // which it was opened.
  virtual Status RemoveItself() = 0;

  // Locks an existing file, shared or exclusively. kUnavailable: it is locked already, in this
  // process or another.
  virtual StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) = 0;
  // Like Lock, for the directory itself, which cannot be removed while it has files.
  // kUnimplemented: this file system has no such locks.
  virtual StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) = 0;
};

// Thread-safe. Paths are absolute or relative to the process's directory. Must outlive what it
// opens and locks. Not to be used in a child that was forked.
class FileSystem {
 public:
  virtual ~FileSystem() = default;

  // Creates a directory; its parent must exist.
  virtual Status CreateDirectory(const std::string& path) = 0;
  // Opens a directory. kNotFound also: the path is no directory.
  virtual StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) = 0;

  // Does all transfers of a list, in any order, and as many at once as the device likes. Returns
  // when all are done; each has its own status. The files must belong to this file system.
  virtual void TransferAll(std::span<Transfer> transfers) = 0;

  // The limit of files that may be closed while unused and are open at once.
  virtual uint32_t OpenFilesMax() const = 0;

  // Registers memory that many lists of transfers will use. UnregisterMemory must be called for it
  // before the memory is freed. Registration only makes transfers faster: a system may ignore it.
  virtual void RegisterMemory(std::span<std::byte>) {}
  virtual void UnregisterMemory(std::span<std::byte>) {}
};

// Opens a directory; makes it first if there is none, which *is_made says. If it cannot be opened
// then, or there is no memory, it is removed again, as far as that can be done.
StatusOr<std::unique_ptr<Directory>> MakeOrOpenDirectory(FileSystem* files, const std::string& path,
                                                         bool* is_made);

// Returns the directory of a path's last name: "." if there is no slash before it, "/" if the only
// slash is the first character. Slashes at the end do not count.
std::string DirectoryOf(const std::string& path);

// Reads a whole file of at most `bytes_max` bytes; kOutOfRange when it is longer.
StatusOr<std::vector<std::byte>> ReadWholeFile(Directory* directory, const std::string& name,
                                               uint64_t bytes_max);
// Makes a file whose name is all that counts. It has a line of text, since tools that clean up
// remove empty files; without space for that it is empty. kAlreadyExists: it is there.
Status MakeMark(Directory* directory, const std::string& name);
// Replaces the file `name` as a whole: writes another file, syncs it, renames it, and syncs the
// directory. After a crash or an error there is the former file or the new one, whole. *in_doubt:
// it is unknown which, and no later sync of the directory tells.
Status ReplaceFile(Directory* directory, const std::string& name, std::span<const std::byte> bytes,
                   bool* in_doubt = nullptr);

}  // namespace embank

#endif  // EMBANK_BASE_FILES_FILE_SYSTEM_H_
