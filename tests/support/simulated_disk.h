// A disk in memory that remembers every call in order, so that a test can see every image that a
// crash before any of them may leave. It also fails, runs full and corrupts data on demand.
//
// A crash leaves, of the calls before it:
//   - of writes and growth of a file: all before its last Sync that completed, any of those after
//     it, each whole, not at all or in any pieces;
//   - of names: all changes in a directory before its last SyncDirectory, any of those after it;
//     and none in a directory that is itself lost.
// A failed Sync or SyncDirectory may have dropped the changes before it: no later one makes them
// durable.
//
// Only files are renamed, and not to the names of directories: an open directory is its path.
//
// As persistent memory (SimulatedMedium::kPmem) its files are mapped as those of base/pmem are: a
// file with bytes when it is opened, a new one by Preallocate. A torn write leaves any of its cache
// lines, and of a line any words of eight bytes. Here only a Sync makes a write durable, as where
// the kernel writes mapped files back.
#ifndef EMBANK_TESTS_SUPPORT_SIMULATED_DISK_H_
#define EMBANK_TESTS_SUPPORT_SIMULATED_DISK_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files/file_system.h"
#include "base/threads/mutex.h"
#include "tests/support/random.h"
#include "tests/support/taken_runs.h"

namespace embank::test {

// A call of the disk or of a file; each transfer of a list is a call of its own.
struct DiskCall {
  enum class Kind {
    kOpen,
    kRead,
    kWrite,
    kPreallocate,
    kSync,
    kSize,
    kRename,
    kLink,
    kRemove,
    kCreateDirectory,
    kList,
    kSyncDirectory,
    kFreeBytes,
    kLock,
    kOpenDirectory,
    kLockDirectory,
    kLockInPlace,
  };
  Kind kind;
  std::string path;
  uint64_t number;  // of all calls, from 1
};

// Files in this directory are persistent memory on any disk.
inline constexpr char kSimulatedPmemPath[] = "/pmem";

// The medium of its files.
enum class SimulatedMedium {
  kDisk,  // but for those in kSimulatedPmemPath
  kPmem,  // mapped; none is direct
};

// The changes, of those that nothing has made durable, that a crash leaves.
enum class Persistence {
  kNone,
  kAll,
  kAllButOne,  // drawn
  kSome,       // each drawn
  kTorn,       // each drawn, and of writes drawn pieces
};

class SimulatedDisk final : public FileSystem {
 public:
  explicit SimulatedDisk(SimulatedMedium medium = SimulatedMedium::kDisk) : medium_(medium) {}

  Status CreateDirectory(const std::string& path) override;
  StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) override;
  void TransferAll(std::span<Transfer> transfers) override;
  uint32_t OpenFilesMax() const override { return open_files_max_; }

