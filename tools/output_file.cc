#include "tools/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "base/files/posix_file_system.h"
#include "base/status_macros.h"
#include "base/str_cat.h"

namespace embank {
namespace {

// Follows the links of a path, also to a file that is not there yet.
std::string PlaceOf(std::filesystem::path path) {
  constexpr int kLinksMax = 40;  // as many as Linux follows
  std::error_code error;
  for (int i = 0; i < kLinksMax && std::filesystem::is_symlink(path, error); ++i) {
    path = path.parent_path() / std::filesystem::read_symlink(path, error);
  }
  return path.string();
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {}

OutputFile::~OutputFile() {
  if (file_ == nullptr || file_ == stdout) return;
  std::fclose(file_);
  if (has_part()) std::remove(part_.c_str());
}

Status OutputFile::Failed(const char* what, int error) const {
  return FailedAt(has_part() ? part_ : path_, what, error);
}

Status OutputFile::FailedAt(const std::string& path, const char* what, int error) const {
  return UnavailableError(
      StrCat("--out: cannot ", what, " ", path, ": ", std::generic_category().message(error)));
}

Status OutputFile::Open() {
  std::error_code error;
  // A file that the shell has opened for the output is no file to replace either.
  if (path_ == "-" || std::filesystem::equivalent(path_, "/dev/stdout", error)) {
    file_ = stdout;
    return OkStatus();
  }
  const std::filesystem::file_status status = std::filesystem::status(path_, error);
  if (std::filesystem::is_directory(status)) {
    return InvalidArgumentError(StrCat("--out: ", path_, " is a directory; give a file in it"));
  }
  if (!std::filesystem::status_known(status)) return Failed("write", error.value());
  const bool is_replaced =
      !std::filesystem::exists(status) || std::filesystem::is_regular_file(status);
  if (is_replaced) return OpenPart();
  file_ = std::fopen(path_.c_str(), "w");
  return file_ != nullptr ? OkStatus() : Failed("write", errno);
}

// A file of this name may be the user's own, or may have been left by a process that was killed.
Status OutputFile::OpenPart() {
  constexpr int kNamesMax = 100;
  place_ = PlaceOf(path_);
  for (int number = 1; number <= kNamesMax; ++number) {
    part_ = StrCat(place_, ".part", number == 1 ? std::string() : StrCat(number));
    file_ = std::fopen(part_.c_str(), "wx");
    if (file_ != nullptr) return OkStatus();
    if (errno != EEXIST) break;
  }
  return Failed("write", errno);
}

Status OutputFile::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_) == text.size()) return OkStatus();
  return Failed("write", errno);
}

Status OutputFile::WriteAt(uint64_t offset, std::span<const std::byte> bytes) {
  if (fseeko(file_, static_cast<off_t>(offset), SEEK_SET) == 0 &&
      std::fwrite(bytes.data(), 1, bytes.size(), file_) == bytes.size()) {
    return OkStatus();
  }
  return Failed("write", errno);
}

Status OutputFile::Sync() {
  if (std::fflush(file_) != 0) return Failed("write", errno);
  return has_part() && fsync(fileno(file_)) != 0 ? Failed("write", errno) : OkStatus();
}

Status OutputFile::Rename() {
  if (file_ == stdout) return OkStatus();
  std::FILE* const file = std::exchange(file_, nullptr);
  const bool is_closed = std::fclose(file) == 0;
  if (is_closed && !has_part()) return OkStatus();
  if (is_closed && std::rename(part_.c_str(), place_.c_str()) == 0) return OkStatus();
  const Status failed = Failed(is_closed ? "rename" : "write", errno);
  if (has_part()) std::remove(part_.c_str());
  return failed;
}

std::string OutputFile::directory() const {
  std::string directory = std::filesystem::path(place_).parent_path().string();
  return directory.empty() ? "." : directory;
}

Status OutputFile::SyncDirectory() const {
  if (!has_part()) return OkStatus();
  const std::unique_ptr<FileSystem> files = MakePosixFileSystem({});
  EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<Directory> opened,
                          files->OpenDirectory(directory()));
  return opened->Sync();
}

Status OutputFile::RemoveReplaced() const {
  std::error_code error;
  std::filesystem::remove(place_, error);
  return error ? FailedAt(place_, "replace", error.value()) : OkStatus();
}

Status OutputFile::Finish() {
  EMBANK_RETURN_IF_ERROR(Sync());
  EMBANK_RETURN_IF_ERROR(SyncDirectory());
  EMBANK_RETURN_IF_ERROR(Rename());
  return SyncDirectory();
}

}  // namespace embank
