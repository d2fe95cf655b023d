#include "base/files/posix_file.h"

#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr int kStuck = -1;

StatusCode CodeOf(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      return StatusCode::kNotFound;
    case ENAMETOOLONG:
    case ELOOP:
      return StatusCode::kInvalidArgument;
    case EISDIR:
      return StatusCode::kDataLoss;
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

// Returns a remedy for errors whose own text does not name one.
std::string HintOf(int error) {
  rlimit limit;
  if (error == EMFILE && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    return StrCat("; the process may have ", limit.rlim_cur,
                  " descriptors (RLIMIT_NOFILE): close some, or raise the limit");
  }
  if (error == ENFILE) return "; all processes together have as many as fs.file-max allows";
  return "";
}

Status EndsBefore(const std::string& path, uint64_t end) {
  return NoThrowStatus(StatusCode::kOutOfRange,
                       [&] { return StrCat("read ", path, ": the file ends before byte ", end); });
}

// Without the help of the descriptor cache.
int TryOpen(int directory, const char* name, int flags) {
  while (true) {
    const int number = openat(directory, name, flags | O_CLOEXEC, 0666);
    if (number >= 0) return number;
    if (errno != EINTR) return -errno;
  }
}

}  // namespace

Status ErrorOf(int error, const char* verb, const std::string& path) {
  return NoThrowStatus(CodeOf(error), [&] {
    return StrCat(verb, " ", path, ": ", std::system_category().message(error), HintOf(error));
  });
}

bool IsWithinLength(uint64_t end) {
  rlimit limit;
  return getrlimit(RLIMIT_FSIZE, &limit) != 0 || end <= limit.rlim_cur;
}

int OpenNumber(DescriptorCache* cache, int directory, const char* name, int flags) {
  int number = TryOpen(directory, name, flags);
  while ((number == -EMFILE || number == -ENFILE) && cache->CloseOne()) {
    number = TryOpen(directory, name, flags);
  }
  return number;
}

StatusOr<Descriptor> OpenDescriptor(DescriptorCache* cache, int directory, const char* name,
                                    int flags, const std::string& path) {
  const int number = OpenNumber(cache, directory, name, flags);
  if (number < 0) return ErrorOf(-number, "open", path);
  return Descriptor(number);
}

PosixFile::PosixFile(Descriptor descriptor, FilePlace place, RingPool* rings,
                     DescriptorCache* cache)
    : place_(std::move(place)),
      rings_(rings),
      ring_number_(rings->AddFile()),
      cache_(cache),
      descriptor_(descriptor.Release()) {}

PosixFile::~PosixFile() { rings_->EndFile(ring_number_, was_run_.load()); }

// Returns call(number), where `number` is the descriptor, which stays open meanwhile.
template <typename Call>
Status PosixFile::Using(const char* verb, Call call) {
  const int number = descriptor_.Use();
  if (number < 0) return NotOpenedAgain(-number, verb);
  Status status = call(number);
  descriptor_.EndUse();
  return status;
}

Status PosixFile::NotOpenedAgain(int error, const char* verb) const {
  if (error != ENOENT && error != ESTALE) return ErrorOf(error, verb, place_.path);
  return NoThrowStatus(StatusCode::kDataLoss, [&] {
    return StrCat(verb, " ", place_.path,
                  ": the file was removed or replaced while the store was open");
  });
}

// Opens the same file, or returns minus an error number.
int PosixFile::OpenAgain() const {
  const int number = TryOpen(place_.directory, place_.name(), place_.flags);
  struct stat about;
  if (number < 0 || (fstat(number, &about) == 0 && IdentityOf(about) == identity_)) return number;
  close(number);
  return -ESTALE;
}

Status PosixFile::Read(uint64_t offset, std::span<std::byte> into) {
  CheckBlocks(offset, into);
  if (into.empty()) return OkStatus();
  return Using("read", [&](int number) { return ReadFrom(number, offset, into, 0); });
}

Status PosixFile::Write(uint64_t offset, std::span<const std::byte> bytes) {
  CheckBlocks(offset, bytes);
  if (bytes.empty()) return OkStatus();
  return Using("write", [&](int number) {
    Status written = WriteFrom(number, offset, bytes, 0);
    descriptor_.NoteChange();
    return written;
  });
}

Status PosixFile::PreallocateRange(uint64_t offset, uint64_t bytes) {
  if (bytes == 0) return OkStatus();
  if (!IsWithinLength(offset) || !IsWithinLength(offset + bytes)) {
    return ErrorOf(EFBIG, "preallocate", place_.path);
  }
  return Using("preallocate", [&](int number) {
    int error = 0;
    do {
      error = fallocate(number, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) == 0
                  ? 0
                  : errno;
    } while (error == EINTR);
    descriptor_.NoteChange();
    return error == 0 ? OkStatus() : ErrorOf(error, "preallocate", place_.path);
  });
}

