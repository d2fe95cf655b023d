#include "tools/output_files.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

Status OutputFiles::Open(const std::string& path) {
  auto& file = files_[path];
  file = std::make_unique<OutputFile>(path);
  return file->Open();
}

// Links may lead to several directories.
Status OutputFiles::SyncDirectories() const {
  std::set<std::string> synced;
  for (const auto& [path, file] : files_) {
    if (synced.insert(file->directory()).second) EMBANK_RETURN_IF_ERROR(file->SyncDirectory());
  }
  return OkStatus();
}

Status OutputFiles::RemoveStale(std::span<const std::string> stale) const {
  for (const std::string& path : stale) {
    std::error_code error;
    if (files_.contains(path) || std::filesystem::remove(path, error) || !error) continue;
    return UnavailableError(
        StrCat(path, " of an earlier table cannot be removed: ", error.message()));
  }
  return OkStatus();
}

Status OutputFiles::ReplaceOthers(const std::string& head, std::span<const std::string> stale) {
  // Names must be durable in this order, too: after a power failure, a file may have its new name
  // although one that was renamed before has its old one.
  EMBANK_RETURN_IF_ERROR(SyncDirectories());
  EMBANK_RETURN_IF_ERROR(RemoveStale(stale));
  for (const auto& [path, file] : files_) {
    if (path != head) EMBANK_RETURN_IF_ERROR(file->Rename());
  }
  return SyncDirectories();
}

Status OutputFiles::Finish(const std::string& head, std::span<const std::string> stale) {
  for (const auto& [path, file] : files_) EMBANK_RETURN_IF_ERROR(file->Sync());
  OutputFile* const first = file(head);
  if (files_.size() == 1) {
    EMBANK_RETURN_IF_ERROR(first->Finish());
    const Status removed = RemoveStale(stale);
    if (removed.ok()) return removed;
    return Status(removed.code(), StrCat(head, " is in place and whole; ", removed.message()));
  }
  // A directory that cannot be synced is found while nothing has changed.
  EMBANK_RETURN_IF_ERROR(SyncDirectories());
  EMBANK_ASSIGN_OR_RETURN(const bool is_removed, first->RemoveReplaced());
  Status replaced = ReplaceOthers(head, stale);
  if (replaced.ok()) replaced = first->Rename();
  if (replaced.ok()) return SyncDirectories();
  if (!is_removed) return replaced;
  return Status(replaced.code(), StrCat(replaced.message(), "; ", head,
                                        " was removed, so that nobody reads a part of the files"));
}

}  // namespace embank
