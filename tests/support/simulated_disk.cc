#include "tests/support/simulated_disk.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <set>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "tests/support/unfaulted.h"

namespace embank::test {
namespace {

Status Missing(const std::string& path) {
  return NotFoundError(StrCat(path, ": no such file or directory"));
}

Status LockedElsewhere(const std::string& path) {
  return UnavailableError(StrCat(path, ": locked by somebody else"));
}

}  // namespace

// ---- open files and locks ----

class SimulatedFile final : public File {
 public:
  SimulatedFile(SimulatedDisk* disk, uint64_t inode, std::string path, bool direct,
                FileAccess access, std::span<const std::byte> mapping)
      : disk_(disk),
        inode_(inode),
        path_(std::move(path)),
        direct_(direct),
        writable_(access != FileAccess::kRead),
        is_new_(access == FileAccess::kCreate),
        mapping_(mapping) {}
  ~SimulatedFile() override { disk_->Close(inode_); }

  Status Read(uint64_t offset, std::span<std::byte> into) override {
    CheckBlocks(offset, into);
    return disk_->ReadFile(inode_, path_, offset, into);
  }
  Status Write(uint64_t offset, std::span<const std::byte> bytes) override {
    CheckBlocks(offset, bytes);
    EMBANK_CHECK(writable_ && !may_rest_);
    const bool is_inside =
        bytes.size() <= mapping_.size() && offset <= mapping_.size() - bytes.size();
    if (is_mapped() && !is_inside && !bytes.empty()) {
      return OutOfRangeError(StrCat(path_, ": is mapped, and ends at byte ", mapping_.size()));
    }
    return disk_->WriteFile(inode_, path_, offset, bytes, is_mapped());
  }
  Status Preallocate(uint64_t bytes) override { return PreallocateRange(0, bytes); }
  Status PreallocateRange(uint64_t offset, uint64_t bytes) override {
    EMBANK_CHECK(writable_);
    if (is_mapped() && offset + bytes > mapping_.size()) {
      return UnimplementedError(StrCat(path_, ": a mapped file keeps its length"));
    }
    // A mapping takes the space of all its bytes.
    const bool is_pmem = disk_->IsPmem(path_);
    Status taken = disk_->Grow(inode_, path_, is_pmem ? 0 : offset, bytes + (is_pmem ? offset : 0));
    if (!disk_->IsPmem(path_) || is_mapped() || bytes == 0) return taken;
    if (taken.ok()) mapping_ = disk_->MapFile(inode_);
    if (!taken.ok() && is_new_) disk_->Remove(path_).IgnoreError();
    return taken;
  }
  Status Sync() override { return disk_->SyncFile(inode_, path_); }
  StatusOr<uint64_t> SizeBytes() override { return disk_->SizeOf(inode_, path_, false); }
  StatusOr<uint64_t> TakenBytes() override { return disk_->SizeOf(inode_, path_, true); }
  void MayRest() override { EMBANK_CHECK(!may_rest_.exchange(true)); }
  bool direct() const override { return direct_; }
  std::span<const std::byte> mapping() const override { return mapping_; }

 private:
  bool is_mapped() const { return !mapping_.empty(); }
  void CheckBlocks(uint64_t offset, std::span<const std::byte> bytes) const {
    const uint64_t all = offset | bytes.size() | reinterpret_cast<uintptr_t>(bytes.data());
    EMBANK_CHECK(!direct_ || all % kBlockBytes == 0);
  }

  SimulatedDisk* const disk_;
  const uint64_t inode_;
  const std::string path_;
  const bool direct_;
  const bool writable_;
  const bool is_new_;
  std::span<const std::byte> mapping_;
  std::atomic<bool> may_rest_{false};
};

// The change of a file, or of a directory, which has no inode.
class SimulatedLock final : public FileLock {
 public:
  SimulatedLock(SimulatedDisk* disk, uint64_t inode, std::string path, bool shared)
      : disk_(disk), inode_(inode), path_(std::move(path)), shared_(shared) {}
  ~SimulatedLock() override { disk_->Unlock(inode_, path_, shared_); }

  StatusOr<bool> IsInPlace() override { return disk_->IsInPlace(inode_, path_); }

 private:
  SimulatedDisk* const disk_;
  const uint64_t inode_;
  const std::string path_;
  const bool shared_;
};

class SimulatedDirectory final : public Directory {
 public:
  SimulatedDirectory(SimulatedDisk* disk, std::string path) : disk_(disk), path_(std::move(path)) {}

