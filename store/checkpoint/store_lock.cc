#include "store/checkpoint/store_lock.h"

#include <utility>

#include "base/check.h"
#include "base/no_throw_status.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

Status StoreLock::LockToChange(bool may_make_file, const char* argument) {
  EMBANK_RETURN_IF_ERROR(LockDirectory(/*shared=*/false, argument));
  if (may_make_file) EMBANK_RETURN_IF_ERROR(MakeFile());
  return LockFile(/*shared=*/false, argument);
}

Status StoreLock::LockToRead(const char* argument) {
  EMBANK_RETURN_IF_ERROR(LockDirectory(/*shared=*/true, argument));
  Status locked = LockFile(/*shared=*/true, argument);
  // A process that opens the store to change it has to lock the directory too.
  if (IsNotFound(locked) && directory_lock_ != nullptr) return OkStatus();
  return locked;
}

Status StoreLock::Check() const {
  EMBANK_CHECK(file_lock_ != nullptr);
  EMBANK_ASSIGN_OR_RETURN(const bool is_in_place, file_lock_->IsInPlace());
  if (is_in_place) return OkStatus();
  return UnavailableError(
      StrCat(directory_->PathOf(kFileName),
             " is not the file that this store has locked: it was removed or replaced, and "
             "somebody else may have the store open; nothing was written. Put that file "
             "back, or close the store and open it again"));
}

StatusOr<bool> StoreLock::HoldsDirectory() const {
  if (directory_lock_ != nullptr) return true;
  EMBANK_CHECK(file_lock_ != nullptr);
  return file_lock_->IsInPlace();
}

void StoreLock::RemoveMade() {
  const bool is_held = file_lock_ != nullptr || directory_lock_ != nullptr;
  if (is_made_ && is_held) {
    CatchNoMemory([this] { return directory_->Remove(kFileName); }).IgnoreError();
  }
  is_made_ = false;
}

Status StoreLock::OpenElsewhere(bool shared, const char* argument) const {
  return UnavailableError(StrCat(
      argument, ": ", directory_->path(), " is open already", shared ? " to be changed" : "",
      ", here or in another process, which has the directory and its ", kFileName, " locked"));
}

Status StoreLock::MakeFile() {
  Status made = MakeMark(directory_, kFileName);
  is_made_ = made.ok();
  return IsAlreadyExists(made) ? OkStatus() : made;
}

Status StoreLock::LockDirectory(bool shared, const char* argument) {
  if (directory_lock_ != nullptr) return OkStatus();
  StatusOr<std::unique_ptr<FileLock>> lock = directory_->LockItself(shared);
  if (IsUnimplemented(lock.status())) return OkStatus();
  if (IsUnavailable(lock.status())) return OpenElsewhere(shared, argument);
  EMBANK_RETURN_IF_ERROR(lock.status());
  directory_lock_ = *std::move(lock);
  return OkStatus();
}

// kNotFound: there is no such file.
Status StoreLock::LockFile(bool shared, const char* argument) {
  EMBANK_CHECK(file_lock_ == nullptr);
  StatusOr<std::unique_ptr<FileLock>> lock = directory_->Lock(kFileName, shared);
  if (IsUnavailable(lock.status())) return OpenElsewhere(shared, argument);
  if (IsDataLoss(lock.status())) {
    return FailedPreconditionError(StrCat(argument, ": ", directory_->PathOf(kFileName),
                                          " is a directory; remove it, and make an empty file of "
                                          "this name"));
  }
  EMBANK_RETURN_IF_ERROR(lock.status());
  file_lock_ = *std::move(lock);
  // Another process that replaced the file meanwhile may have locked the new one.
  return Check();
}

}  // namespace embank
