#include "tests/support/simulated_disk.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "tests/support/unfaulted.h"

namespace embank::test {
namespace {

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": no such file or directory"));
}

}  // namespace

// ---- open files and locks ----

class SimulatedFile final : public File {
 public:
  SimulatedFile(SimulatedDisk* disk, uint64_t inode, std::string path, bool direct, bool writable)
      : disk_(disk), inode_(inode), path_(std::move(path)), direct_(direct), writable_(writable) {}
  ~SimulatedFile() override { disk_->Close(inode_); }

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
  absl::StatusOr<uint64_t> SizeBytes() override { return disk_->SizeOf(inode_, path_); }
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

absl::Status SimulatedDisk::CheckWritable(const std::string& path) const {
  if (!is_read_only_) return absl::OkStatus();
  return absl::PermissionDeniedError(absl::StrCat(path, ": the file system is read-only"));
}

absl::Status SimulatedDisk::CheckParent(const std::string& path) const {
  const std::string parent = DirectoryOf(path);
  return now_.HasDirectory(parent) ? absl::OkStatus() : Missing(parent);
}

uint64_t SimulatedDisk::SpareBytes() const {
  std::set<InodeNumber> named;
  for (const auto& [name, inode] : now_.names) named.insert(inode);
  uint64_t used_bytes = 0;
  for (const auto& [number, inode] : now_.inodes) {
    const bool exists = named.count(number) == 1 || inode.open_files > 0;
    if (exists) used_bytes += inode.contents.size();
  }
  return capacity_bytes_ - std::min(capacity_bytes_, used_bytes);
}

uint64_t SimulatedDisk::LengthMax(InodeNumber inode) const {
  return now_.inodes.at(inode).contents.size() + SpareBytes();
}

absl::Status SimulatedDisk::CheckSpace(InodeNumber inode, const std::string& path,
                                       uint64_t length) const {
  if (length <= LengthMax(inode)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(path, ": no space left on the disk"));
}

absl::StatusOr<std::unique_ptr<File>> SimulatedDisk::Open(const std::string& path,
                                                          FileAccess access, FileCaching caching) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kOpen, path));
  if (access != FileAccess::kRead) EMBANK_RETURN_IF_ERROR(CheckWritable(path));
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
  ++now_.inodes.at(inode).open_files;
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
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Link(const std::string& from, const std::string& to) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLink, from));
  EMBANK_RETURN_IF_ERROR(CheckWritable(from));
  const auto found = now_.names.find(from);
  if (found == now_.names.end() || found->second == 0) return Missing(from);
  if (now_.names.count(to) == 1) return absl::AlreadyExistsError(absl::StrCat(to, ": exists"));
  EMBANK_RETURN_IF_ERROR(CheckParent(to));
  Do({.kind = Change::Kind::kName, .inode = found->second, .path = to});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::Remove(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRemove, path));
  EMBANK_RETURN_IF_ERROR(CheckWritable(path));
  if (now_.names.count(path) == 0) return Missing(path);
  for (const auto& [name, inode] : now_.names) {
    if (DirectoryOf(name) == path) {
      return absl::UnavailableError(absl::StrCat(path, ": the directory is not empty"));
    }
  }
  Do({.kind = Change::Kind::kUnname, .path = path});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::CreateDirectory(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kCreateDirectory, path));
  EMBANK_RETURN_IF_ERROR(CheckWritable(path));
  if (now_.names.count(path) == 1) return absl::AlreadyExistsError(absl::StrCat(path, ": exists"));
  EMBANK_RETURN_IF_ERROR(CheckParent(path));
  Do({.kind = Change::Kind::kName, .path = path});
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> SimulatedDisk::List(const std::string& path) {
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

absl::Status SimulatedDisk::SyncDirectory(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  absl::Status status = Admit(DiskCall::Kind::kSyncDirectory, path);
  if (absl::IsCancelled(status)) return status;
  if (!now_.HasDirectory(path)) return status.ok() ? Missing(path) : status;
  Do({.kind = status.ok() ? Change::Kind::kSyncDirectory : Change::Kind::kSyncDirectoryFailed,
      .path = path});
  return status;
}

absl::StatusOr<uint64_t> SimulatedDisk::FreeBytes(const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kFreeBytes, path));
  if (!now_.HasDirectory(path) && now_.names.count(path) == 0) return Missing(path);
  return SpareBytes();
}