  const std::string& path() const override { return path_; }
  StatusOr<std::unique_ptr<File>> Open(const std::string& name, FileAccess access,
                                       FileCaching caching) override {
    return disk_->Open(PathOf(name), access, caching);
  }
  Status Rename(const std::string& from, const std::string& to) override {
    return disk_->Rename(PathOf(from), PathOf(to));
  }
  Status Link(const std::string& from, Directory* directory, const std::string& to) override {
    return disk_->Link(PathOf(from), directory->PathOf(to));
  }
  Status Remove(const std::string& name) override { return disk_->Remove(PathOf(name)); }
  StatusOr<std::vector<std::string>> List() override { return disk_->List(path_); }
  Status Sync() override { return disk_->SyncDirectory(path_); }
  Status SyncName() override { return disk_->SyncDirectory(DirectoryOf(path_)); }
  Status RemoveItself() override { return disk_->Remove(path_); }
  StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& name, bool shared) override {
    return disk_->Lock(PathOf(name), shared);
  }
  StatusOr<std::unique_ptr<FileLock>> LockItself(bool shared) override {
    return disk_->LockDirectory(path_, shared);
  }

 private:
  SimulatedDisk* const disk_;
  const std::string path_;
};

// ---- the calls ----

Status SimulatedDisk::Admit(DiskCall::Kind kind, const std::string& path) {
  ++calls_;
  return faults_ == nullptr ? OkStatus() : faults_({kind, path, calls_});
}

void SimulatedDisk::Do(Change change) {
  if (change.kind == Change::Kind::kWrite || change.kind == Change::Kind::kGrow) {
    // A longer file would move from under its map.
    const Inode& inode = now_.inodes.at(change.inode);
    EMBANK_CHECK(!inode.is_mapped || change.offset + change.bytes.size() <= inode.contents.size());
  }
  now_.Apply(change);
  changes_.push_back(std::move(change));
}

Status SimulatedDisk::CheckWritable(const std::string& path) const {
  if (!is_read_only_) return OkStatus();
  return PermissionDeniedError(StrCat(path, ": the file system is read-only"));
}

Status SimulatedDisk::CheckParent(const std::string& path) const {
  const std::string parent = DirectoryOf(path);
  return now_.HasDirectory(parent) ? OkStatus() : Missing(parent);
}

uint64_t SimulatedDisk::SpareBytes() const {
  std::set<InodeNumber> named;
  for (const auto& [name, inode] : now_.names) named.insert(inode);
  uint64_t used_bytes = 0;
  for (const auto& [number, inode] : now_.inodes) {
    const bool exists = named.count(number) == 1 || inode.open_files > 0;
    if (exists) used_bytes += inode.taken.bytes();
  }
  return capacity_bytes_ - std::min(capacity_bytes_, used_bytes);
}

Status SimulatedDisk::CheckSpace(InodeNumber inode, const std::string& path, uint64_t begin,
                                 uint64_t end) const {
  const uint64_t taken_bytes = now_.inodes.at(inode).taken.BytesIn(begin, end);
  if (end - begin - taken_bytes <= SpareBytes()) return OkStatus();
  return ResourceExhaustedError(StrCat(path, ": no space left on the disk"));
}

StatusOr<std::unique_ptr<File>> SimulatedDisk::Open(const std::string& path, FileAccess access,
                                                    FileCaching caching) {
  if (open_hook_ != nullptr) open_hook_(path);
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kOpen, path));
  if (access != FileAccess::kRead) EMBANK_RETURN_IF_ERROR(CheckWritable(path));
  const auto found = now_.names.find(path);
  InodeNumber inode = 0;
  if (access == FileAccess::kCreate) {
    if (found != now_.names.end()) return AlreadyExistsError(StrCat(path, ": exists"));
    EMBANK_RETURN_IF_ERROR(CheckParent(path));
    inode = next_inode_++;
    Do({.kind = Change::Kind::kName, .inode = inode, .path = path});
  } else {
    if (found == now_.names.end() || found->second == 0) return Missing(path);
    inode = found->second;
  }
  Inode& opened = now_.inodes.at(inode);
  ++opened.open_files;
  std::span<const std::byte> mapping;
  const bool is_pmem = IsPmem(path);
  if (is_pmem && access != FileAccess::kCreate) mapping = opened.contents;
  opened.is_mapped = opened.is_mapped || !mapping.empty();
  const bool direct = !is_pmem && caching == FileCaching::kDirect;
  return std::make_unique<SimulatedFile>(this, inode, path, direct, access, mapping);
}

