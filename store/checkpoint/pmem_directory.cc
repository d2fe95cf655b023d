#include "store/checkpoint/pmem_directory.h"

#include <algorithm>
#include <array>
#include <bit>
#include <filesystem>
#include <functional>
#include <iterator>
#include <new>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/hash.h"
#include "base/pmem/pmem_library.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

uint64_t RowsInPmem(const Manifest& manifest) {
  std::array<uint64_t, kTiers> rows = {};
  for (const SegmentRows& segment : manifest.segments) {
    uint64_t& of_tier = rows[static_cast<size_t>(segment.tier)];
    for (const uint64_t word : segment.bits) of_tier += static_cast<uint64_t>(std::popcount(word));
  }
  return rows[static_cast<size_t>(Tier::kPmem)];
}

Status NeedsPmem(const Manifest& opened, const std::string& what) {
  return FailedPreconditionError(StrCat("pmem_path: ", what, "; ", RowsInPmem(opened),
                                        " rows of the store are in PMem, in ", opened.pmem_path));
}

// Names the option in the status of a file. The system also says "no such file" of a missing
// parent, and where a directory takes no files, as below /proc: the option is wrong then.
Status OfPmemPath(const Status& status) {
  constexpr std::string_view kOption = "pmem_path: ";
  if (status.ok() || status.message().substr(0, kOption.size()) == kOption) return status;
  const StatusCode code = IsNotFound(status) ? StatusCode::kInvalidArgument : status.code();
  return Status(code, StrCat(kOption, status.message()));
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
                                                             CheckpointDirectory* store,
                                                             const Manifest& opened,
                                                             uint64_t now_ns) {
  if (options.pmem_path.empty()) {
    if (RowsInPmem(opened) > 0) return NeedsPmem(opened, "none was given");
    return std::unique_ptr<PmemDirectory>();
  }
  std::unique_ptr<FileSystem> base;
  std::unique_ptr<PmemFileSystem> own;
  if (files == nullptr) {
    // A map that is only read needs no drain.
    PmemLibrary library;
    if (!options.read_only) {
      EMBANK_ASSIGN_OR_RETURN(library, LoadPmemLibrary());
    }
    base = MakePosixFileSystem({});
    own = MakePmemFileSystem(base.get(), library);
  }
  std::unique_ptr<PmemDirectory> directory(
      new PmemDirectory(std::move(base), std::move(own), files));
  EMBANK_RETURN_IF_ERROR(OfPmemPath(directory->OpenAndLock(options, opened, store->listing())));
  EMBANK_RETURN_IF_ERROR(directory->CheckStore(options, store->listing()));
  if (options.read_only) return directory;
  EMBANK_RETURN_IF_ERROR(directory->CheckMaps());
  if (directory->listing_.pmem_ids.empty()) {
    const uint64_t where = std::hash<std::string>()(directory->path_);
    const uint64_t id = HashKey(HashKey(opened.store_id, now_ns), where);
    EMBANK_RETURN_IF_ERROR(directory->MakeId(store, id));
  }
  return directory;
}

Status PmemDirectory::CheckPaths(const StoreOptions& options) {
  if (options.pmem_path.empty()) return OkStatus();
  std::error_code error;
  const auto place_of = [&](const std::string& path) {
    return std::filesystem::weakly_canonical(AbsolutePath(path) + "/.", error);
  };
  const bool is_one = place_of(options.pmem_path) == place_of(options.path) ||
                      std::filesystem::equivalent(options.pmem_path, options.path, error);
  if (!is_one) return OkStatus();
  return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path,
                                     " is the directory of path, ", options.path,
                                     "; PMem needs a directory of its own"));
}

// A mount point whose file system is not mounted is a directory, too. Nothing is made in it.
Status PmemDirectory::CheckHasRows(const Manifest& opened, const StoreListing& store) const {
  if (RowsInPmem(opened) == 0) return OkStatus();
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  if (!StoreListing::Of(names).pmem_ids.empty()) return OkStatus();
  const uint64_t id = store.pmem_ids.empty() ? 0 : *store.pmem_ids.rbegin();
  return NeedsPmem(opened, StrCat(directory_->path(),
                                  " is not its PMem, or is not mounted: it has no ", PmemName(id)));
}

Status PmemDirectory::OpenAndLock(const StoreOptions& options, const Manifest& opened,
                                  const StoreListing& store) {
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
  EMBANK_RETURN_IF_ERROR(CheckHasRows(opened, store));
  lock_ = std::make_unique<StoreLock>(directory_.get());
  if (options.read_only) {
    EMBANK_RETURN_IF_ERROR(lock_->LockToRead("pmem_path"));
  } else {
    EMBANK_RETURN_IF_ERROR(lock_->LockToChange(/*may_make_file=*/true, "pmem_path"));
  }
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  listing_ = StoreListing::Of(names);
  return OkStatus();
}

