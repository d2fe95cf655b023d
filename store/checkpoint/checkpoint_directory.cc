#include "store/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <set>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "base/threads/log.h"

namespace embank {
namespace {

Status NoStoreAt(const char* argument, const std::string& path) {
  return NotFoundError(StrCat(argument, ": ", path, " is not a store"));
}

StatusOr<std::vector<std::string>> NamesIn(FileSystem* files, const std::string& path) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Directory> directory, files->OpenDirectory(path));
  return directory->List();
}

}  // namespace

bool RemoveUnneeded(Directory* directory, const std::string& name) {
  const Status status = directory->Remove(name);
  if (status.ok() || IsNotFound(status)) return true;
  Log(LogLevel::kWarning, StrCat("a file that is not needed stays: ", status.ToString()));
  return false;
}

Status NoteCompleted(Directory* directory, uint32_t checkpoint, std::set<uint32_t>* completed) {
  if (completed->size() == 1 && completed->count(checkpoint) == 1) return OkStatus();
  const std::string name = CompletedName(checkpoint);
  Status marked = NotFoundError("there is no mark yet");
  if (!completed->empty() && completed->count(checkpoint) == 0) {
    marked = directory->Rename(CompletedName(*completed->rbegin()), name);
    if (marked.ok()) completed->erase(std::prev(completed->end()));
  }
  if (IsNotFound(marked)) marked = MakeMark(directory, name);
  if (!marked.ok() && !IsAlreadyExists(marked)) return marked;
  for (const uint32_t other : *completed) {
    if (other != checkpoint) RemoveUnneeded(directory, CompletedName(other));
  }
  *completed = {checkpoint};
  return OkStatus();
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::Open(FileSystem* files,
                                                                         const std::string& path,
                                                                         bool may_create) {
  bool is_made = false;
  StatusOr<std::unique_ptr<Directory>> opened =
      may_create ? MakeOrOpenDirectory(files, path, &is_made) : files->OpenDirectory(path);
  if (!may_create && IsNotFound(opened.status())) return NoStoreAt("path", path);
  EMBANK_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<Directory> held = *std::move(opened);
  std::unique_ptr<CheckpointDirectory> directory;
  Status entered = CatchNoMemory([&] {
    directory.reset(new CheckpointDirectory(&held));
    directory->is_made_ = is_made;
    return directory->Enter(may_create);
  });
  if (entered.ok()) return directory;
  if (directory != nullptr) {
    directory->Abandon();
  } else if (is_made) {
    CatchNoMemory([&] { return held->RemoveItself(); }).IgnoreError();
  }
  return entered;
}

Status CheckpointDirectory::Enter(bool may_create) {
  EMBANK_RETURN_IF_ERROR(LockToChange(may_create));
  EMBANK_RETURN_IF_ERROR(ListFiles());
  EMBANK_RETURN_IF_ERROR(CheckHasManifest());
  if (!listing_.checkpoints.empty()) {
    // A process that was killed may have left a manifest whose name would not outlive a crash.
    return Seeded(SeededBug::kNoSyncAtOpening) ? OkStatus() : directory_->Sync();
  }
  if (!may_create) return NoStoreAt("path", directory_->path());
  is_new_ = true;
  // Its own name, too, has to outlive a crash. A later sync does not make up for a failed one, so
  // the next opening makes the name again.
  return directory_->SyncName();
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::OpenVacant(
    FileSystem* files, const std::string& path) {
  const Status occupied = AlreadyExistsError(
      StrCat("directory: ", path, " is not empty; a store is made in one that is, or that ",
             "does not exist"));
  const StatusOr<std::vector<std::string>> names = NamesIn(files, path);
  if (!names.ok() && !IsNotFound(names.status())) return names.status();
  if (names.ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
        return name != StoreLock::kFileName;
      })) {
    return occupied;
  }
  EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<CheckpointDirectory> directory, Open(files, path, true));
  // Another process may have made one in between.
  if (!directory->listing_.checkpoints.empty()) return occupied;
  return directory;
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::OpenToRead(
    FileSystem* files, const std::string& path, const char* argument) {
  StatusOr<std::unique_ptr<Directory>> opened = files->OpenDirectory(path);
  if (IsNotFound(opened.status())) return NoStoreAt(argument, path);
  EMBANK_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<CheckpointDirectory> directory(new CheckpointDirectory(&*opened));
  EMBANK_RETURN_IF_ERROR(directory->LockToRead(argument));
  EMBANK_RETURN_IF_ERROR(directory->ListFiles());
  EMBANK_RETURN_IF_ERROR(directory->CheckIsStore(argument));
  return directory;
}

