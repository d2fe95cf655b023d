#include "base/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/check.h"
#include "base/executor.h"
#include "base/mutex.h"
#include "base/ring_pool.h"
#include "base/status_macros.h"
#include "base/status_with_room.h"
#include "base/str_cat.h"
#include "base/uring.h"

namespace embank {
namespace {

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case EEXIST:
      return StatusCode::kAlreadyExists;
    case EACCES:
    case EPERM:
    case EROFS:
      return StatusCode::kPermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EMFILE:
    case ENFILE:
    case ENOLCK:
    case ENOMEM:
      return StatusCode::kResourceExhausted;
    case EOPNOTSUPP:
    case EXDEV:
      return StatusCode::kUnimplemented;
    default:
      return StatusCode::kUnavailable;
  }
}

Status ErrorOf(int error, const char* verb, const std::string& path) {
  return StatusWithRoom(CodeOf(error), [&] {
    return StrCat(verb, " ", path, ": ", std::system_category().message(error));
  });
}

Status EndsBefore(const std::string& path, uint64_t end) {
  return StatusWithRoom(StatusCode::kOutOfRange,
                        [&] { return StrCat("read ", path, ": the file ends before byte ", end); });
}

// Beyond this limit the system sends a signal, which stops processes that do not expect it.
bool IsWithinLength(uint64_t end) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur;
}

class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  ~Descriptor() {
    if (number_ >= 0) close(number_);
  }
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  int number() const { return number_; }
  // Somebody else closes it.
  void Release() { number_ = -1; }

 private:
  int number_;
};

class PosixFile final : public File {
 public:
  PosixFile(Descriptor descriptor, std::string path, bool direct, RingPool* rings)
      : descriptor_(std::move(descriptor)),
        path_(std::move(path)),
        direct_(direct),
        rings_(rings),
        ring_number_(rings->AddFile()) {}
  ~PosixFile() override { rings_->EndFile(ring_number_, was_run_.load()); }

  Status Read(uint64_t offset, std::span<std::byte> into) override {
    CheckBlocks(offset, into);
    return into.empty() ? OkStatus() : ReadFrom(offset, into, 0);
  }
  Status Write(uint64_t offset, std::span<const std::byte> bytes) override {
    CheckBlocks(offset, bytes);
    return bytes.empty() ? OkStatus() : WriteFrom(offset, bytes, 0);
  }
  Status Preallocate(uint64_t bytes) override {
    if (bytes == 0) return OkStatus();
    if (!IsWithinLength(bytes)) return ErrorOf(EFBIG, "preallocate", path_);
    int result = 0;
    do {
      result = fallocate(descriptor_.number(), 0, 0, static_cast<off_t>(bytes));
    } while (result != 0 && errno == EINTR);
    return result == 0 ? OkStatus() : ErrorOf(errno, "preallocate", path_);
  }
  Status Sync() override {
    // Never again after an error: the system may have forgotten what it could not write.
    return fdatasync(descriptor_.number()) == 0 ? OkStatus() : ErrorOf(errno, "sync", path_);
  }
  StatusOr<uint64_t> SizeBytes() override {
    struct stat about;
    if (fstat(descriptor_.number(), &about) != 0) return ErrorOf(errno, "stat", path_);
    return static_cast<uint64_t>(about.st_size);
  }
  bool direct() const override { return direct_; }

  IoOperation OperationOf(const Transfer& transfer) {
    CheckBlocks(transfer.offset, transfer.bytes);
    if (!was_run_.load(std::memory_order_relaxed)) was_run_.store(true);
    return {.writes = transfer.kind == Transfer::Kind::kWrite,
            .descriptor = descriptor_.number(),
            .file = ring_number_,
            .offset = transfer.offset,
            .data = transfer.bytes.data(),
            .bytes = static_cast<uint32_t>(transfer.bytes.size())};
  }
  // Goes on where a ring has stopped. What it could not do at all, for reasons of the file or of
  // its own, is tried once more without it, which tells the reason.
  Status Finish(const Transfer& transfer, int64_t result) {
    const auto done = static_cast<size_t>(std::max<int64_t>(result, 0));
    if (done == transfer.bytes.size()) return OkStatus();
    return transfer.kind == Transfer::Kind::kWrite
               ? WriteFrom(transfer.offset, transfer.bytes, done)
               : ReadFrom(transfer.offset, transfer.bytes, done);
  }

 private:
  void CheckBlocks(uint64_t offset, std::span<const std::byte> bytes) const {
    if (!direct_) return;
    const uint64_t all = offset | bytes.size() | reinterpret_cast<uintptr_t>(bytes.data());
    EMBANK_CHECK(all % kBlockBytes == 0);
  }

