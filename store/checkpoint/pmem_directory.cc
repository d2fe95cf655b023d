#include "store/checkpoint/pmem_directory.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <new>
#include <set>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/hash.h"
#include "base/memory/aligned_buffer.h"
#include "base/no_throw_status.h"
#include "base/pmem/pmem_library.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

uint64_t RowsInPmem(const Manifest& manifest) {
  ByTier<uint64_t> rows;
  for (const SegmentRows& segment : manifest.segments) {
    rows[segment.tier] += segment.CountRows();
  }
  return rows[Tier::kPmem];
}

Status NeedsPmem(const Manifest& opened, const std::string& what) {
  return FailedPreconditionError(StrCat("pmem_path: ", what, "; ", RowsInPmem(opened),
                                        " rows of the store are in PMem, in ",
                                        opened.directories[Tier::kPmem].path));
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

// Reads the header of a segment's file. kDataLoss: it is damaged, and may be any segment's.
StatusOr<SegmentHeader> HeaderOf(Directory* directory, const std::string& name) {
  MemoryBudget unlimited(0);
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                          directory->Open(name, FileAccess::kRead, FileCaching::kDirect));
  EMBANK_ASSIGN_OR_RETURN(const AlignedBuffer block,
                          AlignedBuffer::Create(SystemMemorySource(), &unlimited, kBlockBytes));
  const std::span bytes(block.data(), kBlockBytes);
  EMBANK_RETURN_IF_ERROR(file->Read(0, bytes));
  return DecodeSegmentHeader(bytes);
}

// Whether an error says nothing of the file: there is no descriptor for it, or no right to read it,
// or the device fails.
bool TellsNothing(const Status& error) {
  return IsResourceExhausted(error) || IsPermissionDenied(error) || IsUnavailable(error);
}

// Whether the directory has all segments that the manifest has in PMem, and at least one.
StatusOr<bool> HasSegmentsOf(Directory* pmem, const Manifest& opened) {
  bool has_any = false;
  for (const SegmentRows& rows : opened.segments) {
    if (rows.IsInStoreDirectory()) continue;
    const auto header = HeaderOf(pmem, SegmentName(rows.header.segment_id));
    if (TellsNothing(header.status())) return header.status();
    if (header.ok() ? !(*header == rows.header) : !IsDataLoss(header.status())) return false;
    has_any = has_any || header.ok();
  }
  return has_any;
}

// Whether a manifest proves that the directory is its store's, whose marks do not say so.
// Without rows in it only segments that no checkpoint has are at stake.
StatusOr<bool> IsProven(Directory* pmem, const std::string& path, const StoreListing& found,
                        const Manifest& opened) {
  const LogDirectory& named = opened.directories[Tier::kPmem];
  if (named.id != 0 && found.directory_ids == std::set<uint64_t>{named.id}) return true;
  if (RowsInPmem(opened) > 0) return HasSegmentsOf(pmem, opened);
  if (!found.directory_ids.empty() || named.path != path) return false;
  for (const uint64_t id : found.segments) {
    const auto header = HeaderOf(pmem, SegmentName(id));
    if (TellsNothing(header.status())) return header.status();
    if (!header.ok() || header->store_id != opened.store_id) return false;
  }
  return true;
}

StatusOr<bool> IsProvenByAny(Directory* pmem, const std::string& path, const StoreListing& found,
                             std::span<const Manifest* const> kept) {
  Status error;
  for (const Manifest* const manifest : kept) {
    const StatusOr<bool> is_proven = IsProven(pmem, path, found, *manifest);
    if (is_proven.ok() && *is_proven) return true;
    error.Update(is_proven.status());
  }
  EMBANK_RETURN_IF_ERROR(error);
  return false;
}

// The id that a directory without a mark had. Older directories of the store may have left marks;
// a manifest of an older version does not say which is the last.
uint64_t FormerId(const Manifest& opened, const std::set<uint64_t>& in_store) {
  const uint64_t named = opened.directories[Tier::kPmem].id;
  if (named != 0 || in_store.empty()) return named;
  return *in_store.rbegin();
}

// Names the file that the directory lacks, if there was one.
std::string MarkToMake(const Manifest& opened, const StoreListing& store) {
  const uint64_t id = FormerId(opened, store.directory_ids);
  if (id == 0) return "";
  return StrCat("; it has no ", DirectoryMarkName(id),
                ": if it is the store's, make a file of this name");
}

