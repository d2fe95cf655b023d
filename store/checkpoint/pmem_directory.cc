#include "store/checkpoint/pmem_directory.h"

#include <bit>
#include <filesystem>
#include <system_error>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/pmem/pmem_library.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

uint64_t RowsInPmem(const Manifest& manifest) {
  uint64_t rows = 0;
  for (const SegmentRows& segment : manifest.segments) {
    if (segment.tier != Tier::kPmem) continue;
    for (const uint64_t word : segment.bits) rows += static_cast<uint64_t>(std::popcount(word));
  }
  return rows;
}

Status NeedsPmem(const Manifest& opened, const std::string& what) {
  return FailedPreconditionError(StrCat("pmem_path: ", what, "; ", RowsInPmem(opened),
                                        " rows of the store are in PMem, in ", opened.pmem_path));
}

std::string AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.string();
}

}  // namespace

PmemDirectory::PmemDirectory(std::unique_ptr<FileSystem> base, std::unique_ptr<PmemFileSystem> own,
                             FileSystem* files)
    : base_files_(std::move(base)),
      own_files_(std::move(own)),
      files_(files != nullptr ? files : own_files_.get()) {}

PmemDirectory::~PmemDirectory() = default;

StatusOr<std::unique_ptr<PmemDirectory>> PmemDirectory::Open(FileSystem* files,
                                                             const StoreOptions& options,
                                                             const Manifest& opened) {
  if (options.pmem_path.empty()) {
    if (RowsInPmem(opened) > 0) return NeedsPmem(opened, "none was given");
    return std::unique_ptr<PmemDirectory>();
  }
  std::unique_ptr<FileSystem> base;
  std::unique_ptr<PmemFileSystem> own;
  if (files == nullptr) {
    EMBANK_ASSIGN_OR_RETURN(const PmemLibrary library, LoadPmemLibrary());
    base = MakePosixFileSystem({});
    own = MakePmemFileSystem(base.get(), library);
  }
  std::unique_ptr<PmemDirectory> directory(
      new PmemDirectory(std::move(base), std::move(own), files));
  EMBANK_RETURN_IF_ERROR(directory->OpenAndLock(options, opened));
  return directory;
}

Status PmemDirectory::OpenAndLock(const StoreOptions& options, const Manifest& opened) {
  path_ = AbsolutePath(options.pmem_path);
  const bool may_make = options.may_create && !options.read_only;
  if (may_make && RowsInPmem(opened) == 0) {
    Status made = files_->CreateDirectory(options.pmem_path);
    if (!made.ok() && !IsAlreadyExists(made)) return made;
  }
  StatusOr<std::unique_ptr<Directory>> directory = files_->OpenDirectory(options.pmem_path);
  if (IsNotFound(directory.status())) {
    const std::string what = StrCat(options.pmem_path, " is not a directory");
    if (RowsInPmem(opened) > 0) return NeedsPmem(opened, what);
    return InvalidArgumentError(StrCat("pmem_path: ", what));
  }
  EMBANK_RETURN_IF_ERROR(directory.status());
  directory_ = *std::move(directory);
  lock_ = std::make_unique<StoreLock>(directory_.get());
  if (options.read_only) {
    EMBANK_RETURN_IF_ERROR(lock_->LockToRead("pmem_path"));
  } else {
    EMBANK_RETURN_IF_ERROR(lock_->LockToChange(/*may_make_file=*/true));
  }
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  listing_ = StoreListing::Of(names);
  EMBANK_RETURN_IF_ERROR(CheckStore(options, opened.store_id));
  if (options.read_only) return OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckMaps());
  return listing_.store_ids.empty() ? NameStore(opened.store_id) : OkStatus();
}

// A full device is no reason to refuse the rows that are there: new ones go to the SSD.
Status PmemDirectory::CheckMaps() {
  if (own_files_ == nullptr) return OkStatus();
  const Status kind = own_files_->KindOf(directory_.get()).status();
  if (kind.ok() || IsResourceExhausted(kind)) return OkStatus();
  return Status(kind.code(), StrCat("pmem_path: ", kind.message()));
}

Status PmemDirectory::CheckStore(const StoreOptions& options, uint64_t store_id) const {
  if (listing_.is_store() && listing_.store_ids.empty()) {
    return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path,
                                       " has files of a store, and is not the PMem of one; "
                                       "segments in PMem need a directory of their own"));
  }
  if (listing_.store_ids.empty() || listing_.store_ids.count(store_id) > 0) return OkStatus();
  return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path, " is the PMem of store ",
                                     Hex(*listing_.store_ids.begin(), 16), ", and not of store ",
                                     Hex(store_id, 16)));
}

// The name of the store is durable before the first segment is.
Status PmemDirectory::NameStore(uint64_t store_id) {
  EMBANK_RETURN_IF_ERROR(
      directory_->Open(StoreIdName(store_id), FileAccess::kCreate, FileCaching::kCached).status());
  EMBANK_RETURN_IF_ERROR(directory_->Sync());
  return directory_->SyncName();
}

uint64_t PmemDirectory::drains() const {
  if (own_files_ == nullptr) return 0;
  const PmemCounters counters = own_files_->counters();
  return counters.drains + counters.msyncs;
}

// A file that stays takes space, and is worth a warning alone.
void PmemDirectory::RemoveOrphans(std::span<const Manifest> kept) {
  std::vector<const Manifest*> manifests;
  for (const Manifest& manifest : kept) manifests.push_back(&manifest);
  for (const std::string& name : listing_.SegmentsBeside(manifests)) {
    const Status status = directory_->Remove(name);
    if (status.ok() || IsNotFound(status)) continue;
    Log(LogLevel::kWarning, StrCat("a file that is not needed stays: ", status.ToString()));
  }
  listing_.segments.clear();
}

}  // namespace embank
