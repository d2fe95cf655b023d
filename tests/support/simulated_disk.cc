#include "tests/support/simulated_disk.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"

namespace embank::test {
namespace {

std::string ParentOf(const std::string& path) {
  const size_t slash = path.rfind('/');
  return slash == std::string::npos ? "" : path.substr(0, slash);
}

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": no such file or directory"));
}

}  // namespace

// ---- open files and locks ----

class SimulatedFile final : public File {
 public:
  SimulatedFile(SimulatedDisk* disk, uint64_t inode, std::string path, bool direct, bool writable)
      : disk_(disk), inode_(inode), path_(std::move(path)), direct_(direct), writable_(writable) {}

  absl::Status Read(uint64_t offset, std::span<std::byte> into) override {
    CheckBlocks(offset, into);
    return disk_->ReadFile(inode_, path_, offset, into);
  }
  absl::Status Write(uint64_t offset, std::span<const std::byte> bytes) override {
    CheckBlocks(offset, bytes);
    EMBANK_CHECK(writable_);
    return disk_->WriteFile(inode_, path_, offset, bytes);
  }
  absl::Status Preallocate(uint64_t bytes) override {
    EMBANK_CHECK(writable_);
    return disk_->Grow(inode_, path_, bytes);
  }
  absl::Status Sync() override { return disk_->SyncFile(inode_, path_); }
  absl::StatusOr<uint64_t> SizeBytes() override { return disk_->SizeOf(inode_); }
  bool direct() const override { return direct_; }

 private:
  void CheckBlocks(uint64_t offset, std::span<const std::byte> bytes) const {
    const uint64_t all = offset | bytes.size() | reinterpret_cast<uintptr_t>(bytes.data());
    EMBANK_CHECK(!direct_ || all % kBlockBytes == 0);
  }

  SimulatedDisk* const disk_;
  const uint64_t inode_;
  const std::string path_;
  const bool direct_;
  const bool writable_;
};

class SimulatedLock final : public FileLock {
 public:
  SimulatedLock(SimulatedDisk* disk, uint64_t inode, bool shared)
      : disk_(disk), inode_(inode), shared_(shared) {}
  ~SimulatedLock() override { disk_->Unlock(inode_, shared_); }

 private:
  SimulatedDisk* const disk_;
  const uint64_t inode_;
  const bool shared_;
};

// ---- the calls ----

absl::Status SimulatedDisk::Admit(DiskCall::Kind kind, const std::string& path) {
  ++calls_;
  return faults_ == nullptr ? absl::OkStatus() : faults_({kind, path, calls_});
}

void SimulatedDisk::Do(Change change) {
  now_.Apply(change);
  changes_.push_back(std::move(change));
}

absl::Status SimulatedDisk::CheckParent(const std::string& path) const {
  const std::string parent = ParentOf(path);
  if (parent.empty()) return absl::OkStatus();
  const auto found = now_.names.find(parent);
  return found != now_.names.end() && found->second == 0 ? absl::OkStatus() : Missing(parent);
}

uint64_t SimulatedDisk::UsedBytes() const {
  std::set<InodeNumber> named;
  for (const auto& [name, inode] : now_.names) named.insert(inode);
  uint64_t bytes = 0;
  for (const auto& [number, inode] : now_.inodes) {
    if (named.count(number) == 1) bytes += inode.contents.size();
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::Open(const std::string& path,
                                                          FileAccess access, FileCaching caching) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kOpen, path));
  const auto found = now_.names.find(path);
  InodeNumber inode = 0;
  if (access == FileAccess::kCreate) {
    if (found != now_.names.end()) return absl::AlreadyExistsError(absl::StrCat(path, ": exists"));
    EMBANK_RETURN_IF_ERROR(CheckParent(path));
    inode = next_inode_++;
    Do({.kind = Change::Kind::kName, .inode = inode, .path = path});
  } else {
    if (found == now_.names.end() || found->second == 0) return Missing(path);
    inode = found->second;
  }
  return std::make_unique<SimulatedFile>(this, inode, path, caching == FileCaching::kDirect,
                                         access != FileAccess::kRead);
}

void SimulatedDisk::TransferAll(std::span<Transfer> transfers) {
  for (Transfer& transfer : transfers) {
    transfer.status = transfer.kind == Transfer::Kind::kRead
                          ? transfer.file->Read(transfer.offset, transfer.bytes)
                          : transfer.file->Write(transfer.offset, transfer.bytes);
  }
}

