#include "base/file_system.h"

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace embank {

std::string DirectoryOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

absl::StatusOr<std::vector<std::byte>> ReadWholeFile(FileSystem* files, const std::string& path,
                                                     uint64_t bytes_max) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                          files->Open(path, FileAccess::kRead, FileCaching::kCached));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t size_bytes, file->SizeBytes());
  if (size_bytes > bytes_max) {
    return absl::OutOfRangeError(absl::StrCat("read ", path, ": ", size_bytes, " bytes, at most ",
                                              bytes_max, " are expected"));
  }
  std::vector<std::byte> bytes(size_bytes);
  EMBANK_RETURN_IF_ERROR(file->Read(0, bytes));
  return bytes;
}

absl::Status ReplaceFile(FileSystem* files, const std::string& path,
                         std::span<const std::byte> bytes) {
  const std::string draft = path + ".new";
  // Left behind by a crash, it is nobody's.
  if (absl::Status removed = files->Remove(draft); !removed.ok() && !absl::IsNotFound(removed)) {
    return removed;
  }
  {
    EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                            files->Open(draft, FileAccess::kCreate, FileCaching::kCached));
    EMBANK_RETURN_IF_ERROR(file->Write(0, bytes));
    EMBANK_RETURN_IF_ERROR(file->Sync());
  }
  EMBANK_RETURN_IF_ERROR(files->Rename(draft, path));
  return files->SyncDirectory(DirectoryOf(path));
}

}  // namespace embank
