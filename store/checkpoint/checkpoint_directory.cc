#include "store/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <charconv>
#include <iterator>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

constexpr char kLockName[] = "LOCK";
constexpr char kManifestPrefix[] = "MANIFEST-";
constexpr char kCompletedPrefix[] = "COMPLETED-";
constexpr char kHeatPrefix[] = "HEAT-";
constexpr char kSegmentPrefix[] = "segment-";
constexpr char kDraftSuffix[] = ".new";

// The number behind a prefix; false: the name is of something else.
template <typename Number>
bool ParseName(std::string_view name, std::string_view prefix, Number* number) {
  if (!name.starts_with(prefix) || name.size() != prefix.size() + 2 * sizeof(Number)) return false;
  const char* const end = name.data() + name.size();
  const auto [parsed, error] = std::from_chars(name.data() + prefix.size(), end, *number, 16);
  return error == std::errc() && parsed == end;
}

std::string NameOf(const char* prefix, uint32_t checkpoint) {
  return StrCat(prefix, Hex(checkpoint, 8));
}

Status NoStoreAt(const char* argument, const std::string& path) {
  return NotFoundError(StrCat(argument, ": ", path, " is not a store"));
}

Status OpenElsewhere(const char* argument, const std::string& path, bool shared) {
  return UnavailableError(StrCat(
      argument, ": ", path, " is open already", shared ? " to be changed" : "",
      ", here or in another process, which has the directory and its ", kLockName, " locked"));
}