  // How far a transfer has come that can go on: a direct one in whole blocks.
  size_t Resumable(size_t done) const { return direct_ ? done - done % kBlockBytes : done; }

  Status ReadFrom(uint64_t offset, std::span<std::byte> into, size_t done) {
    const int error = MoveAll(into.size(), done, [&](size_t before) {
      return pread(descriptor_.number(), into.data() + before, into.size() - before,
                   static_cast<off_t>(offset + before));
    });
    if (error == kStuck) return EndsBefore(path_, offset + into.size());
    return error == 0 ? OkStatus() : ErrorOf(error, "read", path_);
  }
  Status WriteFrom(uint64_t offset, std::span<const std::byte> bytes, size_t done) {
    if (!IsWithinLength(offset + bytes.size())) return ErrorOf(EFBIG, "write", path_);
    const int error = MoveAll(bytes.size(), done, [&](size_t before) {
      return pwrite(descriptor_.number(), bytes.data() + before, bytes.size() - before,
                    static_cast<off_t>(offset + before));
    });
    // What stops a write of a file without an error is the end of the space.
    if (error == kStuck) return ErrorOf(ENOSPC, "write", path_);
    return error == 0 ? OkStatus() : ErrorOf(error, "write", path_);
  }

  static constexpr int kStuck = -1;

  // Calls move(before), which moves bytes behind the first `before` and says how many, until all
  // are moved: 0, the system's error number, or kStuck.
  template <typename Move>
  int MoveAll(size_t bytes, size_t done, Move move) const {
    for (size_t before = Resumable(done); before < bytes;) {
      const ssize_t n = move(before);
      if (n < 0 && (errno == EINTR || errno == EAGAIN)) continue;
      if (n < 0) return errno;
      const size_t after = before + static_cast<size_t>(n);
      if (after == bytes) break;
      if (Resumable(after) == before) return kStuck;
      before = Resumable(after);
    }
    return 0;
  }

  const Descriptor descriptor_;
  const std::string path_;
  const bool direct_;
  RingPool* const rings_;
  const uint32_t ring_number_;
  std::atomic<bool> was_run_{false};
};

// The file of a number, whatever its names are.
struct FileIdentity {
  dev_t device;
  ino_t inode;
  bool operator==(const FileIdentity&) const = default;
};

FileIdentity IdentityOf(const struct stat& about) { return {about.st_dev, about.st_ino}; }

// A descriptor's number, or minus the system's error number.
int OpenNumber(int directory, const char* name, int flags) {
  while (true) {
    const int number = openat(directory, name, flags | O_CLOEXEC, 0666);
    if (number >= 0) return number;
    if (errno != EINTR) return -errno;
  }
}

StatusOr<Descriptor> OpenDescriptor(int directory, const char* name, int flags,
                                    const std::string& path) {
  const int number = OpenNumber(directory, name, flags);
  if (number < 0) return ErrorOf(-number, "open", path);
  return Descriptor(number);
}

class PosixFileLock final : public FileLock {
 public:
  PosixFileLock(Descriptor descriptor, int directory, std::string name, std::string path)
      : descriptor_(std::move(descriptor)),
        directory_(directory),
        name_(std::move(name)),
        path_(std::move(path)) {}
  // Forked children have the descriptor too: closing it would leave them the lock. They end without
  // taking it from us.
  ~PosixFileLock() override {
    if (getpid() == owner_) flock(descriptor_.number(), LOCK_UN);
  }

  StatusOr<bool> IsInPlace() override {
    struct stat locked;
    struct stat named;
    if (fstat(descriptor_.number(), &locked) != 0) return ErrorOf(errno, "stat", path_);
    if (fstatat(directory_, name_.c_str(), &named, 0) == 0) {
      return IdentityOf(locked) == IdentityOf(named);
    }
    if (errno == ENOENT) return false;
    return ErrorOf(errno, "stat", path_);
  }

