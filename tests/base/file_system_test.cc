// The promises of every file system, tested on both ways of the real one, on mapped files and on
// the simulated ones.
#include "base/files/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/pmem/pmem_file_system.h"
#include "base/pmem/pmem_library.h"
#include "tests/support/blocks.h"
#include "tests/support/bytes.h"
#include "tests/support/files_by_path.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/simulated_disk.h"

namespace embank::test::file_system_test {
namespace {

enum class Kind { kRing, kOldRing, kThreads, kMapped, kSimulated, kSimulatedPmem };

bool IsRing(Kind kind) { return kind == Kind::kRing || kind == Kind::kOldRing; }

bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool HasRings() { return std::string_view(IoUringState()).starts_with("yes"); }

class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() {
    const Kind kind = GetParam();
    if (kind == Kind::kSimulated || kind == Kind::kSimulatedPmem) {
      files_ = std::make_unique<SimulatedDisk>(kind == Kind::kSimulated ? SimulatedMedium::kDisk
                                                                        : SimulatedMedium::kPmem);
      root_ = "/root";
      EXPECT_TRUE(files_->CreateDirectory(root_).ok());
    } else {
      files_ = MakePosixFileSystem({.use_io_uring = IsRing(GetParam()),
                                    .completions = GetParam() == Kind::kOldRing
                                                       ? IoCompletions::kInterrupting
                                                       : IoCompletions::kDeferred});
      root_ = directory_.path();
    }
    const StatusOr<PmemLibrary> library = LoadPmemLibrary();
    if (kind == Kind::kMapped && library.ok()) {
      base_ = std::move(files_);
      files_ = MakePmemFileSystem(base_.get(), *library);
    }
    held_ = OpenedDirectory(files_.get(), root_);
  }
  void SetUp() override {
    if (IsRing(GetParam()) && !HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
    if (GetParam() == Kind::kMapped && base_ == nullptr) GTEST_SKIP() << "no libpmem";
  }
  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  std::unique_ptr<File> Open(const std::string& name, FileAccess access,
                             FileCaching caching = FileCaching::kCached) {
    StatusOr<std::unique_ptr<File>> file = held_->Open(name, access, caching);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  StatusCode CodeOfOpen(const std::string& name, FileAccess access) {
    return held_->Open(name, access, FileCaching::kCached).status().code();
  }

  const ScratchDirectory directory_;
  std::unique_ptr<FileSystem> base_;  // of mapped files
  std::unique_ptr<FileSystem> files_;
  std::string root_;
  std::unique_ptr<Directory> held_;  // the root
};

TEST_P(FileSystemTest, KeepsWhatIsWritten) {
  const auto bytes = BytesOf("seven bytes and more");
  {
    const auto file = Open("a", FileAccess::kCreate);
    ASSERT_TRUE(file->Write(3, bytes).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  const auto file = Open("a", FileAccess::kRead);
  EXPECT_EQ(*file->SizeBytes(), 3 + bytes.size());
  std::vector<std::byte> read(3 + bytes.size(), std::byte{9});
  ASSERT_TRUE(file->Read(0, read).ok());
  EXPECT_EQ(read[2], std::byte{0}) << "a hole reads as zeros";
  EXPECT_TRUE(Same(std::span(read).subspan(3), bytes));
  EXPECT_FALSE(file->direct());
}

TEST_P(FileSystemTest, SaysWhereAFileEnds) {
  const auto file = Open("a", FileAccess::kCreate);
  ASSERT_TRUE(file->Write(0, BytesOf("12345")).ok());
  std::vector<std::byte> six(6);
  EXPECT_EQ(file->Read(0, six).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(9, std::span(six).first(1)).code(), StatusCode::kOutOfRange);
  EXPECT_TRUE(file->Read(0, std::span(six).first(5)).ok());
  EXPECT_TRUE(file->Read(5, {}).ok());
}

// The last block that the system gives is a part of one, which ends before the read does.
TEST_P(FileSystemTest, SaysWhereAFileEndsToDirectReaders) {
  ASSERT_TRUE(Open("a", FileAccess::kCreate)->Write(0, std::vector<std::byte>(5'000)).ok());
  const auto file = Open("a", FileAccess::kRead, FileCaching::kDirect);
  if (!file->direct()) GTEST_SKIP() << "no direct access in " << root_;
  Blocks read(3 * kBlockBytes);
  const std::span<std::byte> bytes = read.bytes();
  EXPECT_TRUE(file->Read(0, read.block(0)).ok());
  EXPECT_EQ(file->Read(0, bytes.first(2 * kBlockBytes)).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(kBlockBytes, read.block(1)).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(2 * kBlockBytes, read.block(2)).code(), StatusCode::kOutOfRange);
  std::vector<Transfer> reads;
  for (size_t i = 0; i < 3; ++i) {
    reads.push_back(
        {Transfer::Kind::kRead, file.get(), i * kBlockBytes, read.block(i), UnknownError("")});
  }
  files_->TransferAll(reads);
  EXPECT_TRUE(reads[0].status.ok()) << reads[0].status;
  EXPECT_EQ(reads[1].status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(reads[2].status.code(), StatusCode::kOutOfRange);
}

TEST_P(FileSystemTest, OpensWhatIsThereAndCreatesWhatIsNot) {
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kRead), StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kWrite), StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen("no/a", FileAccess::kCreate), StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kCreate), StatusCode::kOk);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kCreate), StatusCode::kAlreadyExists);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kWrite), StatusCode::kOk);
}

TEST_P(FileSystemTest, PreallocatesZeros) {
  const auto file = Open("a", FileAccess::kCreate);
  ASSERT_TRUE(file->Write(1, BytesOf("x")).ok());
  ASSERT_TRUE(file->Preallocate(10'000).ok());
  EXPECT_EQ(*file->SizeBytes(), 10'000u);
  ASSERT_TRUE(file->Preallocate(10).ok());
  ASSERT_TRUE(file->Preallocate(0).ok());
  EXPECT_EQ(*file->SizeBytes(), 10'000u) << "never shorter";
  std::vector<std::byte> read(10'000, std::byte{9});
  ASSERT_TRUE(file->Read(0, read).ok());
  EXPECT_EQ(read[1], std::byte{'x'});
  EXPECT_EQ(std::count(read.begin(), read.end(), std::byte{0}), 9'999);
}

TEST_P(FileSystemTest, TellsWhatItTakesAndARangeLeavesAHole) {
  constexpr uint64_t kHoleBytes = uint64_t{1} << 20;
  const bool is_mapped = GetParam() == Kind::kMapped || GetParam() == Kind::kSimulatedPmem;
  const auto file = Open("a", FileAccess::kCreate);
  EXPECT_EQ(*file->TakenBytes(), 0u);
  ASSERT_TRUE(file->PreallocateRange(kHoleBytes, 8192).ok());
  EXPECT_EQ(*file->SizeBytes(), kHoleBytes + 8192);
  EXPECT_GE(*file->TakenBytes(), is_mapped ? kHoleBytes : 8192u);
  EXPECT_TRUE(is_mapped || *file->TakenBytes() < kHoleBytes);
  ASSERT_TRUE(file->PreallocateRange(0, 8192).ok()) << "in the file";
  EXPECT_EQ(*file->SizeBytes(), kHoleBytes + 8192);
  EXPECT_GE(*file->TakenBytes(), 16'384u);
  std::vector<std::byte> read(kHoleBytes + 8192, std::byte{9});
  ASSERT_TRUE(file->Read(0, read).ok());
  EXPECT_EQ(std::count(read.begin(), read.end(), std::byte{0}), kHoleBytes + 8192);
}

TEST_P(FileSystemTest, RenamesLinksRemovesAndLists) {
  ASSERT_TRUE(Open("a", FileAccess::kCreate)->Write(0, BytesOf("a")).ok());
  ASSERT_TRUE(Open("b", FileAccess::kCreate)->Write(0, BytesOf("b")).ok());
  ASSERT_TRUE(held_->Link("b", held_.get(), "c").ok());
  EXPECT_EQ(held_->Link("b", held_.get(), "a").code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(held_->Rename("a", "b").ok()) << "takes the place of the other";
  EXPECT_EQ(held_->Rename("a", "d").code(), StatusCode::kNotFound);
  const auto content = [&](const std::string& name) {
    return static_cast<char>((*ReadWholeFile(held_.get(), name, 10)).at(0));
  };
  EXPECT_EQ(content("b"), 'a');
  EXPECT_EQ(content("c"), 'b');
  ASSERT_TRUE(files_->CreateDirectory(Path("sub")).ok());
  EXPECT_EQ(files_->CreateDirectory(Path("sub")).code(), StatusCode::kAlreadyExists);
  std::vector<std::string> names = *held_->List();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"b", "c", "sub"}));
  ASSERT_TRUE(held_->Remove("b").ok());
  EXPECT_EQ(held_->Remove("b").code(), StatusCode::kNotFound);
  EXPECT_EQ(files_->OpenDirectory(Path("none")).status().code(), StatusCode::kNotFound);
  EXPECT_TRUE(held_->Sync().ok());
}

TEST_P(FileSystemTest, AnOpenFileOutlivesItsName) {
  const auto file = Open("a", FileAccess::kCreate);
  ASSERT_TRUE(file->Write(0, BytesOf("still")).ok());
  ASSERT_TRUE(held_->Remove("a").ok());
  std::vector<std::byte> read(5);
  ASSERT_TRUE(file->Read(0, read).ok());
  EXPECT_TRUE(Same(read, BytesOf("still")));
}

TEST_P(FileSystemTest, LocksOneWriterOrManyReaders) {
  ASSERT_NE(Open("LOCK", FileAccess::kCreate), nullptr);
  const auto locked = [&](bool shared) { return held_->Lock("LOCK", shared); };
  {
    const auto first = locked(true);
    const auto second = locked(true);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(locked(false).status().code(), StatusCode::kUnavailable);
  }
  const auto alone = locked(false);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(locked(false).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(locked(true).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(held_->Lock("none", true).status().code(), StatusCode::kNotFound);
}

TEST_P(FileSystemTest, LocksADirectoryBesideItsFiles) {
  ASSERT_NE(Open("LOCK", FileAccess::kCreate), nullptr);
  const auto other = OpenedDirectory(files_.get(), root_);
  const auto file = held_->Lock("LOCK", false);
  ASSERT_TRUE(file.ok()) << file.status();
  {
    const auto first = held_->LockItself(true);
    if (IsUnimplemented(first.status())) GTEST_SKIP() << first.status();
    const auto second = other->LockItself(true);
    ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
    EXPECT_EQ(other->LockItself(false).status().code(), StatusCode::kUnavailable);
  }
  const auto alone = held_->LockItself(false);
  ASSERT_TRUE(alone.ok()) << alone.status();
  EXPECT_EQ(other->LockItself(false).status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(other->LockItself(true).status().code(), StatusCode::kUnavailable);
}

TEST_P(FileSystemTest, ALockSaysWhetherItsFileHasItsNameStill) {
  ASSERT_NE(Open("LOCK", FileAccess::kCreate), nullptr);
  const auto lock = held_->Lock("LOCK", false);
  ASSERT_TRUE(lock.ok());
  EXPECT_TRUE(*(*lock)->IsInPlace());
  ASSERT_TRUE(held_->Rename("LOCK", "aside").ok());
  EXPECT_FALSE(*(*lock)->IsInPlace());
  ASSERT_NE(Open("LOCK", FileAccess::kCreate), nullptr);
  EXPECT_FALSE(*(*lock)->IsInPlace()) << "another file";
  ASSERT_TRUE(held_->Rename("aside", "LOCK").ok());
  EXPECT_TRUE(*(*lock)->IsInPlace());
}

TEST_P(FileSystemTest, ADirectoryIsRemovedByWhoHoldsItOnceItIsEmpty) {
  ASSERT_TRUE(files_->CreateDirectory(Path("sub")).ok());
  const auto sub = OpenedDirectory(files_.get(), Path("sub"));
  ASSERT_TRUE(sub->Open("a", FileAccess::kCreate, FileCaching::kCached).ok());
  EXPECT_FALSE(sub->RemoveItself().ok());
  ASSERT_TRUE(sub->Remove("a").ok());
  EXPECT_TRUE(sub->SyncName().ok());
  EXPECT_TRUE(sub->RemoveItself().ok());
  EXPECT_TRUE(held_->List()->empty());
}

// 0, 1, many: less and more than a ring holds.
TEST_P(FileSystemTest, TransfersListsOfAnyLength) {
  constexpr size_t kBlocksMax = 700;
  const auto file = Open("a", FileAccess::kCreate, FileCaching::kDirect);
  ASSERT_TRUE(file->Preallocate(kBlocksMax * kBlockBytes).ok());
  Blocks written(kBlocksMax * kBlockBytes);
  Blocks read(kBlocksMax * kBlockBytes);
  for (const size_t count :
       {size_t{0}, size_t{1}, size_t{2}, size_t{33}, size_t{300}, kBlocksMax}) {
    written.Fill(count);
    std::vector<Transfer> writes;
    std::vector<Transfer> reads;
    for (size_t i = 0; i < count; ++i) {
      const uint64_t offset = (i * 9 + 3) % kBlocksMax * kBlockBytes;
      writes.push_back(
          {Transfer::Kind::kWrite, file.get(), offset, written.block(i), UnknownError("")});
      reads.push_back({Transfer::Kind::kRead, file.get(), offset, read.block(i), UnknownError("")});
    }
    files_->TransferAll(writes);
    files_->TransferAll(reads);
    for (size_t i = 0; i < count; ++i) {
      ASSERT_TRUE(writes[i].status.ok()) << writes[i].status;
      ASSERT_TRUE(reads[i].status.ok()) << reads[i].status;
      ASSERT_TRUE(Same(written.block(i), read.block(i))) << i << " of " << count;
    }
  }
}

TEST_P(FileSystemTest, EachTransferTellsItsOwnStatus) {
  const auto file = Open("a", FileAccess::kCreate);
  ASSERT_TRUE(file->Write(0, std::vector<std::byte>(3 * kBlockBytes, std::byte{5})).ok());
  Blocks read(8 * kBlockBytes);
  std::vector<Transfer> reads;
  for (size_t i = 0; i < 8; ++i) {
    reads.push_back({Transfer::Kind::kRead, file.get(), i * kBlockBytes - i / 2, read.block(i),
                     UnknownError("")});
  }
  files_->TransferAll(reads);
  for (size_t i = 0; i < 8; ++i) {
    const bool inside = reads[i].offset + kBlockBytes <= 3 * kBlockBytes;
    EXPECT_EQ(reads[i].status.code(), inside ? StatusCode::kOk : StatusCode::kOutOfRange) << i;
    if (inside) {
      EXPECT_EQ(read.block(i)[kBlockBytes - 1], std::byte{5});
    }
  }
}

TEST_P(FileSystemTest, ServesManyThreadsAtOnce) {
  constexpr size_t kBlocks = 64;
  const auto file = Open("a", FileAccess::kCreate, FileCaching::kDirect);
  Blocks written(kBlocks * kBlockBytes);
  written.Fill(1);
  ASSERT_TRUE(file->Write(0, written.bytes()).ok());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      Blocks read(kBlocks * kBlockBytes);
      for (int round = 0; round < 50; ++round) {
        std::vector<Transfer> reads;
        for (size_t i = 0; i < 1 + random.Below(kBlocks); ++i) {
          reads.push_back({Transfer::Kind::kRead, file.get(), random.Below(kBlocks) * kBlockBytes,
                           read.block(i), OkStatus()});
        }
        files_->TransferAll(reads);
        for (size_t i = 0; i < reads.size(); ++i) {
          const bool same = Same(read.block(i), written.block(reads[i].offset / kBlockBytes));
          if (!reads[i].status.ok() || !same) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

TEST_P(FileSystemTest, ReplacesAWholeFile) {
  for (const char* text : {"first", "the second, longer", "3rd"}) {
    ASSERT_TRUE(ReplaceFile(held_.get(), "m", BytesOf(text)).ok());
    EXPECT_TRUE(Same(*ReadWholeFile(held_.get(), "m", 100), BytesOf(text)));
  }
  EXPECT_EQ(held_->List()->size(), 1u);
  EXPECT_EQ(ReadWholeFile(held_.get(), "m", 2).status().code(), StatusCode::kOutOfRange);
  // The leftovers of an earlier attempt that crashed do not matter.
  ASSERT_NE(Open("m.new", FileAccess::kCreate), nullptr);
  ASSERT_TRUE(ReplaceFile(held_.get(), "m", BytesOf("x")).ok());
  EXPECT_EQ(held_->List()->size(), 1u);
}

std::string NameOf(Kind kind) {
  static constexpr const char* kNames[] = {"Ring",   "OldRing",   "Threads",
                                           "Mapped", "Simulated", "SimulatedPmem"};
  return kNames[static_cast<size_t>(kind)];
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest,
                         testing::Values(Kind::kRing, Kind::kOldRing, Kind::kThreads, Kind::kMapped,
                                         Kind::kSimulated, Kind::kSimulatedPmem),
                         [](const auto& kind) { return NameOf(kind.param); });

// ---- the real one ----

TEST(PosixFileSystem, ALengthBeyondTheProcesssLimitIsRefusedWithoutASignal) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file =
      *OpenByPath(files.get(), directory.path() + "/a", FileAccess::kCreate, FileCaching::kCached);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {10'000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(file->Preallocate(10'001).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(file->Write(9'990, BytesOf("eleven byte")).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(file->Write(9'990, BytesOf("ten bytes.")).ok());
  // The same of a list.
  Blocks written(4 * kBlockBytes);
  std::vector<Transfer> writes;
  for (size_t i = 0; i < 4; ++i) {
    writes.push_back(
        {Transfer::Kind::kWrite, file.get(), i * kBlockBytes, written.block(i), UnknownError("")});
  }
  files->TransferAll(writes);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(writes[i].status.code(), i < 2 ? StatusCode::kOk : StatusCode::kResourceExhausted)
        << i;
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

// The name is another directory's then, which nobody touches.
TEST(PosixFileSystem, AHeldDirectoryStaysTheSameWhateverBecomesOfItsName) {
  const ScratchDirectory scratch;
  const auto files = MakePosixFileSystem({});
  const std::string path = scratch.path() + "/d";
  ASSERT_TRUE(files->CreateDirectory(path).ok());
  const auto held = OpenedDirectory(files.get(), path);
  ASSERT_TRUE((*held->Open("a", FileAccess::kCreate, FileCaching::kCached))
                  ->Write(0, BytesOf("of the first"))
                  .ok());
  std::filesystem::rename(path, scratch.path() + "/moved");
  ASSERT_TRUE(files->CreateDirectory(path).ok());
  ASSERT_TRUE(ReplaceFile(held.get(), "b", BytesOf("b")).ok());
  EXPECT_TRUE(Same(*ReadWholeFile(held.get(), "a", 100), BytesOf("of the first")));
  EXPECT_TRUE(held->Rename("a", "c").ok());
  EXPECT_TRUE(held->Link("c", held.get(), "d").ok());
  EXPECT_TRUE(held->Remove("c").ok());
  std::vector<std::string> names = *held->List();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"b", "d"}));
  EXPECT_TRUE(held->SyncName().ok());
  ASSERT_TRUE(held->Remove("b").ok() && held->Remove("d").ok());
  EXPECT_EQ(held->RemoveItself().code(), StatusCode::kNotFound);
  EXPECT_TRUE(std::filesystem::is_empty(path)) << "nothing of it went there";
}

TEST(PosixFileSystem, WithoutDirectAccessAFileIsOpenedCached) {
  const auto files = MakePosixFileSystem({});
  const auto file =
      OpenByPath(files.get(), "/proc/self/status", FileAccess::kRead, FileCaching::kDirect);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->direct());
  std::vector<std::byte> name(5);
  ASSERT_TRUE((*file)->Read(0, name).ok());
  EXPECT_TRUE(Same(name, BytesOf("Name:")));
}

TEST(PosixFileSystem, WithoutDirectAccessAFileIsCreatedCached) {
  // A file system in memory; newer kernels have direct access there.
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
  const std::string name = "embank_file_system_test_" + std::to_string(getpid());
  const std::string path = "/dev/shm/" + name;
  const auto files = MakePosixFileSystem({});
  const auto file = OpenByPath(files.get(), path, FileAccess::kCreate, FileCaching::kDirect);
  const Status created_again =
      OpenByPath(files.get(), path, FileAccess::kCreate, FileCaching::kDirect).status();
  EXPECT_TRUE(OpenedDirectory(files.get(), "/dev/shm")->Remove(name).ok());
  ASSERT_TRUE(file.ok()) << file.status();
  if ((*file)->direct()) GTEST_SKIP() << "/dev/shm has direct access";
  EXPECT_TRUE((*file)->Write(1, BytesOf("not a block")).ok());
  EXPECT_EQ(created_again.code(), StatusCode::kAlreadyExists);
}

TEST(PosixFileSystem, AMissingFunctionOfAFileSystemIsUnimplementedAndNoFaultOfADevice) {
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
  const ScratchDirectory directory;
  const std::string name = "embank_file_system_test_" + std::to_string(getpid());
  const std::string path = "/dev/shm/" + name;
  const auto files = MakePosixFileSystem({});
  ASSERT_TRUE(OpenByPath(files.get(), path, FileAccess::kCreate, FileCaching::kCached).ok());
  const auto shm = OpenedDirectory(files.get(), "/dev/shm");
  const auto other = OpenedDirectory(files.get(), directory.path());
  const Status linked = shm->Link(name, other.get(), "linked");
  if (shm->Remove(name).ok() && linked.ok()) GTEST_SKIP() << "one file system";
  EXPECT_EQ(linked.code(), StatusCode::kUnimplemented) << linked;
}

// The same as for a file with as many names as it may have, or in a file system without links.
TEST(PosixFileSystem, ALinkThatTheSystemDoesNotMakeIsUnimplemented) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  ASSERT_TRUE(files->CreateDirectory(directory.path() + "/sub").ok());
  const auto held = OpenedDirectory(files.get(), directory.path());
  const Status linked = held->Link("sub", held.get(), "linked");
  EXPECT_EQ(linked.code(), StatusCode::kUnimplemented) << linked;
}

TEST(PosixFileSystem, ALockEndsWithItsProcess) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto held = OpenedDirectory(files.get(), directory.path());
  ASSERT_TRUE(held->Open("LOCK", FileAccess::kCreate, FileCaching::kCached).ok());
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto childs_files = MakePosixFileSystem({});
    const auto lock = OpenedDirectory(childs_files.get(), directory.path())->Lock("LOCK", false);
    const char locked = lock.ok() ? 'y' : 'n';
    if (write(pipe_ends[1], &locked, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char locked = 0;
  ASSERT_EQ(read(pipe_ends[0], &locked, 1), 1);
  EXPECT_EQ(locked, 'y');
  EXPECT_EQ(held->Lock("LOCK", false).status().code(), StatusCode::kUnavailable);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(held->Lock("LOCK", false).ok());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(PosixFileSystem, ALockThatIsGivenUpIsFreeThoughAForkedChildLives) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto held = OpenedDirectory(files.get(), directory.path());
  ASSERT_TRUE(held->Open("LOCK", FileAccess::kCreate, FileCaching::kCached).ok());
  auto lock = held->Lock("LOCK", false);
  ASSERT_TRUE(lock.ok());
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_FALSE(held->Lock("LOCK", false).ok());
  lock->reset();
  EXPECT_TRUE(held->Lock("LOCK", false).ok());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(PosixFileSystem, ErrorsNameTheFileAndTheReason) {
  const auto files = MakePosixFileSystem({});
  const Status missing = files->OpenDirectory("/no/such").status();
  EXPECT_EQ(missing.message(), "open /no/such: No such file or directory");
  const auto directory = OpenedDirectory(files.get(), "/usr");
  const auto file = directory->Open("none", FileAccess::kRead, FileCaching::kCached);
  EXPECT_EQ(file.status().message(), "open /usr/none: No such file or directory");
}

}  // namespace
}  // namespace embank::test::file_system_test
