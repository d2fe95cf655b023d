#include "tools/unfinished_directory.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

constexpr const char* kMark = "UNFINISHED";

std::string WithoutSlashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();
  return path;
}

Status CheckVacant(FileSystem* files, const std::string& target) {
  const auto opened = files->OpenDirectory(target);
  if (IsNotFound(opened.status()) && !std::filesystem::exists(target)) return OkStatus();
  EMBANK_RETURN_IF_ERROR(opened.status());
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, (*opened)->List());
  if (names.empty()) return OkStatus();
  return AlreadyExistsError(StrCat(target, " is not empty; name a new directory"));
}

}  // namespace

UnfinishedDirectory::UnfinishedDirectory(FileSystem* files, std::string target)
    : files_(files),
      target_(std::move(target)),
      around_(target_ + ".unfinished"),
      made_(around_ + "/made") {}

StatusOr<std::unique_ptr<UnfinishedDirectory>> UnfinishedDirectory::Make(
    FileSystem* files, const std::string& target) {
  std::unique_ptr<UnfinishedDirectory> directory(
      new UnfinishedDirectory(files, WithoutSlashes(target)));
  EMBANK_RETURN_IF_ERROR(CheckVacant(files, directory->target_));
  EMBANK_RETURN_IF_ERROR(directory->Begin());
  return directory;
}

Status UnfinishedDirectory::Begin() {
  const Status created = files_->CreateDirectory(around_);
  if (!created.ok() && !IsAlreadyExists(created)) return created;
  EMBANK_ASSIGN_OR_RETURN(directory_, files_->OpenDirectory(around_));
  EMBANK_ASSIGN_OR_RETURN(const std::vector<std::string> names, directory_->List());
  const bool has_mark = std::ranges::find(names, kMark) != names.end();
  if (!has_mark && !names.empty()) {
    return AlreadyExistsError(StrCat(around_, " has no file ", kMark,
                                     ", and may be anything: remove it, or name another target"));
  }
  if (!has_mark) {
    const Status marked = MakeMark(directory_.get(), kMark);
    if (!marked.ok() && !IsAlreadyExists(marked)) return marked;
  }
  auto lock = directory_->Lock(kMark, /*shared=*/false);
  const bool is_taken = IsUnavailable(lock.status());
  if (is_taken) return UnavailableError(StrCat(around_, ": another process works there"));
  EMBANK_RETURN_IF_ERROR(lock.status());
  // The process that had it locked may have removed it.
  EMBANK_ASSIGN_OR_RETURN(const bool is_in_place, (*lock)->IsInPlace());
  if (!is_in_place) return UnavailableError(StrCat(around_, ": another process has just ended"));
  lock_ = *std::move(lock);
  std::error_code error;
  std::filesystem::remove_all(made_, error);
  if (!error) return OkStatus();
  return UnavailableError(StrCat(made_, " cannot be removed: ", error.message()));
}

UnfinishedDirectory::~UnfinishedDirectory() {
  if (lock_ == nullptr) return;
  std::error_code ignored;
  std::filesystem::remove_all(made_, ignored);
  directory_->Remove(kMark).IgnoreError();
  directory_->RemoveItself().IgnoreError();
}

Status UnfinishedDirectory::Finish() {
  EMBANK_RETURN_IF_ERROR(CheckVacant(files_, target_));
  std::error_code error;
  std::filesystem::rename(made_, target_, error);
  if (error) {
    return UnavailableError(
        StrCat(made_, " cannot be renamed to ", target_, ": ", error.message()));
  }
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Directory> target, files_->OpenDirectory(target_));
  return target->SyncName();
}

}  // namespace embank