// A full device is no reason to refuse the rows that are there: new ones go to the SSD.
Status PmemDirectory::CheckMaps() {
  if (own_files_ == nullptr) return OkStatus();
  const StatusOr<PmemKind> kind = own_files_->KindOf(directory_.get());
  if (kind.ok()) kind_ = NameOf(*kind);
  if (kind.ok() || IsResourceExhausted(kind.status())) return OkStatus();
  return OfPmemPath(kind.status());
}

// Two stores may have the same store id: an export has its source's.
Status PmemDirectory::CheckStore(const StoreOptions& options, const StoreListing& store) const {
  const std::set<uint64_t>& ids = listing_.pmem_ids;
  if (ids.empty()) {
    if (!listing_.is_store()) return OkStatus();
    return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path,
                                       " has files of a store, and is not the PMem of one; "
                                       "segments in PMem need a directory of their own"));
  }
  const auto is_own = [&](uint64_t id) { return store.pmem_ids.count(id) > 0; };
  if (!std::all_of(ids.begin(), ids.end(), is_own)) {
    return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path,
                                       " is the PMem of another store than ", options.path,
                                       ", which has no ", PmemName(*ids.begin()),
                                       "; an export and a repaired store need PMem of their own"));
  }
  const uint32_t next = store.next_checkpoint();
  if (listing_.completed.empty() || *listing_.completed.rbegin() < next) return OkStatus();
  return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path,
                                     " is the PMem of checkpoint ", *listing_.completed.rbegin(),
                                     "; ", options.path, " has no checkpoint after ", next - 1,
                                     ", and is an older copy of the store"));
}

// The store's directory names the id first: a directory that has an id has a store. It is durable
// before the first segment is.
Status PmemDirectory::MakeId(CheckpointDirectory* store, uint64_t id) {
  EMBANK_RETURN_IF_ERROR(store->AddPmem(id));
  EMBANK_RETURN_IF_ERROR(
      directory_->Open(PmemName(id), FileAccess::kCreate, FileCaching::kCached).status());
  EMBANK_RETURN_IF_ERROR(directory_->Sync());
  EMBANK_RETURN_IF_ERROR(directory_->SyncName());
  listing_.pmem_ids.insert(id);
  return OkStatus();
}

uint64_t PmemDirectory::drains() const {
  if (own_files_ == nullptr) return 0;
  const PmemCounters counters = own_files_->counters();
  return counters.drains + counters.msyncs;
}

uint64_t PmemDirectory::RemoveOrphans(std::span<const Manifest> kept, bool may_remove) {
  std::vector<const Manifest*> manifests;
  for (const Manifest& manifest : kept) manifests.push_back(&manifest);
  uint64_t stay_bytes = 0;
  for (const std::string& name : listing_.SegmentsBeside(manifests, Tier::kPmem)) {
    if (may_remove && Remove(name)) continue;
    const auto file = directory_->Open(name, FileAccess::kRead, FileCaching::kCached);
    const StatusOr<uint64_t> bytes = file.ok() ? (*file)->SizeBytes() : 0;
    stay_bytes += bytes.ok() ? *bytes : 0;
  }
  listing_.segments.clear();
  return stay_bytes;
}

// The mark comes after the manifest, and without a sync: a crash may leave an older one, which
// refuses fewer copies.
void PmemDirectory::MarkCompleted(uint32_t checkpoint) {
  std::set<uint32_t>& completed = listing_.completed;
  try {
    const std::string name = CompletedName(checkpoint);
    Status marked = NotFoundError("there is no mark yet");
    if (!completed.empty()) {
      marked = directory_->Rename(CompletedName(*completed.rbegin()), name);
      if (marked.ok()) completed.erase(std::prev(completed.end()));
    }
    if (!marked.ok()) {
      marked = directory_->Open(name, FileAccess::kCreate, FileCaching::kCached).status();
    }
    if (!marked.ok() && !IsAlreadyExists(marked)) {
      Log(LogLevel::kWarning, StrCat("the PMem does not say that checkpoint ", checkpoint,
                                     " was completed: ", marked.ToString()));
      return;
    }
    for (const uint32_t other : completed) Remove(CompletedName(other));
    completed = {checkpoint};
  } catch (const std::bad_alloc&) {
  }
}

// A file that stays takes space, and is worth a warning alone.
bool PmemDirectory::Remove(const std::string& name) {
  const Status status = directory_->Remove(name);
  if (status.ok() || IsNotFound(status)) return true;
  Log(LogLevel::kWarning, StrCat("a file that is not needed stays: ", status.ToString()));
  return false;
}

}  // namespace embank