void SimulatedDisk::TransferAll(std::span<Transfer> transfers) {
  for (Transfer& transfer : transfers) {
    transfer.status = transfer.kind == Transfer::Kind::kRead
                          ? transfer.file->Read(transfer.offset, transfer.bytes)
                          : transfer.file->Write(transfer.offset, transfer.bytes);
  }
}

Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  if (rename_hook_ != nullptr) rename_hook_();
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRename, from));
  EMBANK_RETURN_IF_ERROR(CheckWritable(from));
  const auto found = now_.names.find(from);
  if (found == now_.names.end()) return Missing(from);
  EMBANK_CHECK(found->second != 0 && !now_.HasDirectory(to));
  EMBANK_RETURN_IF_ERROR(CheckParent(to));
  Do({.kind = Change::Kind::kRename, .inode = found->second, .path = to, .from = from});
  return OkStatus();
}

Status SimulatedDisk::Link(const std::string& from, const std::string& to) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLink, from));
  EMBANK_RETURN_IF_ERROR(CheckWritable(from));
  const auto found = now_.names.find(from);
  if (found == now_.names.end() || found->second == 0) return Missing(from);
  if (now_.names.count(to) == 1) return AlreadyExistsError(StrCat(to, ": exists"));
  EMBANK_RETURN_IF_ERROR(CheckParent(to));
  Do({.kind = Change::Kind::kName, .inode = found->second, .path = to});
  return OkStatus();
}

Status SimulatedDisk::Remove(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRemove, path));
  EMBANK_RETURN_IF_ERROR(CheckWritable(path));
  if (now_.names.count(path) == 0) return Missing(path);
  for (const auto& [name, inode] : now_.names) {
    if (DirectoryOf(name) == path) {
      return UnavailableError(StrCat(path, ": the directory is not empty"));
    }
  }
  Do({.kind = Change::Kind::kUnname, .path = path});
  return OkStatus();
}

StatusOr<std::unique_ptr<Directory>> SimulatedDisk::OpenDirectory(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kOpenDirectory, path));
  if (!now_.HasDirectory(path)) return Missing(path);
  return std::make_unique<SimulatedDirectory>(this, path);
}

Status SimulatedDisk::CreateDirectory(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kCreateDirectory, path));
  EMBANK_RETURN_IF_ERROR(CheckWritable(path));
  if (now_.names.count(path) == 1) return AlreadyExistsError(StrCat(path, ": exists"));
  EMBANK_RETURN_IF_ERROR(CheckParent(path));
  Do({.kind = Change::Kind::kName, .path = path});
  return OkStatus();
}

StatusOr<std::vector<std::string>> SimulatedDisk::List(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kList, path));
  if (!now_.HasDirectory(path)) return Missing(path);
  std::vector<std::string> names;
  for (const auto& [name, inode] : now_.names) {
    if (DirectoryOf(name) == path) names.push_back(name.substr(name.rfind('/') + 1));
  }
  return names;
}

Status SimulatedDisk::SyncDirectory(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  Status status = Admit(DiskCall::Kind::kSyncDirectory, path);
  if (IsCancelled(status)) return status;
  if (!now_.HasDirectory(path)) return status.ok() ? Missing(path) : status;
  // Then nothing was tried (base/files/file_system.h).
  if (IsResourceExhausted(status)) return status;
  Do({.kind = status.ok() ? Change::Kind::kSyncDirectory : Change::Kind::kSyncDirectoryFailed,
      .path = path});
  return status;
}

StatusOr<uint64_t> SimulatedDisk::FreeBytes(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kFreeBytes, path));
  if (!now_.HasDirectory(path) && now_.names.count(path) == 0) return Missing(path);
  return SpareBytes();
}

StatusOr<std::unique_ptr<FileLock>> SimulatedDisk::Lock(const std::string& path, bool shared) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLock, path));
  if (!shared) EMBANK_RETURN_IF_ERROR(CheckWritable(path));
  const auto found = now_.names.find(path);
  if (found == now_.names.end() || found->second == 0) return Missing(path);
  if (!now_.inodes[found->second].locks.Take(shared)) return LockedElsewhere(path);
  return std::make_unique<SimulatedLock>(this, found->second, path, shared);
}