absl::Status SimulatedDisk::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRename, from));
  const auto found = now_.names.find(from);
  if (found == now_.names.end()) return Missing(from);
  EMBANK_RETURN_IF_ERROR(CheckParent(to));
  Do({.kind = Change::Kind::kRename, .inode = found->second, .path = to, .from = from});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Link(const std::string& from, const std::string& to) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLink, from));
  const auto found = now_.names.find(from);
  if (found == now_.names.end() || found->second == 0) return Missing(from);
  if (now_.names.count(to) == 1) return absl::AlreadyExistsError(absl::StrCat(to, ": exists"));
  EMBANK_RETURN_IF_ERROR(CheckParent(to));
  Do({.kind = Change::Kind::kName, .inode = found->second, .path = to});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Remove(const std::string& path) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRemove, path));
  if (now_.names.count(path) == 0) return Missing(path);
  Do({.kind = Change::Kind::kUnname, .path = path});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::CreateDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kCreateDirectory, path));
  if (now_.names.count(path) == 1) return absl::AlreadyExistsError(absl::StrCat(path, ": exists"));
  EMBANK_RETURN_IF_ERROR(CheckParent(path));
  Do({.kind = Change::Kind::kName, .path = path});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SimulatedDisk::List(const std::string& path) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kList, path));
  const auto found = now_.names.find(path);
  if (found == now_.names.end() || found->second != 0) return Missing(path);
  std::vector<std::string> names;
  for (const auto& [name, inode] : now_.names) {
    if (ParentOf(name) == path && name != path) names.push_back(name.substr(path.size() + 1));
  }
  return names;
}

absl::Status SimulatedDisk::SyncDirectory(const std::string& path) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kSyncDirectory, path));
  Do({.kind = Change::Kind::kSyncDirectory, .path = path});
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> SimulatedDisk::FreeBytes(const std::string& /*path*/) {
  MutexLock lock(&mutex_);
  return capacity_bytes_ - std::min(capacity_bytes_, UsedBytes());
}

absl::StatusOr<std::unique_ptr<FileLock>> SimulatedDisk::Lock(const std::string& path,
                                                              bool shared) {
  MutexLock lock(&mutex_);
  const auto found = now_.names.find(path);
  if (found == now_.names.end() || found->second == 0) return Missing(path);
  Inode& inode = now_.inodes[found->second];
  if (inode.locked_alone || (!shared && inode.shared_locks > 0)) {
    return absl::UnavailableError(absl::StrCat(path, ": locked by somebody else"));
  }
  inode.shared_locks += shared ? 1 : 0;
  inode.locked_alone = !shared;
  return std::make_unique<SimulatedLock>(this, found->second, shared);
}

void SimulatedDisk::Unlock(InodeNumber inode, bool shared) {
  MutexLock lock(&mutex_);
  if (shared) --now_.inodes[inode].shared_locks;
  if (!shared) now_.inodes[inode].locked_alone = false;
}

absl::Status SimulatedDisk::ReadFile(InodeNumber inode, const std::string& path, uint64_t offset,
                                     std::span<std::byte> into) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRead, path));
  const Bytes& contents = now_.inodes[inode].contents;
  if (offset + into.size() > contents.size()) {
    return absl::OutOfRangeError(absl::StrCat(path, ": ends before byte ", offset + into.size()));
  }
  std::copy_n(contents.begin() + static_cast<ptrdiff_t>(offset), into.size(), into.begin());
  return absl::OkStatus();
}

absl::Status SimulatedDisk::WriteFile(InodeNumber inode, const std::string& path, uint64_t offset,
                                      std::span<const std::byte> bytes) {
  MutexLock lock(&mutex_);
  absl::Status status = Admit(DiskCall::Kind::kWrite, path);
  const uint64_t size = now_.inodes[inode].contents.size();
  const uint64_t grows = offset + bytes.size() - std::min(size, offset + bytes.size());
  if (status.ok() && grows > capacity_bytes_ - std::min(capacity_bytes_, UsedBytes())) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no space left on the disk"));
  }
  // Of a write that fails any part may be there.
  const size_t done = status.ok() ? bytes.size() : Random(calls_).Below(bytes.size() + 1);
  if (done > 0) {
    const auto part = bytes.first(done);
    Do({.kind = Change::Kind::kWrite,
        .inode = inode,
        .offset = offset,
        .bytes = Bytes(part.begin(), part.end()),
        .path = path});
  }
  return status;
}

absl::Status SimulatedDisk::Grow(InodeNumber inode, const std::string& path, uint64_t bytes) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kPreallocate, path));
  const uint64_t size = now_.inodes[inode].contents.size();
  if (bytes <= size) return absl::OkStatus();
  if (bytes - size > capacity_bytes_ - std::min(capacity_bytes_, UsedBytes())) {
    return absl::ResourceExhaustedError(absl::StrCat(path, ": no space left on the disk"));
  }
  Do({.kind = Change::Kind::kGrow, .inode = inode, .offset = bytes, .path = path});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::SyncFile(InodeNumber inode, const std::string& path) {
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kSync, path));
  Do({.kind = Change::Kind::kSync, .inode = inode, .path = path});
  return absl::OkStatus();
}