Status CheckMarks(Directory* pmem, const std::string& path, const StoreListing& found,
                  const Manifest& opened, std::span<const Manifest* const> kept,
                  const StoreListing& store, const std::string& store_path) {
  const std::set<uint64_t>& ids = found.directory_ids;
  const auto is_own = [&](uint64_t id) { return store.directory_ids.count(id) > 0; };
  if (!ids.empty() && std::ranges::all_of(ids, is_own)) return OkStatus();
  const StatusOr<bool> is_proven = IsProvenByAny(pmem, path, found, kept);
  if (!is_proven.ok()) {
    const std::string mark = ids.empty() ? MarkToMake(opened, store) : "";
    return Status(is_proven.status().code(), StrCat(is_proven.status().message(), mark));
  }
  if (*is_proven) return OkStatus();
  if (!ids.empty()) {
    return InvalidArgumentError(
        StrCat("pmem_path: ", pmem->path(), " is the PMem of another store than ", store_path,
               ", which has no ", DirectoryMarkName(*ids.begin()),
               "; an export and a repaired store need PMem of their own; if it is the PMem of ",
               store_path, ", make a file of this name there"));
  }
  if (RowsInPmem(opened) > 0) {
    return NeedsPmem(opened, StrCat(pmem->path(), " is not its PMem, or is not mounted",
                                    MarkToMake(opened, store)));
  }
  if (found.segments.empty()) return OkStatus();
  return InvalidArgumentError(StrCat("pmem_path: ", pmem->path(),
                                     " has files of a store, and is not the PMem of one; "
                                     "segments in PMem need a directory of their own",
                                     MarkToMake(opened, store)));
}

}  // namespace

// Two stores may have the same store id: an export has its source's.
Status CheckIsPmemOf(Directory* pmem, const std::string& path, const Manifest& opened,
                     std::span<const Manifest* const> kept, const StoreListing& store,
                     const std::string& store_path) {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, pmem->List());
  const StoreListing found = StoreListing::Of(names);
  if (!found.checkpoints.empty()) {
    return InvalidArgumentError(StrCat("pmem_path: ", pmem->path(),
                                       " has files of a store, and is one itself; segments in PMem "
                                       "need a directory of their own"));
  }
  EMBANK_RETURN_IF_ERROR(CheckMarks(pmem, path, found, opened, kept, store, store_path));
  const uint32_t next = store.next_checkpoint();
  const bool is_vacant = found.directory_ids.empty() && found.segments.empty();
  if (is_vacant || found.completed.empty() || *found.completed.rbegin() < next) return OkStatus();
  return InvalidArgumentError(StrCat(
      "pmem_path: ", pmem->path(), " is the PMem of checkpoint ", *found.completed.rbegin(), "; ",
      store_path, " has no checkpoint after ", next - 1, ", and is an older copy of the store"));
}

PmemDirectory::PmemDirectory(std::unique_ptr<FileSystem> base, std::unique_ptr<PmemFileSystem> own,
                             FileSystem* files)
    : base_files_(std::move(base)),
      own_files_(std::move(own)),
      files_(files != nullptr ? files : own_files_.get()) {}

PmemDirectory::~PmemDirectory() = default;

StatusOr<std::unique_ptr<PmemDirectory>> PmemDirectory::Open(FileSystem* files,
                                                             const StoreOptions& options,
                                                             CheckpointDirectory* store,
                                                             const OpenedManifests& manifests,
                                                             uint64_t now_ns) {
  const Manifest& opened = manifests.opened();
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
  const Status taken = CatchNoMemory([&]() -> Status {
    EMBANK_RETURN_IF_ERROR(OfPmemPath(directory->Take(options, store->listing(), manifests)));
    return options.read_only ? OkStatus() : directory->MakeMarks(store, opened, now_ns);
  });
  if (taken.ok()) return directory;
  directory->Abandon(store);
  return taken;
}

Status PmemDirectory::Take(const StoreOptions& options, const StoreListing& store,
                           const OpenedManifests& manifests) {
  const Manifest& opened = manifests.opened();
  std::vector<const Manifest*> kept;
  for (const Manifest& manifest : manifests.kept()) kept.push_back(&manifest);
  path_ = AbsolutePath(options.pmem_path);
  EMBANK_RETURN_IF_ERROR(OpenOrMake(options, opened));
  const auto check = [&] {
    return CheckIsPmemOf(directory_.get(), path_, opened, kept, store, options.path);
  };
  // The check precedes the lock, so that nothing is made in another store's directory. It is made
  // again under the lock, when nobody else changes the directory.
  EMBANK_RETURN_IF_ERROR(check());
  EMBANK_RETURN_IF_ERROR(Lock(options));
  EMBANK_RETURN_IF_ERROR(check());
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  listing_ = StoreListing::Of(names);
  return options.read_only ? OkStatus() : CheckMaps();
}