StatusOr<std::unique_ptr<FileLock>> SimulatedDisk::LockDirectory(const std::string& path,
                                                                 bool shared) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLockDirectory, path));
  if (!now_.HasDirectory(path)) return Missing(path);
  if (!directory_locks_[path].Take(shared)) return LockedElsewhere(path);
  return std::make_unique<SimulatedLock>(this, 0, path, shared);
}

bool SimulatedDisk::Locks::Take(bool is_shared) {
  if (alone || (!is_shared && shared > 0)) return false;
  shared += is_shared ? 1 : 0;
  alone = !is_shared;
  return true;
}

void SimulatedDisk::Locks::GiveUp(bool is_shared) {
  if (is_shared) --shared;
  if (!is_shared) alone = false;
}

void SimulatedDisk::Close(InodeNumber inode) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  Inode& closed = now_.inodes.at(inode);
  --closed.open_files;
  if (closed.open_files == 0) closed.is_mapped = false;
}

void SimulatedDisk::Unlock(InodeNumber inode, const std::string& path, bool shared) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  (inode == 0 ? directory_locks_[path] : now_.inodes[inode].locks).GiveUp(shared);
}

StatusOr<bool> SimulatedDisk::IsInPlace(InodeNumber inode, const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLockInPlace, path));
  const auto found = now_.names.find(path);
  return found != now_.names.end() && found->second == inode;
}

Status SimulatedDisk::ReadFile(InodeNumber inode, const std::string& path, uint64_t offset,
                               std::span<std::byte> into) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRead, path));
  const Bytes& contents = now_.inodes[inode].contents;
  if (into.size() > contents.size() || offset > contents.size() - into.size()) {
    return OutOfRangeError(StrCat(path, ": ends at byte ", contents.size()));
  }
  std::copy_n(contents.begin() + static_cast<ptrdiff_t>(offset), into.size(), into.begin());
  return OkStatus();
}

Status SimulatedDisk::WriteFile(InodeNumber inode, const std::string& path, uint64_t offset,
                                std::span<const std::byte> bytes, bool is_mapped) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  Status status = Admit(DiskCall::Kind::kWrite, path);
  if (IsCancelled(status)) return status;
  if (status.ok()) status = CheckSpace(inode, path, offset, offset + bytes.size());
  Change write = {.kind = Change::Kind::kWrite,
                  .inode = inode,
                  .offset = offset,
                  .bytes = Bytes(bytes.begin(), bytes.end()),
                  .is_mapped = is_mapped,
                  .path = path};
  if (status.ok()) {
    Do(std::move(write));
    return status;
  }
  const TakenRuns& taken = now_.inodes.at(inode).taken;
  const uint64_t spare_bytes = SpareBytes();
  uint64_t fits = write.bytes.size();
  while (fits - taken.BytesIn(offset, offset + fits) > spare_bytes) {
    fits = spare_bytes + taken.BytesIn(offset, offset + fits);
  }
  if (fits == 0) return status;
  write.bytes.resize(fits);
  Random random(calls_);
  for (Change& piece : PiecesOf(write, &random)) Do(std::move(piece));
  return status;
}

Status SimulatedDisk::Grow(InodeNumber inode, const std::string& path, uint64_t offset,
                           uint64_t bytes) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kPreallocate, path));
  const uint64_t end = offset + bytes;
  const Inode& grown = now_.inodes[inode];
  const bool has_space = grown.taken.BytesIn(offset, end) == bytes;
  if (has_space && end <= grown.contents.size()) return OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckSpace(inode, path, offset, end));
  Do({.kind = Change::Kind::kGrow, .inode = inode, .offset = end, .begin = offset, .path = path});
  return OkStatus();
}

Status SimulatedDisk::SyncFile(InodeNumber inode, const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  Status status = Admit(DiskCall::Kind::kSync, path);
  if (IsCancelled(status)) return status;
  Do({.kind = status.ok() ? Change::Kind::kSync : Change::Kind::kSyncFailed,
      .inode = inode,
      .path = path});
  if (status.ok()) ++syncs_;
  return status;
}

std::span<const std::byte> SimulatedDisk::MapFile(InodeNumber inode) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  Inode& mapped = now_.inodes.at(inode);
  mapped.is_mapped = true;
  return mapped.contents;
}

StatusOr<uint64_t> SimulatedDisk::SizeOf(InodeNumber inode, const std::string& path, bool taken) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kSize, path));
  const Inode& file = now_.inodes.at(inode);
  return taken ? file.taken.bytes() : file.contents.size();
}

