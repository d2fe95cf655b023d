#include "base/files/file_system.h"

#include "base/no_throw_status.h"
#include "base/seeded_bug.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {

std::string DirectoryOf(const std::string& path) {
  const size_t name_end = path.find_last_not_of('/');
  if (name_end == std::string::npos) return path.empty() ? "." : "/";
  const size_t slash = path.rfind('/', name_end);
  if (slash == std::string::npos) return ".";
  const size_t end = path.find_last_not_of('/', slash);
  return end == std::string::npos ? "/" : path.substr(0, end + 1);
}

StatusOr<std::unique_ptr<Directory>> MakeOrOpenDirectory(FileSystem* files, const std::string& path,
                                                         bool* is_made) {
  Status made = files->CreateDirectory(path);
  if (!made.ok() && !IsAlreadyExists(made)) return made;
  *is_made = made.ok();
  const auto open = [&] { return files->OpenDirectory(path); };
  StatusOr<std::unique_ptr<Directory>> opened = CatchNoMemory(open);
  if (opened.ok() || !*is_made) return opened;
  // The second try may have what the first one lacked.
  const StatusOr<std::unique_ptr<Directory>> again = CatchNoMemory(open);
  if (again.ok()) CatchNoMemory([&] { return (*again)->RemoveItself(); }).IgnoreError();
  return opened;
}

std::string Directory::PathOf(const std::string& name) const { return StrCat(path(), "/", name); }

Status MakeMark(Directory* directory, const std::string& name) {
  constexpr char kText[] = "A file of an Embank store.\n";
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                          directory->Open(name, FileAccess::kCreate, FileCaching::kCached));
  const auto text = std::as_bytes(std::span(kText).first(sizeof(kText) - 1));
  CatchNoMemory([&] { return file->Write(0, text); }).IgnoreError();
  return OkStatus();
}

StatusOr<std::vector<std::byte>> ReadWholeFile(Directory* directory, const std::string& name,
                                               uint64_t bytes_max) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                          directory->Open(name, FileAccess::kRead, FileCaching::kCached));
  EMBANK_ASSIGN_OR_RETURN(const uint64_t size_bytes, file->SizeBytes());
  if (size_bytes > bytes_max) {
    return OutOfRangeError(StrCat("read ", directory->PathOf(name), ": ", size_bytes,
                                  " bytes, at most ", bytes_max, " are expected"));
  }
  std::vector<std::byte> bytes(size_bytes);
  EMBANK_RETURN_IF_ERROR(file->Read(0, bytes));
  return bytes;
}

namespace {

Status WriteDraft(Directory* directory, const std::string& draft,
                  std::span<const std::byte> bytes) {
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<File> file,
                          directory->Open(draft, FileAccess::kCreate, FileCaching::kCached));
  EMBANK_RETURN_IF_ERROR(file->Write(0, bytes));
  return Seeded(SeededBug::kNoManifestSync) ? OkStatus() : file->Sync();
}

}  // namespace

Status ReplaceFile(Directory* directory, const std::string& name, std::span<const std::byte> bytes,
                   bool* in_doubt) {
  bool unused = false;
  if (in_doubt == nullptr) in_doubt = &unused;
  *in_doubt = false;
  const std::string draft = name + ".new";
  // A crash has left the file; no process uses it.
  if (Status removed = directory->Remove(draft); !removed.ok() && !IsNotFound(removed)) {
    return removed;
  }
  Status placed = CatchNoMemory([&]() -> Status {
    EMBANK_RETURN_IF_ERROR(WriteDraft(directory, draft, bytes));
    return directory->Rename(draft, name);
  });
  if (!placed.ok()) directory->Remove(draft).IgnoreError();
  EMBANK_RETURN_IF_ERROR(placed);
  if (Seeded(SeededBug::kNoManifestNameSync)) return OkStatus();
  *in_doubt = true;
  EMBANK_RETURN_IF_ERROR(directory->Sync());
  *in_doubt = false;
  return OkStatus();
}

}  // namespace embank
