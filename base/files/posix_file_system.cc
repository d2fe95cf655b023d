#include "base/files/posix_file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/files/descriptor_cache.h"
#include "base/files/posix_file.h"
#include "base/files/ring_pool.h"
#include "base/files/uring.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/executor.h"
#include "base/threads/mutex.h"

namespace embank {
namespace {

class PosixFileLock final : public FileLock {
 public:
  PosixFileLock(Descriptor descriptor, int directory, std::string name, std::string path)
      : descriptor_(std::move(descriptor)),
        directory_(directory),
        name_(std::move(name)),
        path_(std::move(path)) {}
  // Forked children have the descriptor, too: if only we closed it, they would keep the lock. They
  // end without releasing ours.
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
  const int directory_;  // of the file's name
  const std::string name_;
  const std::string path_;
  const pid_t owner_ = getpid();
};

class PosixDirectory final : public Directory {
 public:
  PosixDirectory(Descriptor descriptor, std::string path, RingPool* rings, DescriptorCache* cache)
      : descriptor_(std::move(descriptor)), path_(std::move(path)), rings_(rings), cache_(cache) {}

  const std::string& path() const override { return path_; }

  StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                       FileCaching caching) override {
    int flags = access == FileAccess::kRead ? O_RDONLY : O_RDWR;
    if (access == FileAccess::kCreate) flags |= O_CREAT | O_EXCL;
    if (caching == FileCaching::kDirect) {
      const int direct = OpenNumber(cache_, number(), name.c_str(), flags | O_DIRECT);
      if (direct >= 0) return Hold(Descriptor(direct), name, flags | O_DIRECT);
      // The file system has no direct access; a file it may have created stays.
      if (direct != -EINVAL) return ErrorOf(-direct, "open", PathOf(name));
      flags &= ~O_EXCL;
    }
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(cache_, number(), name.c_str(), flags, PathOf(name)));
    return Hold(std::move(descriptor), name, flags);
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
    // The listing uses its own descriptor, because a directory stream has a position.
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(cache_, number(), ".", O_RDONLY | O_DIRECTORY, path_));
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(fdopendir(descriptor.number()), closedir);
    if (stream == nullptr) return ErrorOf(errno, "list", path_);
    descriptor.Release();
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      // No other thread has this stream.
      const dirent* const entry = readdir(stream.get());  // NOLINT(concurrency-mt-unsafe)
      if (entry == nullptr && errno != 0) return ErrorOf(errno, "list", path_);
      if (entry == nullptr) return names;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
    }
  }

  Status Sync() override {
    Status synced = SyncDescriptor(number(), path_);
    // It was tried: some names may never be durable, as after any other error.
    if (IsResourceExhausted(synced)) return UnavailableError(synced.message());
    return synced;
  }
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
    return OpenDescriptor(cache_, number(), "..", O_RDONLY | O_DIRECTORY, DirectoryOf(path_));
  }
  static Status SyncDescriptor(int number, const std::string& path) {
    if (fsync(number) == 0) return OkStatus();
    const Status failed = ErrorOf(errno, "sync directory", path);
    return Status(StatusCode::kUnavailable, failed.message());
  }
  // A file that was created and cannot be held is removed.
  StatusOr<std::unique_ptr<File>> Hold(Descriptor descriptor, const std::string& name, int flags) {
    StatusOr<std::unique_ptr<File>> file =
        CatchNoMemory([&] { return MakeNoDirectory(std::move(descriptor), name, flags); });
    if (!file.ok() && (flags & O_CREAT) != 0) unlinkat(number(), name.c_str(), 0);
    return file;
  }
  // A directory can be opened to be read.
  StatusOr<std::unique_ptr<File>> MakeNoDirectory(Descriptor descriptor, const std::string& name,
                                                  int flags) {
    struct stat about;
    if (fstat(descriptor.number(), &about) != 0) return ErrorOf(errno, "stat", PathOf(name));
    if (S_ISDIR(about.st_mode)) return ErrorOf(EISDIR, "open", PathOf(name));
    return MakeFile(std::move(descriptor), name, flags);
  }
  std::unique_ptr<File> MakeFile(Descriptor descriptor, const std::string& name, int flags) {
    FilePlace place = {.directory = number(),
                       .path = PathOf(name),
                       .name_begin = path_.size() + 1,
                       .flags = flags & ~(O_CREAT | O_EXCL)};
    return std::make_unique<PosixFile>(std::move(descriptor), std::move(place), rings_, cache_);
  }
  StatusOr<std::unique_ptr<FileLock>> LockName(const std::string& name, int flags, bool shared,
                                               const std::string& path) {
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor,
                            OpenDescriptor(cache_, number(), name.c_str(), flags, path));
    struct stat about;
    const bool is_itself = (flags & O_DIRECTORY) != 0;
    if (fstat(descriptor.number(), &about) != 0) return ErrorOf(errno, "stat", path);
    if (!is_itself && S_ISDIR(about.st_mode)) return ErrorOf(EISDIR, "lock", path);
    int result = 0;
    do {
      result = flock(descriptor.number(), (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    // Network file systems may lock only files that can be written, which a directory cannot.
    const bool has_no_locks = is_itself && errno != EWOULDBLOCK;
    if (result != 0) return ErrorOf(has_no_locks ? EOPNOTSUPP : errno, "lock", path);
    return std::make_unique<PosixFileLock>(std::move(descriptor), number(), name, path);
  }

  const Descriptor descriptor_;
  const std::string path_;
  RingPool* const rings_;
  DescriptorCache* const cache_;
};

class PosixFileSystem final : public FileSystem {
 public:
  explicit PosixFileSystem(const PosixFileOptions& options)
      : transfer_threads_(options.transfer_threads),
        cache_(options.open_files_max != 0 ? options.open_files_max : HalfOfDescriptors()),
        rings_(options.use_io_uring ? std::optional(options.completions) : std::nullopt) {}

  Status CreateDirectory(const std::string& path) override {
    if (mkdir(path.c_str(), 0777) == 0) return OkStatus();
    return ErrorOf(errno, "create directory", path);
  }
  StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) override {
    EMBANK_ASSIGN_OR_RETURN(Descriptor descriptor, OpenDescriptor(&cache_, AT_FDCWD, path.c_str(),
                                                                  O_RDONLY | O_DIRECTORY, path));
    return std::make_unique<PosixDirectory>(std::move(descriptor), path, &rings_, &cache_);
  }

  void TransferAll(std::span<Transfer> transfers) override {
    std::vector<IoOperation> operations;
    std::vector<PosixFile*> used;
    try {
      operations.reserve(transfers.size());
      used.reserve(transfers.size());
    } catch (const std::bad_alloc&) {
      // Transfers one after the other need no threads.
      for (Transfer& transfer : transfers) DoAlone(&transfer);
      return;
    }
    for (size_t done = 0; done < transfers.size();) {
      done += TransferSome(transfers.subspan(done), &operations, &used);
    }
  }

  uint32_t OpenFilesMax() const override { return static_cast<uint32_t>(cache_.open_max()); }

  void RegisterMemory(std::span<std::byte> memory) override { rings_.AddMemory(memory); }
  void UnregisterMemory(std::span<std::byte> memory) override { rings_.EndMemory(memory); }

 private:
  static PosixFile* FileOf(const Transfer& transfer) {
    return static_cast<PosixFile*>(transfer.file);
  }

  // A store may have so many descriptors for files that can rest. The others are for files that it
  // writes, its rings, and the rest of the process.
  static size_t HalfOfDescriptors() {
    constexpr rlim_t kDescriptorsMin = 16;
    constexpr rlim_t kDescriptorsMax = rlim_t{1} << 20;  // more than a log has segments, twice
    rlimit limit;
    const bool is_known = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    return std::clamp(is_known ? limit.rlim_cur : 0, kDescriptorsMin, kDescriptorsMax) / 2;
  }

  // Uses as many of the first files as there are descriptors for at once; returns how many.
  size_t TransferSome(std::span<Transfer> transfers, std::vector<IoOperation>* operations,
                      std::vector<PosixFile*>* used) {
    operations->clear();
    used->clear();
    int number = -1;
    for (const Transfer& transfer : transfers) {
      PosixFile* const file = FileOf(transfer);
      if (used->empty() || used->back() != file) {
        number = file->Use(/*may_exceed=*/used->empty());
        if (number < 0) break;
        used->push_back(file);
      }
      operations->push_back(file->OperationOf(transfer, number));
    }
    if (operations->empty()) {
      transfers.front().status = FileOf(transfers.front())->StatusOfUse(transfers.front(), number);
      return 1;
    }
    const std::span<Transfer> some = transfers.first(operations->size());
    RunAll(some, *operations);
    for (const Transfer& transfer : some) {
      if (transfer.kind == Transfer::Kind::kWrite) FileOf(transfer)->NoteChange();
    }
    for (PosixFile* const file : *used) file->EndUse();
    return some.size();
  }

  void RunAll(std::span<Transfer> transfers, std::span<IoOperation> operations) {
    // A single transfer is a system call either way.
    if (transfers.size() > 1 && WithinLength(transfers)) rings_.Run(operations);
    Executor* const threads = UndoneOf(operations) > 1 ? Threads() : nullptr;
    const auto finish = [&](uint32_t i) {
      transfers[i].status = FileOf(transfers[i])->Finish(transfers[i], operations[i]);
    };
    const auto count = static_cast<uint32_t>(transfers.size());
    if (threads != nullptr) return threads->ParallelFor(count, finish);
    for (uint32_t i = 0; i < count; ++i) finish(i);
  }

  static void DoAlone(Transfer* transfer) {
    PosixFile* const file = FileOf(*transfer);
    transfer->status = transfer->kind == Transfer::Kind::kWrite
                           ? file->Write(transfer->offset, transfer->bytes)
                           : file->Read(transfer->offset, transfer->bytes);
  }

  // Whether no write passes the length at which the system sends a signal.
  static bool WithinLength(std::span<const Transfer> transfers) {
    uint64_t end = 0;
    for (const Transfer& transfer : transfers) {
      if (transfer.kind == Transfer::Kind::kRead) continue;
      end = std::max(end, transfer.offset + transfer.bytes.size());
    }
    return end == 0 || IsWithinLength(end);
  }

  // Does the operations that a ring did not do, or could not.
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
  DescriptorCache cache_;
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
