#include "bench/slow_sync.h"

#include <chrono>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/status_macros.h"

namespace embank {
namespace {

using Microseconds = std::chrono::microseconds;

class SlowFile final : public File {
 public:
  SlowFile(std::unique_ptr<File> file, Microseconds sync) : file_(std::move(file)), sync_(sync) {}

  Status Read(uint64_t offset, std::span<std::byte> into) override {
    return file_->Read(offset, into);
  }
  Status Write(uint64_t offset, std::span<const std::byte> bytes) override {
    return file_->Write(offset, bytes);
  }
  Status Preallocate(uint64_t bytes) override { return file_->Preallocate(bytes); }
  Status PreallocateRange(uint64_t offset, uint64_t bytes) override {
    return file_->PreallocateRange(offset, bytes);
  }
  Status Sync() override {
    std::this_thread::sleep_for(sync_);
    return file_->Sync();
  }
  StatusOr<uint64_t> SizeBytes() override { return file_->SizeBytes(); }
  StatusOr<uint64_t> TakenBytes() override { return file_->TakenBytes(); }
  void MayRest() override { file_->MayRest(); }
  bool direct() const override { return file_->direct(); }
  std::span<const std::byte> mapping() const override { return file_->mapping(); }

  File* file() { return file_.get(); }

 private:
  const std::unique_ptr<File> file_;
  const Microseconds sync_;
};

class SlowDirectory final : public Directory {
 public:
  SlowDirectory(std::unique_ptr<Directory> directory, Microseconds sync)
      : directory_(std::move(directory)), sync_(sync) {}

  const std::string& path() const override { return directory_->path(); }
  StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                       FileCaching caching) override {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<File> file, directory_->Open(name, access, caching));
    return std::make_unique<SlowFile>(std::move(file), sync_);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return directory_->Rename(from, to);
  }
  Status Link(const std::string& from, Directory* directory, const std::string& to) override {
    return directory_->Link(from, static_cast<SlowDirectory*>(directory)->directory_.get(), to);
  }
  Status Remove(const std::string& name) override { return directory_->Remove(name); }
  StatusOr<std::vector<std::string>> List() override { return directory_->List(); }
  Status Sync() override {
    std::this_thread::sleep_for(sync_);
    return directory_->Sync();
  }
  Status SyncName() override {
    std::this_thread::sleep_for(sync_);
    return directory_->SyncName();
  }
  Status RemoveItself() override { return directory_->RemoveItself(); }
  StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) override {
    return directory_->Lock(name, shared);
  }
  StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) override {
    return directory_->LockItself(shared);
  }

 private:
  const std::unique_ptr<Directory> directory_;
  const Microseconds sync_;
};

class SlowSyncFiles final : public FileSystem {
 public:
  explicit SlowSyncFiles(Microseconds sync) : files_(MakePosixFileSystem({})), sync_(sync) {}

  Status CreateDirectory(const std::string& path) override { return files_->CreateDirectory(path); }
  StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) override {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Directory> directory, files_->OpenDirectory(path));
    return std::make_unique<SlowDirectory>(std::move(directory), sync_);
  }
  void TransferAll(std::span<Transfer> transfers) override {
    std::vector<Transfer> inner(transfers.begin(), transfers.end());
    for (Transfer& transfer : inner) transfer.file = static_cast<SlowFile*>(transfer.file)->file();
    files_->TransferAll(inner);
    for (size_t i = 0; i < inner.size(); ++i) transfers[i].status = inner[i].status;
  }
  uint32_t OpenFilesMax() const override { return files_->OpenFilesMax(); }
  void RegisterMemory(std::span<std::byte> memory) override { files_->RegisterMemory(memory); }
  void UnregisterMemory(std::span<std::byte> memory) override { files_->UnregisterMemory(memory); }

 private:
  const std::unique_ptr<FileSystem> files_;
  const Microseconds sync_;
};

}  // namespace

std::unique_ptr<FileSystem> MakeSlowSyncFiles(uint32_t sync_us) {
  return std::make_unique<SlowSyncFiles>(Microseconds(sync_us));
}

}  // namespace embank