uint64_t SimulatedDisk::SizeOf(InodeNumber inode) const {
  MutexLock lock(&mutex_);
  return now_.inodes.at(inode).contents.size();
}

void SimulatedDisk::State::Apply(const Change& change) {
  switch (change.kind) {
    case Change::Kind::kWrite: {
      Bytes& contents = inodes[change.inode].contents;
      contents.resize(std::max(contents.size(), change.offset + change.bytes.size()));
      std::copy(change.bytes.begin(), change.bytes.end(),
                contents.begin() + static_cast<ptrdiff_t>(change.offset));
      return;
    }
    case Change::Kind::kGrow: {
      Bytes& contents = inodes[change.inode].contents;
      contents.resize(std::max<size_t>(contents.size(), change.offset));
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
      return;
    case Change::Kind::kSync:
    case Change::Kind::kSyncDirectory:
      return;
  }
}

// ---- faults, contents ----

void SimulatedDisk::SetFaults(FaultPlan plan) {
  MutexLock lock(&mutex_);
  faults_ = std::move(plan);
}

void SimulatedDisk::SetCapacity(uint64_t bytes) {
  MutexLock lock(&mutex_);
  capacity_bytes_ = bytes;
}

void SimulatedDisk::Corrupt(const std::string& path, uint64_t offset,
                            std::span<const std::byte> bytes) {
  MutexLock lock(&mutex_);
  Bytes& contents = now_.inodes.at(now_.names.at(path)).contents;
  EMBANK_CHECK(offset + bytes.size() <= contents.size());
  std::copy(bytes.begin(), bytes.end(), contents.begin() + static_cast<ptrdiff_t>(offset));
  begin_ = now_;
  changes_.clear();
}

void SimulatedDisk::Truncate(const std::string& path, uint64_t bytes) {
  MutexLock lock(&mutex_);
  now_.inodes.at(now_.names.at(path)).contents.resize(bytes);
  begin_ = now_;
  changes_.clear();
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

uint64_t SimulatedDisk::calls() const {
  MutexLock lock(&mutex_);
  return calls_;
}

// ---- crashes ----

size_t SimulatedDisk::changes() const {
  MutexLock lock(&mutex_);
  return changes_.size();
}

void SimulatedDisk::Forget() {
  MutexLock lock(&mutex_);
  begin_ = now_;
  changes_.clear();
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::AfterCrash(size_t change, Persistence persistence,
                                                         uint64_t seed) const {
  auto left = std::make_unique<SimulatedDisk>();
  MutexLock lock(&mutex_);
  EMBANK_CHECK(change <= changes_.size());
  // From the last to the first: whether something later makes it durable.
  std::vector<bool> durable(change);
  std::set<InodeNumber> synced;
  std::set<std::string> synced_directories;
  size_t in_doubt = 0;
  for (size_t i = change; i-- > 0;) {
    const Change& at = changes_[i];
    if (at.kind == Change::Kind::kSync) synced.insert(at.inode);
    if (at.kind == Change::Kind::kSyncDirectory) synced_directories.insert(at.path);
    const bool of_file = at.kind == Change::Kind::kWrite || at.kind == Change::Kind::kGrow;
    durable[i] =
        of_file ? synced.count(at.inode) == 1 : synced_directories.count(ParentOf(at.path)) == 1;
    in_doubt += durable[i] ? 0 : 1;
  }
  Random random(seed);
  size_t lost_one = in_doubt == 0 ? 0 : random.Below(in_doubt);
  State state = begin_;
  for (size_t i = 0; i < change; ++i) {
    const bool drawn = random.OneIn(2);
    const bool lost = persistence == Persistence::kNone ||
                      (persistence == Persistence::kAllButOne && lost_one == 0) ||
                      (persistence >= Persistence::kSome && drawn);
    if (!durable[i]) --lost_one;  // wraps below zero
    if (!durable[i] && lost) continue;
    Change kept = changes_[i];
    if (!durable[i] && persistence == Persistence::kTorn && kept.kind == Change::Kind::kWrite) {
      // A part of it, from its begin or to its end.
      const size_t length = random.Below(kept.bytes.size() + 1);
      if (random.OneIn(2)) {
        kept.offset += kept.bytes.size() - length;
        kept.bytes.erase(kept.bytes.begin(), kept.bytes.end() - static_cast<ptrdiff_t>(length));
      } else {
        kept.bytes.resize(length);
      }
    }
    state.Apply(kept);
  }
  MutexLock left_lock(&left->mutex_);
  for (auto& [number, inode] : state.inodes) inode.shared_locks = 0, inode.locked_alone = false;
  left->now_ = state;
  left->begin_ = std::move(state);
  left->next_inode_ = next_inode_;
  return left;
}

}  // namespace embank::test