void SimulatedDisk::State::Apply(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kWrite: {
      Bytes& contents = inodes[change.inode].contents;
      contents.resize(std::max(contents.size(), change.offset + change.bytes.size()));
      std::copy(change.bytes.begin(), change.bytes.end(),
                contents.begin() + static_cast<ptrdiff_t>(change.offset));
      inodes[change.inode].taken.Add(change.offset, change.offset + change.bytes.size());
      return;
    }
    case Change::Kind::kGrow: {
      Bytes& contents = inodes[change.inode].contents;
      contents.resize(std::max<size_t>(contents.size(), change.offset));
      inodes[change.inode].taken.Add(change.begin, change.offset);
      return;
    }
    case Change::Kind::kName:
      names[change.path] = change.inode;
      if (change.inode != 0) inodes.try_emplace(change.inode);
      return;
    case Change::Kind::kUnname:
      names.erase(change.path);
      return;
    case Change::Kind::kRename:
      names.erase(change.from);
      names[change.path] = change.inode;
      inodes.try_emplace(change.inode);
      return;
    case Change::Kind::kRot: {
      Bytes& contents = inodes[change.inode].contents;
      const size_t begin = std::min<size_t>(contents.size(), change.offset);
      const size_t count = std::min(contents.size() - begin, change.bytes.size());
      std::copy_n(change.bytes.begin(), count, contents.begin() + static_cast<ptrdiff_t>(begin));
      return;
    }
    case Change::Kind::kCut: {
      Bytes& contents = inodes[change.inode].contents;
      contents.resize(std::min<size_t>(contents.size(), change.offset));
      inodes[change.inode].taken.Cut(change.offset);
      return;
    }
    case Change::Kind::kSync:
    case Change::Kind::kSyncFailed:
    case Change::Kind::kSyncDirectory:
    case Change::Kind::kSyncDirectoryFailed:
      return;
  }
}

bool SimulatedDisk::State::HasDirectory(const std::string& path) const {
  if (path == "." || path == "/") return true;
  const auto found = names.find(path);
  return found != names.end() && found->second == 0;
}

// ---- faults, contents ----

void SimulatedDisk::SetFaults(FaultPlan plan) {
  MutexLock lock(&mutex_);
  faults_ = std::move(plan);
}

void SimulatedDisk::SetReadOnly(bool is_read_only) {
  MutexLock lock(&mutex_);
  is_read_only_ = is_read_only;
}

void SimulatedDisk::SetCapacity(uint64_t bytes) {
  MutexLock lock(&mutex_);
  capacity_bytes_ = bytes;
}

void SimulatedDisk::Corrupt(const std::string& path, uint64_t offset,
                            std::span<const std::byte> bytes) {
  MutexLock lock(&mutex_);
  const InodeNumber inode = now_.names.at(path);
  EMBANK_CHECK(offset + bytes.size() <= now_.inodes.at(inode).contents.size());
  Do({.kind = Change::Kind::kRot,
      .inode = inode,
      .offset = offset,
      .bytes = Bytes(bytes.begin(), bytes.end()),
      .path = path});
}

void SimulatedDisk::Truncate(const std::string& path, uint64_t bytes) {
  MutexLock lock(&mutex_);
  Do({.kind = Change::Kind::kCut, .inode = now_.names.at(path), .offset = bytes, .path = path});
}

std::vector<std::string> SimulatedDisk::Files() const {
  MutexLock lock(&mutex_);
  std::vector<std::string> files;
  for (const auto& [name, inode] : now_.names) {
    if (inode != 0) files.push_back(name);
  }
  return files;
}

std::vector<std::byte> SimulatedDisk::Contents(const std::string& path) const {
  MutexLock lock(&mutex_);
  return now_.inodes.at(now_.names.at(path)).contents;
}

uint64_t SimulatedDisk::TakenBytes(const std::string& path) const {
  MutexLock lock(&mutex_);
  return now_.inodes.at(now_.names.at(path)).taken.bytes();
}

size_t SimulatedDisk::NamesOf(const std::string& path) const {
  MutexLock lock(&mutex_);
  const InodeNumber inode = now_.names.at(path);
  return static_cast<size_t>(std::count_if(now_.names.begin(), now_.names.end(),
                                           [&](const auto& name) { return name.second == inode; }));
}

uint64_t SimulatedDisk::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

uint64_t SimulatedDisk::syncs() const {
  MutexLock lock(&mutex_);
  return syncs_;
}

}  // namespace embank::test