 private:
  const Descriptor descriptor_;
  const int directory_;  // in which it has its name
  const std::string name_;
  const std::string path_;
  const pid_t owner_ = getpid();
};

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(Descriptor descriptor, std::string path, RingPool* rings)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), rings_(rings) {}

  const std::string& path() const override { return path_; }

  StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                       FileCaching caching) override {
    int flags = access == FileAccess::kRead ? O_RDONLY : O_RDWR;
    if (access == FileAccess::kCreate) flags |= O_CREAT | O_EXCL;
    if (caching == FileCaching::kDirect) {
      const int direct = OpenNumber(number(), name.c_str(), flags | O_DIRECT);
      if (direct >= 0) return MakeFile(Descriptor(direct), name, true);
      // The file system has no direct access; a file it may have created stays.
      if (direct != -EINVAL) return ErrorOf(-direct, "open", PathOf(name));
      flags &= ~O_EXCL;
    }
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(number(), name.c_str(), flags, PathOf(name)));
    return MakeFile(std::move(descriptor), name, false);
  }

  Status Rename(const std::string& from, const std::string& to) override {
    if (renameat(number(), from.c_str(), number(), to.c_str()) == 0) return OkStatus();
    return ErrorOf(errno, "rename", PathOf(from));
  }
  Status Link(const std::string& from, Directory* directory, const std::string& to) override {
    const int target = static_cast<PosixDirectory*>(directory)->number();
    if (linkat(number(), from.c_str(), target, to.c_str(), 0) == 0) return OkStatus();
    // EPERM: the file system has no links, or the system does not let this user make them.
    const bool has_no_links = errno == EPERM || errno == EMLINK || errno == ENOSYS;
    return ErrorOf(has_no_links ? EOPNOTSUPP : errno, "link", directory->PathOf(to));
  }
  Status Remove(const std::string& name) override {
    if (unlinkat(number(), name.c_str(), 0) == 0) return OkStatus();
    return ErrorOf(errno, "remove", PathOf(name));
  }

  StatusOr<std::vector<std::string>> List() override {
    // Of its own: a stream has the place up to which it was read.
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(number(), ".", O_RDONLY | O_DIRECTORY, path_));
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(descriptor.number()), closedir);
    if (stream == nullptr) return ErrorOf(errno, "list", path_);
    descriptor.Release();
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      // Nobody else has this stream.
      const dirent* const entry = readdir(stream.get());  // NOLINT(concurrency-mt-unsafe)
      if (entry == nullptr && errno != 0) return ErrorOf(errno, "list", path_);
      if (entry == nullptr) return names;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
  }

  Status Sync() override { return SyncDescriptor(number(), path_); }
  Status SyncName() override {
    EMBANK_ASSIGN_OR_RETURN(const Descriptor parent, OpenParent());
    return SyncDescriptor(parent.number(), DirectoryOf(path_));
  }
  Status RemoveItself() override {
    EMBANK_ASSIGN_OR_RETURN(const Descriptor parent, OpenParent());
    const std::string name = LastNameOf(path_);
    struct stat own;
    struct stat named;
    if (fstat(number(), &own) != 0) return ErrorOf(errno, "stat", path_);
    if (fstatat(parent.number(), name.c_str(), &named, AT_SYMLINK_NOFOLLOW) != 0) {
      return ErrorOf(errno, "remove", path_);
    }
    if (IdentityOf(own) != IdentityOf(named)) return ErrorOf(ENOENT, "remove", path_);
    if (unlinkat(parent.number(), name.c_str(), AT_REMOVEDIR) == 0) return OkStatus();
    return ErrorOf(errno, "remove", path_);
  }
  StatusOr<uint64_t> FreeBytes() override {
    struct statvfs about;
    if (fstatvfs(number(), &about) != 0) return ErrorOf(errno, "stat", path_);
    return uint64_t{about.f_bavail} * about.f_frsize;
  }

  StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) override {
    return LockName(name, shared ? O_RDONLY : O_RDWR, shared, PathOf(name));
  }
  StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) override {
    return LockName(".", O_RDONLY | O_DIRECTORY, shared, path_);
  }

 private:
  int number() const { return descriptor_.number(); }

  // The part of a path behind its last slash; those at the end do not count.
  static std::string LastNameOf(const std::string& path) {
    const size_t end = path.find_last_not_of('/');
    if (end == std::string::npos) return path;
    const size_t slash = path.rfind('/', end);
    const size_t begin = slash == std::string::npos ? 0 : slash + 1;
    return path.substr(begin, end + 1 - begin);
  }

  StatusOr<Descriptor> OpenParent() const {
    return OpenDescriptor(number(), "..", O_RDONLY | O_DIRECTORY, DirectoryOf(path_));
  }
  static Status SyncDescriptor(int number, const std::string& path) {
    if (fsync(number) == 0) return OkStatus();
    const Status failed = ErrorOf(errno, "sync directory", path);
    return Status(StatusCode::kUnavailable, failed.message());
  }
  std::unique_ptr<File> MakeFile(Descriptor descriptor, const std::string& name, bool direct) {
    return std::make_unique<PosixFile>(std::move(descriptor), PathOf(name), direct, rings_);
  }
  StatusOr<std::unique_ptr<FileLock>> LockName(const std::string& name, int flags, bool shared,
                                               const std::string& path) {
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(number(), name.c_str(), flags, path));
    int result = 0;
    do {
      result = flock(descriptor.number(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    // File systems of networks may lock only what can be written, which a directory cannot.
    const bool has_no_locks = (flags & O_DIRECTORY) != 0 && errno != EWOULDBLOCK;
    if (result != 0) return ErrorOf(has_no_locks ? EOPNOTSUPP : errno, "lock", path);
    return std::make_unique<PosixFileLock>(std::move(descriptor), number(), name, path);
  }

  const Descriptor descriptor_;
  const std::string path_;
  RingPool* const rings_;
};

class PosixFileSystem final : public FileSystem {
 public:
  explicit PosixFileSystem(const PosixFileOptions& options)
      : transfer_threads_(options.transfer_threads),
        rings_(options.use_io_uring ? std::optional(options.completions) : std::nullopt) {}

  Status CreateDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), 0777) == 0) return OkStatus();
    return ErrorOf(errno, "create directory", path);
  }
  StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) override {
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY, path));
    return std::make_unique<PosixDirectory>(std::move(descriptor), path, &rings_);
  }

  void TransferAll(std::span<Transfer> transfers) override {
    std::vector<IoOperation> operations;
    try {
      operations.reserve(transfers.size());
    } catch (const std::bad_alloc&) {
      // One after the other needs none.
      for (Transfer& transfer : transfers) FinishOne(&transfer, IoOperation::kNotDone);
      return;
    }
    for (const Transfer& transfer : transfers) {
      operations.push_back(FileOf(transfer)->OperationOf(transfer));
    }
    // One alone is a system call either way.
    if (transfers.size() > 1 && WithinLength(transfers)) rings_.Run(operations);
    Executor* const threads = UndoneOf(operations) > 1 ? Threads() : nullptr;
    const auto finish = [&](uint32_t i) { FinishOne(&transfers[i], operations[i].result); };
    const auto count = static_cast<uint32_t>(transfers.size());
    if (threads != nullptr) return threads->ParallelFor(count, finish);
    for (uint32_t i = 0; i < count; ++i) finish(i);
  }

  void KeepMemory(std::span<std::byte> memory) override { rings_.AddMemory(memory); }
  void ForgetMemory(std::span<std::byte> memory) override { rings_.EndMemory(memory); }

 private:
  static PosixFile* FileOf(const Transfer& transfer) {
    return static_cast<PosixFile*>(transfer.file);
  }

  static void FinishOne(Transfer* transfer, int64_t result) noexcept {
    transfer->status = FileOf(*transfer)->Finish(*transfer, result);
  }

  // Whether no write passes the length that a signal would answer.
  static bool WithinLength(std::span<const Transfer> transfers) {
    uint64_t end = 0;
    for (const Transfer& transfer : transfers) {
      if (transfer.kind == Transfer::Kind::kRead) continue;
      end = std::max(end, transfer.offset + transfer.bytes.size());
    }
    return end == 0 || IsWithinLength(end);
  }

  // Those that a ring did not do, or could not.
  static size_t UndoneOf(std::span<const IoOperation> operations) {
    return static_cast<size_t>(std::count_if(operations.begin(), operations.end(),
                                             [](const IoOperation& o) { return o.result < 0; }));
  }

  // Made when they are first needed; nullptr: there is no memory for them.
  Executor* Threads() noexcept {
    MutexLock lock(&mutex_);
    try {
      if (threads_ == nullptr) threads_ = MakeThreadPool(transfer_threads_);
    } catch (const std::bad_alloc&) {
    }
    return threads_.get();
  }

  const uint32_t transfer_threads_;
  RingPool rings_;
  Mutex mutex_;
  std::unique_ptr<Executor> threads_ EMBANK_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<FileSystem> MakePosixFileSystem(const PosixFileOptions& options) {
  return std::make_unique<PosixFileSystem>(options);
}

const char* IoUringState() {
  static const std::string* const state = [] {
    int error = 0;
    const std::unique_ptr<IoRing> ring = MakeIoRing(IoCompletions::kDeferred, &error);
    return new std::string(ring != nullptr ? StrCat("yes: ", ring->About())
                                           : StrCat("no: ", std::system_category().message(error)));
  }();
  return state->c_str();
}

}  // namespace embank
