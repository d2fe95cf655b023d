#include "base/pmem/pmem_file_system.h"

#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/files/posix_file.h"
#include "base/no_throw_status.h"
#include "base/pmem/pmem_file.h"
#include "base/status_macros.h"

namespace embank {
namespace {

class PmemDirectory final : public Directory {
 public:
  PmemDirectory(std::unique_ptr<Directory> base, PmemFileParts* parts)
      : base_(std::move(base)), parts_(parts) {}

  const std::string& path() const override { return base_->path(); }

  StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                       FileCaching) override {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<PmemFile> file, OpenMapped(name, access));
    return std::unique_ptr<File>(std::move(file));
  }
  // As Open.
  StatusOr<std::unique_ptr<PmemFile>> OpenMapped(const std::string& name, FileAccess access) {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<File> file,
                            base_->Open(name, access, FileCaching::kCached));
    auto* const of_system = dynamic_cast<PosixFile*>(file.get());
    EMBANK_CHECK(of_system != nullptr);
    static_cast<void>(file.release());
    std::unique_ptr<PosixFile> owned(of_system);
    StatusOr<std::unique_ptr<PmemFile>> opened = CatchNoMemory([&] {
      return PmemFile::Open(std::move(owned), {base_.get(), name}, access, parts_);
    });
    if (!opened.ok() && access == FileAccess::kCreate) base_->Remove(name).IgnoreError();
    return opened;
  }

  Status Rename(const std::string& from, const std::string& to) override {
    return base_->Rename(from, to);
  }
  Status Link(const std::string& from, Directory* directory, const std::string& to) override {
    return base_->Link(from, static_cast<PmemDirectory*>(directory)->base_.get(), to);
  }
  Status Remove(const std::string& name) override { return base_->Remove(name); }
  StatusOr<std::vector<std::string>> List() override { return base_->List(); }
  Status Sync() override { return base_->Sync(); }
  Status SyncName() override { return base_->SyncName(); }
  Status RemoveItself() override { return base_->RemoveItself(); }

  StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) override {
    return base_->Lock(name, shared);
  }
  StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) override {
    return base_->LockItself(shared);
  }

 private:
  const std::unique_ptr<Directory> base_;
  PmemFileParts* const parts_;
};

class MappedFileSystem final : public PmemFileSystem {
 public:
  MappedFileSystem(FileSystem* base, const PmemLibrary& library, BadRangeFinder find_bad_ranges)
      : base_(base) {
    parts_.library = library;
    parts_.find_bad_ranges = std::move(find_bad_ranges);
  }

  Status CreateDirectory(const std::string& path) override { return base_->CreateDirectory(path); }
  StatusOr<std::unique_ptr<Directory>> OpenDirectory(const std::string& path) override {
    EMBANK_ASSIGN_OR_RETURN(std::unique_ptr<Directory> directory, base_->OpenDirectory(path));
    return std::make_unique<PmemDirectory>(std::move(directory), &parts_);
  }

  // One drain is enough for all stores of a thread.
  void TransferAll(std::span<Transfer> transfers) override {
    PmemFile* undrained = nullptr;
    for (Transfer& transfer : transfers) {
      auto* const file = static_cast<PmemFile*>(transfer.file);
      if (transfer.kind == Transfer::Kind::kRead) {
        transfer.status = file->Read(transfer.offset, transfer.bytes);
        continue;
      }
      transfer.status = file->WriteUndrained(transfer.offset, transfer.bytes);
      if (file->is_pmem()) undrained = file;
    }
    if (undrained != nullptr) undrained->Drain();
  }

  uint32_t OpenFilesMax() const override { return base_->OpenFilesMax(); }

  StatusOr<PmemKind> KindOf(Directory* directory) override {
    const std::string name = "pmem_probe";
    auto* const own = static_cast<PmemDirectory*>(directory);
    // A crash may have left one behind.
    if (Status removed = own->Remove(name); !removed.ok() && !IsNotFound(removed)) {
      return removed;
    }
    PmemKind kind = PmemKind::kMappedFiles;
    Status probed = CatchNoMemory([&]() -> Status {
      EMBANK_ASSIGN_OR_RETURN(const std::unique_ptr<PmemFile> file,
                              own->OpenMapped(name, FileAccess::kCreate));
      EMBANK_RETURN_IF_ERROR(file->Preallocate(kBlockBytes));
      if (file->is_pmem()) kind = PmemKind::kPmem;
      return OkStatus();
    });
    const Status removed = own->Remove(name);
    EMBANK_RETURN_IF_ERROR(probed);
    EMBANK_RETURN_IF_ERROR(removed);
    return kind;
  }

  PmemCounters counters() const override {
    return {.written_bytes = parts_.tally.written_bytes.load(std::memory_order_relaxed),
            .drains = parts_.tally.drains.load(std::memory_order_relaxed),
            .msyncs = parts_.tally.msyncs.load(std::memory_order_relaxed)};
  }

 private:
  FileSystem* const base_;
  PmemFileParts parts_;
};

}  // namespace

const char* NameOf(PmemKind kind) {
  return kind == PmemKind::kPmem ? "pmem" : "mapped files, msync";
}

std::unique_ptr<PmemFileSystem> MakePmemFileSystem(FileSystem* base, const PmemLibrary& library,
                                                   BadRangeFinder find_bad_ranges) {
  return std::make_unique<MappedFileSystem>(base, library, std::move(find_bad_ranges));
}

}  // namespace embank