Status PosixFile::Sync() {
  return Using("sync", [&](int number) {
    const uint64_t changes = descriptor_.changes();
    // A sync is not repeated after an error: the system may have dropped bytes that it could not
    // write.
    if (fdatasync(number) != 0) return ErrorOf(errno, "sync", place_.path);
    descriptor_.NoteSynced(changes);
    return OkStatus();
  });
}

StatusOr<struct stat> PosixFile::About() {
  struct stat about = {};
  EMBANK_RETURN_IF_ERROR(Using("stat", [&](int number) {
    return fstat(number, &about) == 0 ? OkStatus() : ErrorOf(errno, "stat", place_.path);
  }));
  return about;
}

StatusOr<uint64_t> PosixFile::SizeBytes() {
  EMBANK_ASSIGN_OR_RETURN(const struct stat about, About());
  return static_cast<uint64_t>(about.st_size);
}

StatusOr<uint64_t> PosixFile::TakenBytes() {
  EMBANK_ASSIGN_OR_RETURN(const struct stat about, About());
  constexpr uint64_t kStatBlockBytes = 512;  // stat(2), whatever the file system's blocks are
  return static_cast<uint64_t>(about.st_blocks) * kStatBlockBytes;
}

Status PosixFile::CheckIsNoLink() const {
  struct stat about;
  if (fstatat(place_.directory, place_.name(), &about, AT_SYMLINK_NOFOLLOW) != 0) {
    return ErrorOf(errno, "stat", place_.path);
  }
  if (!S_ISLNK(about.st_mode)) return OkStatus();
  return DataLossError(StrCat("open ", place_.path, ": it is a link, and not the file itself"));
}

void PosixFile::MayRest() {
  struct stat about;
  const int number = descriptor_.Use();
  EMBANK_CHECK(number >= 0);
  const bool is_known = fstat(number, &about) == 0;
  descriptor_.EndUse();
  if (!is_known) return;
  identity_ = IdentityOf(about);
  descriptor_.Enter(cache_, [this] { return OpenAgain(); });
}

IoOperation PosixFile::OperationOf(const Transfer& transfer, int number) {
  CheckBlocks(transfer.offset, transfer.bytes);
  if (!was_run_.load(std::memory_order_relaxed)) was_run_.store(true);
  return {.writes = transfer.kind == Transfer::Kind::kWrite,
          .descriptor = number,
          .file = ring_number_,
          .offset = transfer.offset,
          .data = transfer.bytes.data(),
          .bytes = static_cast<uint32_t>(transfer.bytes.size())};
}

Status PosixFile::Finish(const Transfer& transfer, const IoOperation& operation) {
  const auto done = static_cast<size_t>(std::max<int64_t>(operation.result, 0));
  if (done == transfer.bytes.size()) return OkStatus();
  return operation.writes ? WriteFrom(operation.descriptor, transfer.offset, transfer.bytes, done)
                          : ReadFrom(operation.descriptor, transfer.offset, transfer.bytes, done);
}

void PosixFile::CheckBlocks(uint64_t offset, std::span<const std::byte> bytes) const {
  if (!direct()) return;
  const uint64_t all = offset | bytes.size() | reinterpret_cast<uintptr_t>(bytes.data());
  EMBANK_CHECK(all % kBlockBytes == 0);
}

// The number of bytes after which a transfer can continue: for a direct one whole blocks.
size_t PosixFile::Resumable(size_t done) const {
  return direct() ? done - done % kBlockBytes : done;
}

Status PosixFile::ReadFrom(int number, uint64_t offset, std::span<std::byte> into,
                           size_t done) const {
  const int error = MoveAll(into.size(), done, [&](size_t before) {
    return pread(number, into.data() + before, into.size() - before,
                 static_cast<off_t>(offset + before));
  });
  if (error == kStuck) return EndsBefore(place_.path, offset + into.size());
  return error == 0 ? OkStatus() : ErrorOf(error, "read", place_.path);
}

Status PosixFile::WriteFrom(int number, uint64_t offset, std::span<const std::byte> bytes,
                            size_t done) const {
  if (!IsWithinLength(offset + bytes.size())) return ErrorOf(EFBIG, "write", place_.path);
  const int error = MoveAll(bytes.size(), done, [&](size_t before) {
    return pwrite(number, bytes.data() + before, bytes.size() - before,
                  static_cast<off_t>(offset + before));
  });
  // A write that stops without an error has met the end of the disk's space.
  if (error == kStuck) return ErrorOf(ENOSPC, "write", place_.path);
  return error == 0 ? OkStatus() : ErrorOf(error, "write", place_.path);
}

// Calls move(before), which moves bytes behind the first `before` and returns how many, until all
// are moved. Returns 0, the system's error number, or kStuck.
template <typename Move>
int PosixFile::MoveAll(size_t bytes, size_t done, Move move) const {
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

}  // namespace embank