  // The calls of directories, for tests that look at files by their paths.
  StatusOr<std::unique_ptr<File>> Open(const std::string& path, FileAccess access,
                                       FileCaching caching);
  Status Rename(const std::string& from, const std::string& to);
  Status Link(const std::string& from, const std::string& to);
  Status Remove(const std::string& path);
  StatusOr<std::vector<std::string>> List(const std::string& path);
  Status SyncDirectory(const std::string& path);
  StatusOr<uint64_t> FreeBytes(const std::string& path);
  StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, bool shared);
  StatusOr<std::unique_ptr<FileLock>> LockDirectory(const std::string& path, bool shared);

  // ---- faults ----

  // Asked before each call that DiskCall names, and must not call the disk; what it returns, if not
  // OK, is the call's status. A write that fails so or for want of space has written pieces, drawn
  // from the call's number, of what there was space for. kCancelled: the call does nothing, as if
  // the process had been killed before it. nullptr: nothing fails.
  using FaultPlan = std::function<Status(const DiskCall&)>;
  void SetFaults(FaultPlan plan);
  // Acts like a file system that is mounted read-only: calls that change names, open a file to
  // write or lock it exclusively are kPermissionDenied. Call it while no file is open to write.
  void SetReadOnly(bool is_read_only);
  // Called before each Rename; may call the disk. nullptr: nothing. Set it while no thread renames.
  void SetRenameHook(std::function<void()> hook) { rename_hook_ = std::move(hook); }
  // Sets the answer of OpenFilesMax; no file is closed for it. Call it while nobody uses the disk.
  void SetOpenFilesMax(uint32_t count) { open_files_max_ = count; }
  // Called before each Open; may call the disk. nullptr: nothing. Set it while no thread opens.
  void SetOpenHook(std::function<void(const std::string& path)> hook) {
    open_hook_ = std::move(hook);
  }
  // Files that have a name or are open may hold so many bytes in all.
  void SetCapacity(uint64_t bytes);
  // Change bytes of a file, or its length, like bit rot: durably, and unnoticed.
  void Corrupt(const std::string& path, uint64_t offset, std::span<const std::byte> bytes);
  void Truncate(const std::string& path, uint64_t bytes);

  // ---- contents ----

  std::vector<std::string> Files() const;
  std::vector<std::byte> Contents(const std::string& path) const;
  // The bytes that a file takes: those that were written or preallocated.
  uint64_t TakenBytes(const std::string& path) const;
  // The number of a file's names.
  size_t NamesOf(const std::string& path) const;
  uint64_t calls() const;
  // Syncs of files that completed: of persistent memory its drains.
  uint64_t syncs() const;

  // ---- crashes ----

  // The number of remembered changes: since the begin, or the last ClearHistory.
  size_t changes() const;
  // Names the kind of a remembered change: "write", "sync", ...
  std::string ChangeName(size_t change) const;
  // Makes everything durable, and begins the history anew.
  void ClearHistory();
  // A disk as a crash before change `change` may leave it. Its contents are durable, faults are
  // gone, the capacity is the same.
  std::unique_ptr<SimulatedDisk> AfterCrash(size_t change, Persistence persistence,
                                            uint64_t seed) const;

 private:
  friend class SimulatedFile;
  friend class SimulatedLock;

  using Bytes = std::vector<std::byte>;
  struct Locks {
    int shared = 0;
    bool alone = false;

    bool Take(bool is_shared);
    void GiveUp(bool is_shared);
  };
  struct Inode {
    Bytes contents;
    TakenRuns taken = {};
    int open_files = 0;
    bool is_mapped = false;  // its contents stay where they are
    Locks locks = {};
  };
  using InodeNumber = uint64_t;
  struct Change {
    enum class Kind {
      kWrite,
      kGrow,
      kSync,
      kSyncFailed,
      kName,
      kUnname,
      kRename,
      kSyncDirectory,
      kSyncDirectoryFailed,
      kRot,
      kCut,
    };
    Kind kind;
    InodeNumber inode = 0;
    uint64_t offset = 0;  // kGrow: the new length at least; kCut: at most
    uint64_t begin = 0;   // kGrow: the bytes from here to that length take space
    Bytes bytes = {};
    bool is_mapped = false;  // kWrite: by stores to mapped memory
    std::string path = {};
    std::string from = {};  // kRename: the former name
  };
  // Names and files; directories are names without an inode (0).
  struct State {
    std::map<std::string, InodeNumber> names;
    std::map<InodeNumber, Inode> inodes;

    void Apply(const Change& change);
    bool HasDirectory(const std::string& path) const;
  };

  bool IsPmem(const std::string& path) const {
    return medium_ == SimulatedMedium::kPmem || path.rfind(kSimulatedPmemPath, 0) == 0;
  }
  static std::vector<Change> PiecesOf(const Change& write, Random* random);
  static std::vector<Change> LinesOf(const Change& write, Random* random);
  static std::vector<bool> DurableOf(std::span<const Change> changes);

  Status Admit(DiskCall::Kind kind, const std::string& path)
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Do(Change change) EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckWritable(const std::string& path) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckParent(const std::string& path) const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t SpareBytes() const EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Status CheckSpace(InodeNumber inode, const std::string& path, uint64_t begin, uint64_t end) const
      EMBANK_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Status ReadFile(InodeNumber inode, const std::string& path, uint64_t offset,
                  std::span<std::byte> into);
  Status WriteFile(InodeNumber inode, const std::string& path, uint64_t offset,
                   std::span<const std::byte> bytes, bool is_mapped);
  Status Grow(InodeNumber inode, const std::string& path, uint64_t offset, uint64_t bytes);
  Status SyncFile(InodeNumber inode, const std::string& path);
  StatusOr<uint64_t> SizeOf(InodeNumber inode, const std::string& path, bool taken);
  std::span<const std::byte> MapFile(InodeNumber inode);
  void Close(InodeNumber inode);
  void Unlock(InodeNumber inode, const std::string& path, bool shared);
  StatusOr<bool> IsInPlace(InodeNumber inode, const std::string& path);

  const SimulatedMedium medium_;
  uint32_t open_files_max_ = 512;
  std::function<void()> rename_hook_;
  std::function<void(const std::string& path)> open_hook_;
  mutable Mutex mutex_;
  State now_ EMBANK_GUARDED_BY(mutex_);
  State begin_ EMBANK_GUARDED_BY(mutex_);  // durable, before the first of changes_
  std::vector<Change> changes_ EMBANK_GUARDED_BY(mutex_);
  std::map<std::string, Locks> directory_locks_ EMBANK_GUARDED_BY(mutex_);
  InodeNumber next_inode_ EMBANK_GUARDED_BY(mutex_) = 1;
  uint64_t calls_ EMBANK_GUARDED_BY(mutex_) = 0;
  uint64_t syncs_ EMBANK_GUARDED_BY(mutex_) = 0;
  FaultPlan faults_ EMBANK_GUARDED_BY(mutex_);
  bool is_read_only_ EMBANK_GUARDED_BY(mutex_) = false;
  uint64_t capacity_bytes_ EMBANK_GUARDED_BY(mutex_) = UINT64_MAX;
};

}  // namespace embank::test

#endif  // EMBANK_TESTS_SUPPORT_SIMULATED_DISK_H_