StatusOr<std::vector<std::string>> NamesIn(FileSystem* files, const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Directory> directory, files->OpenDirectory(path));
  return directory->List();
}

}  // namespace

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::Open(FileSystem* files,
                                                                         const std::string& path,
                                                                         bool may_create) {
  bool is_made = false;
  if (may_create) {
    const Status made = files->CreateDirectory(path);
    if (!made.ok() && !IsAlreadyExists(made)) return made;
    is_made = made.ok();
  }
  StatusOr<std::unique_ptr<Directory>> opened = files->OpenDirectory(path);
  if (!may_create && IsNotFound(opened.status())) return NoStoreAt("path", path);
  EMBANK_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<CheckpointDirectory> directory(new CheckpointDirectory(*std::move(opened)));
  directory->is_made_ = is_made;
  EMBANK_RETURN_IF_ERROR(directory->LockToChange(may_create));
  EMBANK_RETURN_IF_ERROR(directory->LookAround());
  EMBANK_RETURN_IF_ERROR(directory->CheckHasManifest());
  if (!directory->checkpoints_.empty()) {
    // A process that was killed may have left a manifest whose name would not outlive a crash.
    if (Seeded(SeededBug::kNoSyncAtOpening)) return directory;
    EMBANK_RETURN_IF_ERROR(directory->directory_->Sync());
    return directory;
  }
  if (!may_create) return NoStoreAt("path", path);
  // Its own name, too, has to outlive a crash.
  const Status synced = directory->directory_->SyncName();
  if (synced.ok()) return directory;
  // No later sync makes up for one that failed: who comes next makes the name again.
  if (directory->is_made_) directory->Abandon();
  return synced;
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::OpenVacant(
    FileSystem* files, const std::string& path) {
  const Status occupied = AlreadyExistsError(
      StrCat("directory: ", path, " is not empty; a store is made in one that is, or that ",
             "does not exist"));
  const StatusOr<std::vector<std::string>> names = NamesIn(files, path);
  if (!names.ok() && !IsNotFound(names.status())) return names.status();
  if (names.ok() && std::any_of(names->begin(), names->end(),
                                [](const std::string& name) { return name != kLockName; })) {
    return occupied;
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointDirectory> directory, Open(files, path, true));
  // Somebody else may have made one in between.
  if (!directory->checkpoints_.empty()) return occupied;
  return directory;
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::OpenToRead(
    FileSystem* files, const std::string& path, const char* argument) {
  StatusOr<std::unique_ptr<Directory>> opened = files->OpenDirectory(path);
  if (IsNotFound(opened.status())) return NoStoreAt(argument, path);
  EMBANK_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<CheckpointDirectory> directory(new CheckpointDirectory(*std::move(opened)));
  EMBANK_RETURN_IF_ERROR(directory->LockToRead(argument));
  EMBANK_RETURN_IF_ERROR(directory->LookAround());
  EMBANK_RETURN_IF_ERROR(directory->CheckIsStore(argument));
  return directory;
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::OpenToLook(
    FileSystem* files, const std::string& path, const char* argument) {
  StatusOr<std::unique_ptr<Directory>> opened = files->OpenDirectory(path);
  if (IsNotFound(opened.status())) return NoStoreAt(argument, path);
  EMBANK_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<CheckpointDirectory> directory(new CheckpointDirectory(*std::move(opened)));
  EMBANK_RETURN_IF_ERROR(directory->LookAround());
  return directory;
}

StatusOr<bool> CheckpointDirectory::LookAgain() {
  const std::vector<uint32_t> before = checkpoints_;
  EMBANK_RETURN_IF_ERROR(LookAround());
  if (before.empty() || checkpoints_.empty()) return before.empty() != checkpoints_.empty();
  return before.back() != checkpoints_.back();
}

Status CheckpointDirectory::CheckIsStore(const char* argument) const {
  if (!checkpoints_.empty() || !segments_.empty() || !completed_.empty()) return OkStatus();
  return NoStoreAt(argument, directory_->path());
}

std::string CheckpointDirectory::ManifestName(uint32_t checkpoint) {
  return NameOf(kManifestPrefix, checkpoint);
}

std::string CheckpointDirectory::HeatName(uint32_t checkpoint) {
  return NameOf(kHeatPrefix, checkpoint);
}

Status CheckpointDirectory::MakeLockFile() {
  const StatusOr<std::unique_ptr<File>> file =
      directory_->Open(kLockName, FileAccess::kCreate, FileCaching::kCached);
  return IsAlreadyExists(file.status()) ? OkStatus() : file.status();
}

// LOCK can be removed by anybody who may write to the directory; the directory itself can not.
Status CheckpointDirectory::LockDirectory(bool shared, const char* argument) {
  StatusOr<std::unique_ptr<FileLock>> lock = directory_->LockItself(shared);
  if (IsUnimplemented(lock.status())) return OkStatus();
  if (IsUnavailable(lock.status())) {
    return OpenElsewhere(argument, directory_->path(), shared);
  }
  EMBANK_RETURN_IF_ERROR(lock.status());
  directory_lock_ = *std::move(lock);
  return OkStatus();
}

// kNotFound: there is no such file.
Status CheckpointDirectory::LockFile(bool shared, const char* argument) {
  StatusOr<std::unique_ptr<FileLock>> lock = directory_->Lock(kLockName, shared);
  if (IsUnavailable(lock.status())) {
    return OpenElsewhere(argument, directory_->path(), shared);
  }
  EMBANK_RETURN_IF_ERROR(lock.status());
  lock_ = *std::move(lock);
  // Who replaced the file meanwhile may have locked the new one.
  return CheckLock();
}

Status CheckpointDirectory::LockToChange(bool may_create) {
  EMBANK_RETURN_IF_ERROR(LockDirectory(/*shared=*/false, "path"));
  if (may_create) EMBANK_RETURN_IF_ERROR(MakeLockFile());
  Status locked = LockFile(/*shared=*/false, "path");
  if (!IsNotFound(locked)) return locked;
  EMBANK_RETURN_IF_ERROR(LookAround());
  EMBANK_RETURN_IF_ERROR(CheckHasManifest());
  if (checkpoints_.empty()) return NoStoreAt("path", directory_->path());
  Log(LogLevel::kWarning, StrCat(PathOf(kLockName), " was missing, and is made again"));
  EMBANK_RETURN_IF_ERROR(MakeLockFile());
  return LockFile(/*shared=*/false, "path");
}

Status CheckpointDirectory::LockToRead(const char* argument) {
  EMBANK_RETURN_IF_ERROR(LockDirectory(/*shared=*/true, argument));
  Status locked = LockFile(/*shared=*/true, argument);
  if (!IsNotFound(locked)) return locked;
  // Who opens it to change it has to lock the directory too.
  if (directory_lock_ != nullptr) return OkStatus();
  EMBANK_RETURN_IF_ERROR(LookAround());
  EMBANK_RETURN_IF_ERROR(CheckIsStore(argument));
  return FailedPreconditionError(
      StrCat(argument, ": ", directory_->path(), " has no ", kLockName,
             ", and its file system does not lock directories; make an empty file of this "
             "name, or open the store once to change it"));
}

Status CheckpointDirectory::CheckLock() const {
  EMBANK_ASSIGN_OR_RETURN(const bool is_in_place, lock_->IsInPlace());
  if (is_in_place) return OkStatus();
  return UnavailableError(
      StrCat(PathOf(kLockName),
             " is not the file that this store has locked: it was removed or replaced, and "
             "somebody else may have the store open; nothing was written. Put that file "
             "back, or close the store and open it again"));
}

Status CheckpointDirectory::LookAround() {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  checkpoints_.clear();
  segments_.clear();
  heats_.clear();
  drafts_.clear();
  completed_.clear();
  for (const std::string& name : names) {
    uint32_t checkpoint = 0;
    uint64_t segment = 0;
    if (ParseName(name, kManifestPrefix, &checkpoint)) checkpoints_.push_back(checkpoint);
    if (name.starts_with(kManifestPrefix) && name.ends_with(kDraftSuffix)) {
      drafts_.push_back(name);
    }
    if (ParseName(name, kCompletedPrefix, &checkpoint)) completed_.insert(checkpoint);
    if (ParseName(name, kHeatPrefix, &checkpoint)) heats_[checkpoint] = 0;
    if (ParseName(name, kSegmentPrefix, &segment)) segments_.push_back(segment);
  }
  for (const uint64_t segment : segments_) {
    next_segment_id_ = std::max(next_segment_id_, segment + 1);
  }
  std::sort(checkpoints_.begin(), checkpoints_.end());
  std::sort(segments_.begin(), segments_.end());
  std::sort(drafts_.begin(), drafts_.end());
  return OkStatus();
}

Status CheckpointDirectory::CheckHasManifest() const {
  if (!checkpoints_.empty() || (segments_.empty() && completed_.empty())) return OkStatus();
  if (!segments_.empty()) {
    return DataLossError(StrCat("path: ", directory_->path(), " has ", segments_.size(),
                                " segments of a store, and no manifest"));
  }
  return DataLossError(StrCat("path: ", directory_->path(), " is a store that had checkpoint ",
                              *completed_.rbegin(), ", and has no manifest"));
}

uint32_t CheckpointDirectory::next_checkpoint() const {
  uint32_t newest = checkpoints_.empty() ? 0 : checkpoints_.back();
  if (!completed_.empty()) newest = std::max(newest, *completed_.rbegin());
  return newest == UINT32_MAX ? newest : newest + 1;
}

StatusOr<Manifest> CheckpointDirectory::Load(uint32_t checkpoint) const {
  const std::string name = ManifestName(checkpoint);
  const std::string path = PathOf(name);
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::byte> bytes,
                          ReadWholeFile(directory_.get(), name, kManifestBytesMax));
  StatusOr<Manifest> manifest = DecodeManifest(bytes);
  if (!manifest.ok()) {
    return Status(manifest.status().code(), StrCat(path, ": ", manifest.status().message()));
  }
  if (manifest->checkpoint == checkpoint) return manifest;
  return DataLossError(StrCat(path, ": it is the manifest of checkpoint ", manifest->checkpoint));
}

// A crash takes no manifest away whose checkpoint was completed, and a store removes it only when a
// newer one was.
Status CheckpointDirectory::LoadMissing(uint32_t checkpoint) const {
  return DataLossError(StrCat(
      PathOf(ManifestName(checkpoint)), ": the manifest is missing, though checkpoint ", checkpoint,
      " was completed", checkpoints_.empty() ? "; the directory has no manifest" : ""));
}

std::vector<KeptCheckpoint> CheckpointDirectory::LoadKept() const {
  std::vector<KeptCheckpoint> kept;
  const bool has_any = !checkpoints_.empty();
  if (!completed_.empty() && !Seeded(SeededBug::kGapNotSeen) &&
      (!has_any || checkpoints_.back() < *completed_.rbegin())) {
    const uint32_t lost = *completed_.rbegin();
    kept.push_back({lost, LoadMissing(lost)});
    if (has_any) kept.push_back({checkpoints_.back(), Load(checkpoints_.back())});
    return kept;
  }
  if (!has_any) return kept;
  const uint32_t newest = checkpoints_.back();
  kept.push_back({newest, Load(newest)});
  uint32_t previous = newest;
  if (kept[0].manifest.ok()) {
    previous = kept[0].manifest->previous;
  } else if (checkpoints_.size() > 1) {
    previous = checkpoints_[checkpoints_.size() - 2];
  }
  if (previous != newest) kept.push_back({previous, Load(previous)});
  return kept;
}

Status CheckpointDirectory::Keep(const Manifest& manifest, bool* in_doubt) {
  *in_doubt = false;
  EMBANK_RETURN_IF_ERROR(doubt_);
  EMBANK_RETURN_IF_ERROR(CheckLock());
  const std::vector<std::byte> bytes = EncodeManifest(manifest);
  if (bytes.size() > kManifestBytesMax) {
    return ResourceExhaustedError(
        StrCat("the manifest has ", bytes.size(), " bytes, at most ", kManifestBytesMax));
  }
  const std::string name = ManifestName(manifest.checkpoint);
  const std::set<uint32_t> needed = {manifest.checkpoint, manifest.previous};
  checkpoints_.reserve(checkpoints_.size() + 1);
  const Status kept = ReplaceFile(directory_.get(), name, bytes, in_doubt);
  // The first: who opens the store next makes it anew. Later ones stay, for a crash might bring
  // them back.
  if (!kept.ok() && checkpoints_.empty()) directory_->Remove(name).IgnoreError();
  if (*in_doubt && !Seeded(SeededBug::kDoubtForgotten)) {
    doubt_ = kept;
    doubted_checkpoint_ = manifest.checkpoint;
  }
  EMBANK_RETURN_IF_ERROR(kept);
  checkpoints_.push_back(manifest.checkpoint);
  // The manifest is there, whatever becomes of others: the next one tries again.
  try {
    MarkCompleted(manifest.checkpoint);
    KeepOnly(needed);
  } catch (const std::bad_alloc&) {
  }
  // The sync may have dropped names of which others think that a later one makes them durable.
  doubt_ = directory_->Sync();
  return OkStatus();
}

// Only of a checkpoint whose manifest this has made durable under its name: one that was found may
// be there no more after a crash. Without the mark the checkpoint is whole, but nobody would notice
// that it is lost.
void CheckpointDirectory::MarkCompleted(uint32_t checkpoint) {
  if (completed_.size() == 1 && completed_.count(checkpoint) == 1) return;
  const std::string name = NameOf(kCompletedPrefix, checkpoint);
  Status marked = NotFoundError("there is no mark yet");
  if (!completed_.empty() && completed_.count(checkpoint) == 0) {
    marked = directory_->Rename(NameOf(kCompletedPrefix, *completed_.rbegin()), name);
    if (marked.ok()) completed_.erase(std::prev(completed_.end()));
  }
  if (IsNotFound(marked)) {
    marked = directory_->Open(name, FileAccess::kCreate, FileCaching::kCached).status();
  }
  if (!marked.ok() && !IsAlreadyExists(marked)) {
    Log(LogLevel::kWarning,
        StrCat("a loss of checkpoint ", checkpoint, " would not be noticed: ", marked.ToString()));
    return;
  }
  for (const uint32_t other : completed_) {
    if (other != checkpoint) Remove(NameOf(kCompletedPrefix, other));
  }
  completed_ = {checkpoint};
}

uint64_t CheckpointDirectory::HeatBytes() const {
  uint64_t sum = 0;
  for (const auto& [checkpoint, bytes] : heats_) sum += bytes;
  return sum;
}

void CheckpointDirectory::KeepHeatOf(const std::multiset<uint32_t>& checkpoints) {
  const auto is_kept = [&](uint32_t checkpoint) {
    return checkpoints.count(checkpoint) > 0 || checkpoint == doubted_checkpoint_ ||
           std::count(checkpoints_.begin(), checkpoints_.end(), checkpoint) > 0;
  };
  // What is not removed for want of memory is so the next time.
  try {
    for (const auto& [checkpoint, bytes] : heats_) {
      if (!is_kept(checkpoint)) Remove(HeatName(checkpoint));
    }
    std::erase_if(heats_, [&](const auto& heat) { return !is_kept(heat.first); });
  } catch (const std::bad_alloc&) {
  }
}

void CheckpointDirectory::KeepOnly(const std::set<uint32_t>& checkpoints) {
  for (const uint32_t checkpoint : checkpoints_) {
    if (checkpoints.count(checkpoint) == 0) Remove(ManifestName(checkpoint));
  }
  std::erase_if(checkpoints_,
                [&](uint32_t checkpoint) { return checkpoints.count(checkpoint) == 0; });
}

std::vector<std::string> CheckpointDirectory::SegmentsBeside(
    std::span<const Manifest* const> kept) const {
  std::set<uint64_t> known;
  for (const Manifest* const manifest : kept) {
    for (const SegmentRows& rows : manifest->segments) known.insert(rows.header.segment_id);
  }
  std::vector<std::string> names;
  for (const uint64_t segment : segments_) {
    if (known.count(segment) == 0) names.push_back(SegmentName(segment));
  }
  return names;
}

std::vector<std::string> CheckpointDirectory::ManifestsBeside(
    std::span<const uint32_t> kept) const {
  std::vector<std::string> names = drafts_;
  for (const uint32_t checkpoint : checkpoints_) {
    if (std::find(kept.begin(), kept.end(), checkpoint) != kept.end()) continue;
    names.push_back(ManifestName(checkpoint));
  }
  return names;
}

std::vector<std::string> CheckpointDirectory::HeatBeside(
    std::span<const Manifest* const> kept) const {
  std::vector<std::string> names;
  for (const auto& heat : heats_) {
    const bool is_kept = std::any_of(kept.begin(), kept.end(), [&](const Manifest* manifest) {
      return manifest->checkpoint == heat.first && manifest->heat.bytes > 0;
    });
    if (!is_kept) names.push_back(HeatName(heat.first));
  }
  return names;
}

void CheckpointDirectory::RemoveOrphans(std::span<const Manifest> kept) {
  std::vector<uint32_t> checkpoints;
  std::vector<const Manifest*> manifests;
  for (const Manifest& manifest : kept) {
    checkpoints.push_back(manifest.checkpoint);
    manifests.push_back(&manifest);
  }
  for (const std::string& name : SegmentsBeside(manifests)) Remove(name);
  for (const std::string& name : HeatBeside(manifests)) Remove(name);
  for (const std::string& name : ManifestsBeside(checkpoints)) Remove(name);
  checkpoints_ = std::move(checkpoints);
  std::sort(checkpoints_.begin(), checkpoints_.end());
  segments_.clear();
  heats_.clear();
  for (const Manifest& manifest : kept) {
    if (manifest.heat.bytes > 0) heats_[manifest.checkpoint] = manifest.heat.bytes;
  }
  drafts_.clear();
}

void CheckpointDirectory::Abandon() {
  Remove(kLockName);
  if (is_made_) directory_->RemoveItself().IgnoreError();
}

// It is nobody's: that it stays is worth a word, no more.
void CheckpointDirectory::Remove(const std::string& name) {
  const Status status = directory_->Remove(name);
  if (status.ok() || IsNotFound(status)) return;
  Log(LogLevel::kWarning, StrCat("a file that is not needed stays: ", status.ToString()));
}

}  // namespace embank
