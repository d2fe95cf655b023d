// What every file system promises, of the real one in its two ways and of the simulated one.
#include "base/file_system.h"

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

#include "base/posix_file_system.h"
#include "tests/support/blocks.h"
#include "tests/support/bytes.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/simulated_disk.h"

namespace embank::test {
namespace {

enum class Kind { kRing, kOldRing, kThreads, kSimulated };

bool IsRing(Kind kind) { return kind == Kind::kRing || kind == Kind::kOldRing; }

bool Same(std::span<const std::byte> a, std::span<const std::byte> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size()) == 0;
}

bool HasRings() { return std::string_view(IoUringState()).starts_with("yes"); }

class FileSystemTest : public testing::TestWithParam<Kind> {
 protected:
  FileSystemTest() {
    if (GetParam() == Kind::kSimulated) {
      files_ = std::make_unique<SimulatedDisk>();
      root_ = "/root";
      EXPECT_TRUE(files_->CreateDirectory(root_).ok());
    } else {
      files_ = MakePosixFileSystem({.use_io_uring = IsRing(GetParam()),
                                    .completions = GetParam() == Kind::kOldRing
                                                       ? IoCompletions::kInterrupting
                                                       : IoCompletions::kDeferred});
      root_ = directory_.path();
    }
  }
  void SetUp() override {
    if (IsRing(GetParam()) && !HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  }
  std::string Path(const std::string& name) const { return root_ + "/" + name; }
  std::unique_ptr<File> Open(const std::string& name, FileAccess access,
                             FileCaching caching = FileCaching::kCached) {
    absl::StatusOr<std::unique_ptr<File>> file = files_->Open(Path(name), access, caching);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  absl::StatusCode CodeOfOpen(const std::string& name, FileAccess access) {
    return files_->Open(Path(name), access, FileCaching::kCached).status().code();
  }

  const ScratchDirectory directory_;
  std::unique_ptr<FileSystem> files_;
  std::string root_;
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
  EXPECT_EQ(file->Read(0, six).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(9, std::span(six).first(1)).code(), absl::StatusCode::kOutOfRange);
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
  EXPECT_EQ(file->Read(0, bytes.first(2 * kBlockBytes)).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(kBlockBytes, read.block(1)).code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(file->Read(2 * kBlockBytes, read.block(2)).code(), absl::StatusCode::kOutOfRange);
  std::vector<Transfer> reads;
  for (size_t i = 0; i < 3; ++i) {
    reads.push_back({Transfer::Kind::kRead, file.get(), i * kBlockBytes, read.block(i),
                     absl::UnknownError("")});
  }
  files_->TransferAll(reads);
  EXPECT_TRUE(reads[0].status.ok()) << reads[0].status;
  EXPECT_EQ(reads[1].status.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(reads[2].status.code(), absl::StatusCode::kOutOfRange);
}

TEST_P(FileSystemTest, OpensWhatIsThereAndCreatesWhatIsNot) {
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kRead), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kWrite), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen("no/a", FileAccess::kCreate), absl::StatusCode::kNotFound);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kCreate), absl::StatusCode::kOk);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kCreate), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(CodeOfOpen("a", FileAccess::kWrite), absl::StatusCode::kOk);
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

TEST_P(FileSystemTest, RenamesLinksRemovesAndLists) {
  ASSERT_TRUE(Open("a", FileAccess::kCreate)->Write(0, BytesOf("a")).ok());
  ASSERT_TRUE(Open("b", FileAccess::kCreate)->Write(0, BytesOf("b")).ok());
  ASSERT_TRUE(files_->Link(Path("b"), Path("c")).ok());
  EXPECT_EQ(files_->Link(Path("b"), Path("a")).code(), absl::StatusCode::kAlreadyExists);
  ASSERT_TRUE(files_->Rename(Path("a"), Path("b")).ok()) << "takes the place of the other";
  EXPECT_EQ(files_->Rename(Path("a"), Path("d")).code(), absl::StatusCode::kNotFound);
  const auto content = [&](const std::string& name) {
    return static_cast<char>((*ReadWholeFile(files_.get(), Path(name), 10)).at(0));
  };
  EXPECT_EQ(content("b"), 'a');
  EXPECT_EQ(content("c"), 'b');
  ASSERT_TRUE(files_->CreateDirectory(Path("sub")).ok());
  EXPECT_EQ(files_->CreateDirectory(Path("sub")).code(), absl::StatusCode::kAlreadyExists);
  std::vector<std::string> names = *files_->List(root_);
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"b", "c", "sub"}));
  ASSERT_TRUE(files_->Remove(Path("b")).ok());
  EXPECT_EQ(files_->Remove(Path("b")).code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(files_->List(Path("none")).status().code(), absl::StatusCode::kNotFound);
  EXPECT_TRUE(files_->SyncDirectory(root_).ok());
}