StatusOr<std::unique_ptr<CheckpointDirectory>> CheckpointDirectory::OpenUnlocked(
    FileSystem* files, const std::string& path, const char* argument) {
  StatusOr<std::unique_ptr<Directory>> opened = files->OpenDirectory(path);
  if (IsNotFound(opened.status())) return NoStoreAt(argument, path);
  EMBANK_RETURN_IF_ERROR(opened.status());
  std::unique_ptr<CheckpointDirectory> directory(new CheckpointDirectory(&*opened));
  EMBANK_RETURN_IF_ERROR(directory->ListFiles());
  return directory;
}

StatusOr<bool> CheckpointDirectory::Refresh() {
  const std::vector<uint32_t> before = listing_.checkpoints;
  EMBANK_RETURN_IF_ERROR(ListFiles());
  if (before.empty() || listing_.checkpoints.empty())
    return before.empty() != listing_.checkpoints.empty();
  return before.back() != listing_.checkpoints.back();
}

Status CheckpointDirectory::CheckIsStore(const char* argument) const {
  return listing_.is_store() ? OkStatus() : NoStoreAt(argument, directory_->path());
}

Status CheckpointDirectory::LockToChange(bool may_create) {
  Status locked = lock_.LockToChange(may_create, "path");
  if (!IsNotFound(locked)) return locked;
  EMBANK_RETURN_IF_ERROR(ListFiles());
  EMBANK_RETURN_IF_ERROR(CheckHasManifest());
  if (listing_.checkpoints.empty()) return NoStoreAt("path", directory_->path());
  Log(LogLevel::kWarning, StrCat(PathOf(StoreLock::kFileName), " was missing, and is made again"));
  return lock_.LockToChange(/*may_make_file=*/true, "path");
}

Status CheckpointDirectory::LockToRead(const char* argument) {
  Status locked = lock_.LockToRead(argument);
  if (!IsNotFound(locked)) return locked;
  EMBANK_RETURN_IF_ERROR(ListFiles());
  EMBANK_RETURN_IF_ERROR(CheckIsStore(argument));
  return FailedPreconditionError(
      StrCat(argument, ": ", directory_->path(), " has no ", StoreLock::kFileName,
             ", and its file system does not lock directories; make an empty file of this "
             "name, or open the store once to change it"));
}

Status CheckpointDirectory::ListFiles() {
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  listing_ = StoreListing::Of(names);
  return OkStatus();
}

