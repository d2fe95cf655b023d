#include "base/pmem/pmem_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

PmemFile::PmemFile(std::unique_ptr<PosixFile> file, PmemFilePlace place, FileAccess access,
                   PmemFileParts* parts)
    : place_(std::move(place)),
      path_(place_.directory->PathOf(place_.name)),
      access_(access),
      parts_(parts),
      file_(std::move(file)) {}

StatusOr<std::unique_ptr<PmemFile>> PmemFile::Open(std::unique_ptr<PosixFile> file,
                                                   PmemFilePlace place, FileAccess access,
                                                   PmemFileParts* parts) {
  EMBANK_CHECK(file != nullptr && parts != nullptr);
  auto opened =
      std::unique_ptr<PmemFile>(new PmemFile(std::move(file), std::move(place), access, parts));
  if (access == FileAccess::kCreate) return opened;
  const std::shared_ptr<PosixFile> of_system = opened->SystemFile();
  EMBANK_RETURN_IF_ERROR(of_system->CheckIsNoLink());
  EMBANK_ASSIGN_OR_RETURN(const uint64_t bytes, of_system->SizeBytes());
  if (bytes == 0) return opened;
  EMBANK_RETURN_IF_ERROR(opened->Map(of_system.get()));
  if (access == FileAccess::kRead) {
    MutexLock lock(&opened->mutex_);
    opened->file_ = nullptr;
  }
  return opened;
}

std::shared_ptr<PosixFile> PmemFile::SystemFile() {
  MutexLock lock(&mutex_);
  return file_;
}

// Maps the file, which has bytes.
Status PmemFile::Map(PosixFile* file) {
  EMBANK_CHECK(!is_mapped());
  const int number = file->Use(/*may_exceed=*/true);
  if (number < 0) return file->SizeBytes().status();  // it rests, and its name is gone
  struct stat about;
  Status status = fstat(number, &about) == 0 ? OkStatus() : ErrorOf(errno, "stat", path_);
  if (status.ok()) {
    const auto bytes = static_cast<uint64_t>(about.st_size);
    constexpr uint64_t kStatBlockBytes = 512;
    status = TakeHoles(file, bytes, static_cast<uint64_t>(about.st_blocks) * kStatBlockBytes);
    if (status.ok()) {
      StatusOr<PmemMapping> mapped = access_ == FileAccess::kRead
                                         ? PmemMapping::MapToRead(number, bytes, path_)
                                         : PmemMapping::MapToWrite(&parts_->library, number, path_);
      status = mapped.status();
      if (status.ok()) mapping_ = *std::move(mapped);
    }
    if (status.ok()) {
      StatusOr<std::vector<BadRange>> bad = parts_->find_bad_ranges(number);
      status = bad.status();
      if (status.ok()) bad_ = *std::move(bad);
    }
  }
  file->EndUse();
  return status;
}

// A store into a hole for which there is no space would be SIGBUS.
Status PmemFile::TakeHoles(PosixFile* file, uint64_t bytes, uint64_t taken_bytes) {
  if (access_ == FileAccess::kRead || taken_bytes >= bytes) return OkStatus();
  return file->Preallocate(bytes);
}

Status PmemFile::CheckInside(const char* verb, uint64_t offset, uint64_t bytes) const {
  const uint64_t mapped_bytes = mapping_.bytes().size();
  if (bytes <= mapped_bytes && offset <= mapped_bytes - bytes) return OkStatus();
  return NoThrowStatus(StatusCode::kOutOfRange, [&] {
    return StrCat(verb, " ", path_, ": ", bytes, " bytes at ", offset, ", but the file has ",
                  mapped_bytes, " and is mapped");
  });
}

// `code`: of the status of a range that meets a damaged one.
Status PmemFile::CheckGood(StatusCode code, const char* verb, Range range) const {
  for (const BadRange& bad : bad_) {
    if (range.end <= bad.begin || bad.end <= range.begin) continue;
    return NoThrowStatus(code, [&] {
      return StrCat(verb, " ", path_, ": its bytes ", bad.begin, " to ", bad.end - 1,
                    " are on bad blocks of the device");
    });
  }
  return OkStatus();
}

Status PmemFile::Read(uint64_t offset, std::span<std::byte> into) {
  if (!is_mapped()) return SystemFile()->Read(offset, into);
  if (into.empty()) return OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckInside("read", offset, into.size()));
  const Range range = {offset, offset + into.size()};
  EMBANK_RETURN_IF_ERROR(CheckGood(StatusCode::kDataLoss, "read", range));
  std::memcpy(into.data(), mapping_.bytes().data() + offset, into.size());
  return OkStatus();
}

Status PmemFile::Write(uint64_t offset, std::span<const std::byte> bytes) {
  Status written = WriteUndrained(offset, bytes);
  Drain();
  return written;
}