TEST_P(FileSystemTest, AnOpenFileOutlivesItsName) {
  const auto file = Open("a", FileAccess::kCreate);
  ASSERT_TRUE(file->Write(0, BytesOf("still")).ok());
  ASSERT_TRUE(files_->Remove(Path("a")).ok());
  std::vector<std::byte> read(5);
  ASSERT_TRUE(file->Read(0, read).ok());
  EXPECT_TRUE(Same(read, BytesOf("still")));
}

TEST_P(FileSystemTest, LocksOneWriterOrManyReaders) {
  ASSERT_NE(Open("LOCK", FileAccess::kCreate), nullptr);
  const auto locked = [&](bool shared) { return files_->Lock(Path("LOCK"), shared); };
  {
    const auto first = locked(true);
    const auto second = locked(true);
    ASSERT_TRUE(first.ok() && second.ok());
    EXPECT_EQ(locked(false).status().code(), absl::StatusCode::kUnavailable);
  }
  const auto alone = locked(false);
  ASSERT_TRUE(alone.ok());
  EXPECT_EQ(locked(false).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(locked(true).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(files_->Lock(Path("none"), true).status().code(), absl::StatusCode::kNotFound);
}

TEST_P(FileSystemTest, SaysHowMuchSpaceIsFree) {
  EXPECT_GT(*files_->FreeBytes(root_), 0u);
  EXPECT_EQ(files_->FreeBytes(Path("none")).status().code(), absl::StatusCode::kNotFound);
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
          {Transfer::Kind::kWrite, file.get(), offset, written.block(i), absl::UnknownError("")});
      reads.push_back(
          {Transfer::Kind::kRead, file.get(), offset, read.block(i), absl::UnknownError("")});
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
                     absl::UnknownError("")});
  }
  files_->TransferAll(reads);
  for (size_t i = 0; i < 8; ++i) {
    const bool inside = reads[i].offset + kBlockBytes <= 3 * kBlockBytes;
    EXPECT_EQ(reads[i].status.code(),
              inside ? absl::StatusCode::kOk : absl::StatusCode::kOutOfRange)
        << i;
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
                           read.block(i), absl::OkStatus()});
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
    ASSERT_TRUE(ReplaceFile(files_.get(), Path("m"), BytesOf(text)).ok());
    EXPECT_TRUE(Same(*ReadWholeFile(files_.get(), Path("m"), 100), BytesOf(text)));
  }
  EXPECT_EQ(files_->List(root_)->size(), 1u);
  EXPECT_EQ(ReadWholeFile(files_.get(), Path("m"), 2).status().code(),
            absl::StatusCode::kOutOfRange);
  // What a crash left of a former try is in nobody's way.
  ASSERT_NE(Open("m.new", FileAccess::kCreate), nullptr);
  ASSERT_TRUE(ReplaceFile(files_.get(), Path("m"), BytesOf("x")).ok());
  EXPECT_EQ(files_->List(root_)->size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(All, FileSystemTest,
                         testing::Values(Kind::kRing, Kind::kOldRing, Kind::kThreads,
                                         Kind::kSimulated),
                         [](const auto& kind) -> std::string {
                           if (kind.param == Kind::kRing) return "Ring";
                           if (kind.param == Kind::kOldRing) return "OldRing";
                           return kind.param == Kind::kThreads ? "Threads" : "Simulated";
                         });

// ---- the real one ----

TEST(PosixFileSystem, FreeBytesAreThoseOfTheSystem) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  // Others write there too: between two equal readings nobody did.
  bool agreed = false;
  for (int i = 0; i < 1000 && !agreed; ++i) {
    const uint64_t before = std::filesystem::space(directory.path()).available;
    const uint64_t free_bytes = *files->FreeBytes(directory.path());
    const uint64_t after = std::filesystem::space(directory.path()).available;
    agreed = free_bytes == before && free_bytes == after;
  }
  EXPECT_TRUE(agreed);
}

TEST(PosixFileSystem, ALengthBeyondTheProcesssLimitIsRefusedWithoutASignal) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file =
      *files->Open(directory.path() + "/a", FileAccess::kCreate, FileCaching::kCached);
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {10'000, limit.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(file->Preallocate(10'001).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(file->Write(9'990, BytesOf("eleven byte")).code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(file->Write(9'990, BytesOf("ten bytes.")).ok());
  // The same of a list.
  Blocks written(4 * kBlockBytes);
  std::vector<Transfer> writes;
  for (size_t i = 0; i < 4; ++i) {
    writes.push_back({Transfer::Kind::kWrite, file.get(), i * kBlockBytes, written.block(i),
                      absl::UnknownError("")});
  }
  files->TransferAll(writes);
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(writes[i].status.code(),
              i < 2 ? absl::StatusCode::kOk : absl::StatusCode::kResourceExhausted)
        << i;
  }
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