absl::StatusOr<std::unique_ptr<FileLock>> SimulatedDisk::Lock(const std::string& path,
                                                              bool shared) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kLock, path));
  if (!shared) EMBANK_RETURN_IF_ERROR(CheckWritable(path));
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

void SimulatedDisk::Close(InodeNumber inode) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  --now_.inodes.at(inode).open_files;
}

void SimulatedDisk::Unlock(InodeNumber inode, bool shared) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  if (shared) --now_.inodes[inode].shared_locks;
  if (!shared) now_.inodes[inode].locked_alone = false;
}

absl::Status SimulatedDisk::ReadFile(InodeNumber inode, const std::string& path, uint64_t offset,
                                     std::span<std::byte> into) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kRead, path));
  const Bytes& contents = now_.inodes[inode].contents;
  if (into.size() > contents.size() || offset > contents.size() - into.size()) {
    return absl::OutOfRangeError(absl::StrCat(path, ": ends at byte ", contents.size()));
  }
  std::copy_n(contents.begin() + static_cast<ptrdiff_t>(offset), into.size(), into.begin());
  return absl::OkStatus();
}

absl::Status SimulatedDisk::WriteFile(InodeNumber inode, const std::string& path, uint64_t offset,
                                      std::span<const std::byte> bytes) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  absl::Status status = Admit(DiskCall::Kind::kWrite, path);
  if (absl::IsCancelled(status)) return status;
  if (status.ok()) status = CheckSpace(inode, path, offset + bytes.size());
  Change write = {.kind = Change::Kind::kWrite,
                  .inode = inode,
                  .offset = offset,
                  .bytes = Bytes(bytes.begin(), bytes.end()),
                  .path = path};
  if (status.ok()) {
    Do(std::move(write));
    return status;
  }
  const uint64_t length_max = LengthMax(inode);
  if (offset >= length_max) return status;
  write.bytes.resize(std::min<uint64_t>(write.bytes.size(), length_max - offset));
  Random random(calls_);
  for (Change& piece : PiecesOf(write, &random)) Do(std::move(piece));
  return status;
}

absl::Status SimulatedDisk::Grow(InodeNumber inode, const std::string& path, uint64_t bytes) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kPreallocate, path));
  if (bytes <= now_.inodes[inode].contents.size()) return absl::OkStatus();
  EMBANK_RETURN_IF_ERROR(CheckSpace(inode, path, bytes));
  Do({.kind = Change::Kind::kGrow, .inode = inode, .offset = bytes, .path = path});
  return absl::OkStatus();
}

absl::Status SimulatedDisk::SyncFile(InodeNumber inode, const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  absl::Status status = Admit(DiskCall::Kind::kSync, path);
  if (absl::IsCancelled(status)) return status;
  Do({.kind = status.ok() ? Change::Kind::kSync : Change::Kind::kSyncFailed,
      .inode = inode,
      .path = path});
  return status;
}