Status PmemFile::WriteUndrained(uint64_t offset, std::span<const std::byte> bytes) {
  if (!is_mapped()) return SystemFile()->Write(offset, bytes);
  EMBANK_CHECK(access_ != FileAccess::kRead);
  if (bytes.empty()) return OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckInside("write", offset, bytes.size()));
  const Range range = {offset, offset + bytes.size()};
  EMBANK_RETURN_IF_ERROR(CheckGood(StatusCode::kUnavailable, "write", range));
  std::byte* const to = mapping_.bytes().data() + offset;
  parts_->tally.written_bytes.fetch_add(bytes.size(), std::memory_order_relaxed);
  if (is_pmem()) {
    parts_->library.copy(to, bytes.data(), bytes.size(), kPmemNoDrain | kPmemNonTemporal);
    return OkStatus();
  }
  std::memcpy(to, bytes.data(), bytes.size());
  NoteWritten(range);
  return OkStatus();
}

// A drain waits for the stores of its own thread alone, and the thread that syncs may be another.
// Non-temporal stores also pass later stores by: without it a thread that learns of the write could
// read what was there before.
void PmemFile::Drain() {
  if (!is_pmem()) return;
  parts_->library.drain();
  parts_->tally.drains.fetch_add(1, std::memory_order_relaxed);
}

void PmemFile::NoteWritten(Range range) {
  EMBANK_CHECK(range.begin < range.end && range.end <= mapping_.bytes().size());
  MutexLock lock(&mutex_);
  const bool is_empty = written_.begin == written_.end;
  written_.begin = is_empty ? range.begin : std::min(written_.begin, range.begin);
  written_.end = is_empty ? range.end : std::max(written_.end, range.end);
  ++changes_;
}

Status PmemFile::Preallocate(uint64_t bytes) {
  if (bytes <= mapping_.bytes().size()) return OkStatus();
  if (is_mapped()) {
    return NoThrowStatus(StatusCode::kUnimplemented, [&] {
      return StrCat("preallocate ", path_, ": a mapped file keeps its length, here ",
                    mapping_.bytes().size(), " bytes");
    });
  }
  const std::shared_ptr<PosixFile> file = SystemFile();
  EMBANK_CHECK(file != nullptr);
  Status taken = file->Preallocate(bytes);
  if (IsUnimplemented(taken)) {
    taken = UnimplementedError(StrCat(
        taken.message(), "; pmem_path must be on a file system that takes space ahead of writes"));
  }
  if (taken.ok()) taken = Map(file.get());
  // A new file with damaged parts is of no use.
  if (taken.ok()) {
    taken = CheckGood(StatusCode::kUnavailable, "preallocate", {0, mapping_.bytes().size()});
  }
  if (!taken.ok() && access_ == FileAccess::kCreate) {
    place_.directory->Remove(place_.name).IgnoreError();
  }
  return taken;
}

Status PmemFile::Sync() {
  std::shared_ptr<PosixFile> file;
  Range written;
  uint64_t changes = 0;
  {
    MutexLock lock(&mutex_);
    if (!sync_failure_.ok()) return sync_failure_;
    file = file_;
    written = written_;
    changes = changes_;
  }
  Status synced = SyncBytes(written);
  // The length of a new file, and where its blocks are: of a mapped file neither changes again.
  if (synced.ok() && file != nullptr) synced = file->Sync();
  MutexLock lock(&mutex_);
  if (!synced.ok()) {
    sync_failure_ = synced;
    return synced;
  }
  // While others write, the range stays: what is durable already costs the next sync little.
  if (changes == changes_) written_ = {};
  if (is_mapped()) file_ = nullptr;
  return OkStatus();
}

// Each write to persistent memory has drained already.
Status PmemFile::SyncBytes(Range written) {
  if (is_pmem() || written.begin == written.end) return OkStatus();
  parts_->tally.msyncs.fetch_add(1, std::memory_order_relaxed);
  EMBANK_CHECK(written.end <= mapping_.bytes().size());
  const std::span<std::byte> bytes =
      mapping_.bytes().subspan(written.begin, written.end - written.begin);
  if (parts_->library.msync(bytes.data(), bytes.size()) == 0) return OkStatus();
  return ErrorOf(errno, "sync", path_);
}

StatusOr<uint64_t> PmemFile::SizeBytes() {
  if (is_mapped()) return mapping_.bytes().size();
  return SystemFile()->SizeBytes();
}

StatusOr<uint64_t> PmemFile::TakenBytes() {
  // A file that is mapped to be written has no holes.
  if (is_mapped() && access_ != FileAccess::kRead) return mapping_.bytes().size();
  const std::shared_ptr<PosixFile> file = SystemFile();
  return file == nullptr ? SizeBytes() : file->TakenBytes();
}

void PmemFile::MayRest() {
  const std::shared_ptr<PosixFile> file = SystemFile();
  if (file != nullptr) file->MayRest();
}

}  // namespace embank
