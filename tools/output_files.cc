#include "tools/output_files.h"

#include <filesystem>
#include <set>
#include <system_error>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// An error, and which files there are after it.
Status With(const Status& error, const std::string& files) {
  return Status(error.code(), StrCat(error.message(), "; ", files));
}

}  // namespace

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
  // A directory that cannot be synced is found while nothing has changed.
  EMBANK_RETURN_IF_ERROR(SyncDirectories());
  OutputFile* const first = file(head);
  const bool is_alone = files_.size() == 1;
  Status replaced;
  if (!is_alone) {
    EMBANK_RETURN_IF_ERROR(first->RemoveReplaced());
    replaced = ReplaceOthers(head, stale);
  }
  if (replaced.ok()) replaced = first->Rename();
  if (!replaced.ok()) {
    return is_alone
               ? replaced
               : With(replaced, head + " is not there, so that nobody reads a part of the files");
  }
  Status ended = SyncDirectories();
  if (ended.ok() && is_alone) ended = RemoveStale(stale);
  return ended.ok() ? ended : With(ended, head + " is in place and whole");
}

}  // namespace embank