Status CheckpointDirectory::CheckHasManifest() const {
  if (!listing_.checkpoints.empty() || (listing_.segments.empty() && listing_.completed.empty()))
    return OkStatus();
  if (!listing_.segments.empty()) {
    return DataLossError(StrCat("path: ", directory_->path(), " has ", listing_.segments.size(),
                                " segments of a store, and no manifest"));
  }
  return DataLossError(StrCat("path: ", directory_->path(), " is a store that had checkpoint ",
                              *listing_.completed.rbegin(), ", and has no manifest"));
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

// A crash removes no manifest of a completed checkpoint, and a store removes it only after a newer
// one was completed.
Status CheckpointDirectory::LoadMissing(uint32_t checkpoint) const {
  return DataLossError(StrCat(
      PathOf(ManifestName(checkpoint)), ": the manifest is missing, though checkpoint ", checkpoint,
      " was completed", listing_.checkpoints.empty() ? "; the directory has no manifest" : ""));
}

std::vector<KeptCheckpoint> CheckpointDirectory::LoadKept() const {
  const std::vector<uint32_t>& checkpoints = listing_.checkpoints;
  std::vector<KeptCheckpoint> kept;
  const bool has_any = !checkpoints.empty();
  if (!listing_.completed.empty() && !Seeded(SeededBug::kGapNotSeen) &&
      (!has_any || checkpoints.back() < *listing_.completed.rbegin())) {
    const uint32_t lost = *listing_.completed.rbegin();
    kept.push_back({lost, LoadMissing(lost)});
    if (has_any) kept.push_back({checkpoints.back(), Load(checkpoints.back())});
    return kept;
  }
  if (!has_any) return kept;
  const uint32_t newest = checkpoints.back();
  kept.push_back({newest, Load(newest)});
  uint32_t previous = newest;
  if (kept[0].manifest.ok()) {
    previous = kept[0].manifest->previous;
  } else if (checkpoints.size() > 1) {
    previous = checkpoints[checkpoints.size() - 2];
  }
  if (previous != newest) kept.push_back({previous, Load(previous)});
  return kept;
}

Status CheckpointDirectory::Keep(const Manifest& manifest, bool* in_doubt) {
  *in_doubt = false;
  EMBANK_CHECK(manifest.previous <= manifest.checkpoint);
  EMBANK_CHECK(listing_.checkpoints.empty() || listing_.checkpoints.back() < manifest.checkpoint);
  EMBANK_RETURN_IF_ERROR(doubt_);
  EMBANK_RETURN_IF_ERROR(lock_.Check());
  const std::vector<std::byte> bytes = EncodeManifest(manifest);
  if (bytes.size() > kManifestBytesMax) {
    return ResourceExhaustedError(
        StrCat("the manifest has ", bytes.size(), " bytes, at most ", kManifestBytesMax));
  }
  const std::string name = ManifestName(manifest.checkpoint);
  const std::set<uint32_t> needed = {manifest.checkpoint, manifest.previous};
  listing_.checkpoints.reserve(listing_.checkpoints.size() + 1);
  const Status kept = ReplaceFile(directory_.get(), name, bytes, in_doubt);
  // The first manifest is removed: the next opening makes it anew. Later ones stay, because a crash
  // might bring them back.
  if (!kept.ok() && listing_.checkpoints.empty()) directory_->Remove(name).IgnoreError();
  if (*in_doubt && !Seeded(SeededBug::kDoubtIgnored)) {
    doubt_ = kept;
    doubted_checkpoint_ = manifest.checkpoint;
  }
  EMBANK_RETURN_IF_ERROR(kept);
  listing_.checkpoints.push_back(manifest.checkpoint);
  // The manifest is there; files that could not be removed are tried again by the next checkpoint.
  try {
    // Only for a manifest that this object has made durable: one that was found may be gone after a
    // crash. Without the mark the checkpoint is whole.
    const Status marked = NoteCompleted(directory_.get(), manifest.checkpoint, &listing_.completed);
    if (!marked.ok()) {
      Log(LogLevel::kWarning, StrCat("a loss of checkpoint ", manifest.checkpoint,
                                     " would not be noticed: ", marked.ToString()));
    }
    KeepOnly(needed);
  } catch (const std::bad_alloc&) {
  }
  // The sync may have dropped names that a later sync would have to make durable.
  doubt_ = directory_->Sync();
  return OkStatus();
}

uint64_t CheckpointDirectory::HeatBytes() const {
  uint64_t sum = 0;
  for (const auto& [checkpoint, bytes] : listing_.heats) sum += bytes;
  return sum;
}

void CheckpointDirectory::KeepHeatOf(const std::multiset<uint32_t>& checkpoints) {
  const auto is_kept = [&](uint32_t checkpoint) {
    return checkpoints.count(checkpoint) > 0 || checkpoint == doubted_checkpoint_ ||
           std::count(listing_.checkpoints.begin(), listing_.checkpoints.end(), checkpoint) > 0;
  };
  // If memory is short, files stay and are removed the next time.
  try {
    for (const auto& [checkpoint, bytes] : listing_.heats) {
      if (!is_kept(checkpoint)) Remove(HeatName(checkpoint));
    }
    std::erase_if(listing_.heats, [&](const auto& heat) { return !is_kept(heat.first); });
  } catch (const std::bad_alloc&) {
  }
}

void CheckpointDirectory::KeepOnly(const std::set<uint32_t>& checkpoints) {
  for (const uint32_t checkpoint : listing_.checkpoints) {
    if (checkpoints.count(checkpoint) == 0) Remove(ManifestName(checkpoint));
  }
  std::erase_if(listing_.checkpoints,
                [&](uint32_t checkpoint) { return checkpoints.count(checkpoint) == 0; });
}

void CheckpointDirectory::RemoveOrphans(std::span<const Manifest> kept) {
  std::vector<uint32_t> checkpoints;
  std::vector<const Manifest*> manifests;
  for (const Manifest& manifest : kept) {
    checkpoints.push_back(manifest.checkpoint);
    manifests.push_back(&manifest);
  }
  for (const std::string& name : listing_.SegmentsBeside(manifests, Tier::kSsd)) Remove(name);
  for (const std::string& name : listing_.HeatBeside(manifests)) Remove(name);
  for (const std::string& name : listing_.ManifestsBeside(checkpoints)) Remove(name);
  listing_.checkpoints = std::move(checkpoints);
  std::sort(listing_.checkpoints.begin(), listing_.checkpoints.end());
  listing_.segments.clear();
  listing_.heats.clear();
  for (const Manifest& manifest : kept) {
    if (manifest.heat.bytes > 0) listing_.heats[manifest.checkpoint] = manifest.heat.bytes;
  }
  listing_.drafts.clear();
}

// The listing of the opening lacks files that Keep made before memory was short.
void CheckpointDirectory::Abandon() {
  const auto remove_checkpoints = [this]() -> Status {
    EMBANK_RETURN_IF_ERROR(ListFiles());
    for (const std::string& name : listing_.ManifestsBeside({})) Remove(name);
    for (const uint32_t checkpoint : listing_.completed) Remove(CompletedName(checkpoint));
    return OkStatus();
  };
  if (is_new_) CatchNoMemory(remove_checkpoints).IgnoreError();
  lock_.RemoveMade();
  if (is_made_) CatchNoMemory([this] { return directory_->RemoveItself(); }).IgnoreError();
}

}  // namespace embank