TEST(PosixFileSystem, WithoutDirectAccessAFileIsOpenedCached) {
  const auto files = MakePosixFileSystem({});
  const auto file = files->Open("/proc/self/status", FileAccess::kRead, FileCaching::kDirect);
  ASSERT_TRUE(file.ok()) << file.status();
  EXPECT_FALSE((*file)->direct());
  std::vector<std::byte> name(5);
  ASSERT_TRUE((*file)->Read(0, name).ok());
  EXPECT_TRUE(Same(name, BytesOf("Name:")));
}

TEST(PosixFileSystem, WithoutDirectAccessAFileIsCreatedCached) {
  // A file system in memory; newer kernels have direct access there.
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
  const std::string path = "/dev/shm/embank_file_system_test_" + std::to_string(getpid());
  const auto files = MakePosixFileSystem({});
  const auto file = files->Open(path, FileAccess::kCreate, FileCaching::kDirect);
  const absl::Status created_again =
      files->Open(path, FileAccess::kCreate, FileCaching::kDirect).status();
  EXPECT_TRUE(files->Remove(path).ok());
  ASSERT_TRUE(file.ok()) << file.status();
  if ((*file)->direct()) GTEST_SKIP() << "/dev/shm has direct access";
  EXPECT_TRUE((*file)->Write(1, BytesOf("not a block")).ok());
  EXPECT_EQ(created_again.code(), absl::StatusCode::kAlreadyExists);
}

TEST(PosixFileSystem, WhatNoFileSystemDoesIsUnimplementedAndNoFaultOfADevice) {
  if (access("/dev/shm", W_OK) != 0) GTEST_SKIP() << "no /dev/shm to write to";
  const ScratchDirectory directory;
  const std::string path = "/dev/shm/embank_file_system_test_" + std::to_string(getpid());
  const auto files = MakePosixFileSystem({});
  ASSERT_TRUE(files->Open(path, FileAccess::kCreate, FileCaching::kCached).ok());
  const absl::Status linked = files->Link(path, directory.path() + "/linked");
  const absl::Status renamed = files->Rename(path, directory.path() + "/renamed");
  if (files->Remove(path).ok() && linked.ok()) GTEST_SKIP() << "one file system";
  EXPECT_EQ(linked.code(), absl::StatusCode::kUnimplemented) << linked;
  EXPECT_EQ(renamed.code(), absl::StatusCode::kUnimplemented) << renamed;
}

// As to a file that has as many names as it may, or in a file system without links.
TEST(PosixFileSystem, ALinkThatTheSystemDoesNotMakeIsUnimplemented) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  ASSERT_TRUE(files->CreateDirectory(directory.path() + "/sub").ok());
  const absl::Status linked = files->Link(directory.path() + "/sub", directory.path() + "/linked");
  EXPECT_EQ(linked.code(), absl::StatusCode::kUnimplemented) << linked;
}

TEST(PosixFileSystem, ALockEndsWithItsProcess) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/LOCK";
  const auto files = MakePosixFileSystem({});
  ASSERT_TRUE(files->Open(path, FileAccess::kCreate, FileCaching::kCached).ok());
  int pipe_ends[2];
  ASSERT_EQ(pipe(pipe_ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const auto childs_files = MakePosixFileSystem({});
    const auto lock = childs_files->Lock(path, false);
    const char locked = lock.ok() ? 'y' : 'n';
    if (write(pipe_ends[1], &locked, 1) != 1) _exit(1);
    pause();
    _exit(0);
  }
  char locked = 0;
  ASSERT_EQ(read(pipe_ends[0], &locked, 1), 1);
  EXPECT_EQ(locked, 'y');
  EXPECT_EQ(files->Lock(path, false).status().code(), absl::StatusCode::kUnavailable);
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  EXPECT_TRUE(files->Lock(path, false).ok());
  close(pipe_ends[0]);
  close(pipe_ends[1]);
}

TEST(PosixFileSystem, ALockThatIsGivenUpIsFreeThoughAForkedChildLives) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/LOCK";
  const auto files = MakePosixFileSystem({});
  ASSERT_TRUE(files->Open(path, FileAccess::kCreate, FileCaching::kCached).ok());
  auto lock = files->Lock(path, false);
  ASSERT_TRUE(lock.ok());
  const pid_t child = fork();
  if (child == 0) {
    pause();
    _exit(0);
  }
  EXPECT_FALSE(files->Lock(path, false).ok());
  lock->reset();
  EXPECT_TRUE(files->Lock(path, false).ok());
  kill(child, SIGKILL);
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
}

TEST(PosixFileSystem, ErrorsNameTheFileAndTheReason) {
  const auto files = MakePosixFileSystem({});
  const auto missing = files->Open("/no/such/file", FileAccess::kRead, FileCaching::kCached);
  EXPECT_EQ(missing.status().message(), "open /no/such/file: No such file or directory");
}

}  // namespace
}  // namespace embank::test