absl::StatusOr<uint64_t> SimulatedDisk::SizeOf(InodeNumber inode, const std::string& path) {
  const Unfaulted own;
  MutexLock lock(&mutex_);
  EMBANK_RETURN_IF_ERROR(Admit(DiskCall::Kind::kSize, path));
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

// What is left of a write that was under way: pieces of it, of sectors or cut at any byte; its
// length, if it made the file longer, may stay without them.
std::vector<SimulatedDisk::Change> SimulatedDisk::PiecesOf(const Change& write, Random* random) {
  constexpr uint64_t kSectorBytes = 512;
  const uint64_t end = write.offset + write.bytes.size();
  std::vector<Change> pieces;
  const auto keep = [&](uint64_t from, uint64_t to) {
    Change piece = write;
    piece.offset = from;
    piece.bytes.assign(write.bytes.begin() + static_cast<ptrdiff_t>(from - write.offset),
                       write.bytes.begin() + static_cast<ptrdiff_t>(to - write.offset));
    if (from < to) pieces.push_back(std::move(piece));
  };
  if (random->OneIn(2)) {
    Change length = write;
    length.kind = Change::Kind::kGrow;
    length.offset = end;
    pieces.push_back(std::move(length));
  }
  const uint64_t cut = write.offset + random->Below(write.bytes.size() + 1);
  switch (random->Below(4)) {
    case 0:
      keep(write.offset, cut);
      break;
    case 1:
      keep(cut, end);
      break;
    case 2: {  // all but one sector
      const uint64_t hole = cut / kSectorBytes * kSectorBytes;
      keep(write.offset, std::clamp(hole, write.offset, end));
      keep(std::clamp(hole + kSectorBytes, write.offset, end), end);
      break;
    }
    default:  // each sector drawn
      for (uint64_t from = write.offset; from < end;) {
        const uint64_t to = std::min(end, (from / kSectorBytes + 1) * kSectorBytes);
        if (random->OneIn(2)) keep(from, to);
        from = to;
      }
  }
  return pieces;
}

// Which changes something later among them has made durable; or that are so by themselves.
std::vector<bool> SimulatedDisk::DurableOf(std::span<const Change> changes) {
  using Kind = Change::Kind;
  std::vector<bool> durable(changes.size(), true);
  std::set<InodeNumber> synced;
  std::set<std::string> synced_directories;
  for (size_t i = changes.size(); i-- > 0;) {
    const Change& change = changes[i];
    switch (change.kind) {
      case Kind::kSync:
        synced.insert(change.inode);
        break;
      case Kind::kSyncFailed:
        synced.erase(change.inode);
        break;
      case Kind::kSyncDirectory:
        synced_directories.insert(change.path);
        break;
      case Kind::kSyncDirectoryFailed:
        synced_directories.erase(change.path);
        break;
      case Kind::kWrite:
      case Kind::kGrow:
        durable[i] = synced.count(change.inode) == 1;
        break;
      case Kind::kName:
      case Kind::kUnname:
      case Kind::kRename:
        durable[i] = synced_directories.count(DirectoryOf(change.path)) == 1;
        break;
      case Kind::kRot:
      case Kind::kCut:
        break;
    }
  }
  return durable;
}

std::string SimulatedDisk::ChangeName(size_t change) const {
  static constexpr const char* kNames[] = {"write",
                                           "growth",
                                           "sync",
                                           "failed sync",
                                           "name",
                                           "removal",
                                           "rename",
                                           "sync of a directory",
                                           "failed sync of a directory",
                                           "rot",
                                           "cut"};
  MutexLock lock(&mutex_);
  return kNames[static_cast<size_t>(changes_.at(change).kind)];
}

std::unique_ptr<SimulatedDisk> SimulatedDisk::AfterCrash(size_t change, Persistence persistence,
                                                         uint64_t seed) const {
  auto left = std::make_unique<SimulatedDisk>();
  MutexLock lock(&mutex_);
  EMBANK_CHECK(change <= changes_.size());
  const std::vector<bool> durable = DurableOf(std::span(changes_).first(change));
  const auto in_doubt = static_cast<uint64_t>(std::count(durable.begin(), durable.end(), false));
  uint64_t until_lost_one = in_doubt == 0 ? 0 : Random(seed).Below(in_doubt);
  State state = begin_;
  for (size_t i = 0; i < change; ++i) {
    if (durable[i]) {
      state.Apply(changes_[i]);
      continue;
    }
    // Of its own for each change: what becomes of one does not hang on the others.
    Random random(Random(seed).Bits() + i);
    const bool drawn = random.OneIn(2);
    const bool is_lost_one = until_lost_one-- == 0;  // wraps below zero
    const bool lost = persistence == Persistence::kNone ||
                      (persistence == Persistence::kAllButOne && is_lost_one) ||
                      (persistence >= Persistence::kSome && drawn);
    const bool torn = persistence == Persistence::kTorn && !lost && random.OneIn(2) &&
                      changes_[i].kind == Change::Kind::kWrite;
    if (torn) {
      for (const Change& piece : PiecesOf(changes_[i], &random)) state.Apply(piece);
    } else if (!lost) {
      state.Apply(changes_[i]);
    }
  }
  // Parents stand before what is in them.
  for (auto name = state.names.begin(); name != state.names.end();) {
    name = state.HasDirectory(DirectoryOf(name->first)) ? std::next(name) : state.names.erase(name);
  }
  for (auto& [number, inode] : state.inodes) {
    inode.open_files = 0;
    inode.shared_locks = 0;
    inode.locked_alone = false;
  }
  MutexLock left_lock(&left->mutex_);
  left->now_ = state;
  left->begin_ = std::move(state);
  left->next_inode_ = next_inode_;
  left->capacity_bytes_ = capacity_bytes_;
  return left;
}

}  // namespace embank::test