Status PmemDirectory::CheckPaths(const StoreOptions& options) {
  if (options.pmem_path.empty()) return OkStatus();
  std::error_code error;
  if (std::filesystem::exists(options.pmem_path, error) &&
      !std::filesystem::is_directory(options.pmem_path, error)) {
    return InvalidArgumentError(StrCat("pmem_path: ", options.pmem_path, " is not a directory"));
  }
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

// A mount point whose file system is not mounted is a directory, too.
Status PmemDirectory::OpenOrMake(const StoreOptions& options, const Manifest& opened) {
  const bool makes = options.may_create && !options.read_only && RowsInPmem(opened) == 0;
  StatusOr<std::unique_ptr<Directory>> directory =
      makes ? MakeOrOpenDirectory(files_, options.pmem_path, &is_made_)
            : files_->OpenDirectory(options.pmem_path);
  if (IsNotFound(directory.status()) && !makes) {
    const std::string what = StrCat(options.pmem_path, " is not a directory");
    if (RowsInPmem(opened) > 0) return NeedsPmem(opened, what);
    return InvalidArgumentError(StrCat("pmem_path: ", what));
  }
  EMBANK_RETURN_IF_ERROR(directory.status());
  directory_ = *std::move(directory);
  lock_ = std::make_unique<StoreLock>(directory_.get());
  return OkStatus();
}

Status PmemDirectory::Lock(const StoreOptions& options) {
  if (options.read_only) return lock_->LockToRead("pmem_path");
  return lock_->LockToChange(/*may_make_file=*/true, "pmem_path");
}

// A full device is no reason to refuse the rows that are there: new ones go to the SSD.
Status PmemDirectory::CheckMaps() {
  if (own_files_ == nullptr) return OkStatus();
  const StatusOr<PmemKind> kind = own_files_->KindOf(directory_.get());
  if (kind.ok()) kind_ = NameOf(*kind);
  if (kind.ok() || IsResourceExhausted(kind.status())) return OkStatus();
  return kind.status();
}

// The store's directory names the id first: a directory that has an id has a store. It is durable
// before the first segment is.
Status PmemDirectory::MakeMarks(CheckpointDirectory* store, const Manifest& opened,
                                uint64_t now_ns) {
  const std::set<uint64_t> in_store = store->listing().directory_ids;
  std::set<uint64_t> ids = listing_.directory_ids;
  const bool has_own = !ids.empty();
  if (!has_own) {
    const uint64_t where = std::hash<std::string>()(path_);
    const bool is_known = listing_.is_store();
    const uint64_t former = FormerId(opened, in_store);
    ids.insert(is_known && former != 0 ? former : HashKey(HashKey(opened.store_id, now_ns), where));
  }
  for (const uint64_t id : ids) {
    if (in_store.count(id) > 0) continue;
    marked_in_store_.insert(id);  // a mark that fails may be there all the same
    Status made = MakeMark(store->files(), DirectoryMarkName(id));
    // A crash before this directory had its id may have left the name.
    if (!made.ok() && !IsAlreadyExists(made)) return made;
    EMBANK_RETURN_IF_ERROR(store->files()->Sync());
    if (has_own)
      Log(LogLevel::kWarning, StrCat(DirectoryMarkName(id), " was missing, and is made again"));
  }
  return has_own ? OkStatus() : OfPmemPath(MakeOwnMark(*ids.begin()));
}

Status PmemDirectory::MakeOwnMark(uint64_t id) {
  marked_here_.insert(id);
  EMBANK_RETURN_IF_ERROR(MakeMark(directory_.get(), DirectoryMarkName(id)));
  EMBANK_RETURN_IF_ERROR(directory_->Sync());
  EMBANK_RETURN_IF_ERROR(directory_->SyncName());
  listing_.directory_ids.insert(id);
  return OkStatus();
}

// Where a mark stays here, the store keeps its own: the directory would be another store's.
void PmemDirectory::Abandon(CheckpointDirectory* store) {
  for (const uint64_t id : marked_here_) {
    const Status removed = CatchNoMemory([&] { return directory_->Remove(DirectoryMarkName(id)); });
    if (!removed.ok() && !IsNotFound(removed)) marked_in_store_.erase(id);
  }
  for (const uint64_t id : marked_in_store_) {
    CatchNoMemory([&] {
      RemoveUnneeded(store->files(), DirectoryMarkName(id));
      return OkStatus();
    }).IgnoreError();
  }
  if (directory_ == nullptr) return;
  if (lock_ != nullptr) lock_->RemoveMade();
  if (is_made_) CatchNoMemory([this] { return directory_->RemoveItself(); }).IgnoreError();
}

Status PmemDirectory::CheckInPlace(FunctionRef<std::set<std::string>()> names) const {
  EMBANK_ASSIGN_OR_RETURN(const bool is_held, lock_->HoldsDirectory());
  if (!is_held) {
    return NotFoundError(
        StrCat(directory_->PathOf(StoreLock::kFileName),
               " was removed or replaced, and somebody else may use the directory"));
  }
  const std::set<std::string> before = names();
  const StatusOr<std::vector<std::string>> listed = directory_->List();
  if (IsNotFound(listed.status())) {
    return NotFoundError(StrCat(directory_->path(), " was removed"));
  }
  // Without a descriptor nobody can say; the next checkpoint looks again.
  if (!listed.ok()) return OkStatus();
  const std::set<std::string> there(listed->begin(), listed->end());
  for (const std::string& name : names()) {
    if (before.count(name) == 0 || there.count(name) > 0) continue;
    return NotFoundError(StrCat(directory_->PathOf(name), " was removed"));
  }
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
    if (may_remove && RemoveUnneeded(directory_.get(), name)) continue;
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
  try {
    const Status marked = NoteCompleted(directory_.get(), checkpoint, &listing_.completed);
    if (marked.ok()) return;
    Log(LogLevel::kWarning, StrCat("the PMem does not say that checkpoint ", checkpoint,
                                   " was completed: ", marked.ToString()));
  } catch (const std::bad_alloc&) {
  }
}

}  // namespace embank
