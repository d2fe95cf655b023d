// Files that rest: more of them than descriptors, closed while nobody uses them, and opened again.
#include "base/files/descriptor_cache.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/threads/clock.h"
#include "tests/support/blocks.h"
#include "tests/support/files_by_path.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::descriptor_cache_test {
namespace {

constexpr size_t kBlocks = 8;  // of each file

// The names of the directory's files that this process has open.
std::vector<std::string> OpenIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    const std::filesystem::path file = std::filesystem::read_symlink(entry, gone);
    if (file.parent_path() == directory) names.push_back(file.filename());
  }
  std::sort(names.begin(), names.end());
  return names;
}

class RestingFiles : public testing::TestWithParam<bool> {
 protected:
  static constexpr uint32_t kOpenMax = 4;

  RestingFiles()
      : files_(MakePosixFileSystem({.use_io_uring = GetParam(), .open_files_max = kOpenMax})),
        held_(OpenedDirectory(files_.get(), scratch_.path())) {}

  static std::string NameOf(size_t number) { return "f" + std::to_string(number); }
  static std::byte ByteOf(size_t number, size_t block) {
    return static_cast<std::byte>(number * kBlocks + block);
  }
  // A file of blocks of which each has a byte of its own.
  std::unique_ptr<File> Make(size_t number, bool is_synced = true) {
    auto file = *held_->Open(NameOf(number), FileAccess::kCreate, FileCaching::kDirect);
    file->MayRest();
    Blocks block(kBlockBytes);
    for (size_t i = 0; i < kBlocks; ++i) {
      std::fill(block.bytes().begin(), block.bytes().end(), ByteOf(number, i));
      EXPECT_TRUE(file->Write(i * kBlockBytes, block.bytes()).ok());
    }
    if (!is_synced) return file;
    EXPECT_TRUE(file->Sync().ok());
    return file;
  }
  void MakeMany(size_t count) {
    for (size_t i = 0; i < count; ++i) many_.push_back(Make(i));
  }
  void ExpectReads(File* file, size_t number) {
    Blocks read(kBlocks * kBlockBytes);
    const Status status = file->Read(0, read.bytes());
    ASSERT_TRUE(status.ok()) << status;
    for (size_t i = 0; i < kBlocks; ++i) ASSERT_EQ(read.block(i)[9], ByteOf(number, i)) << number;
  }

  const ScratchDirectory scratch_;
  const std::unique_ptr<FileSystem> files_;
  const std::unique_ptr<Directory> held_;
  std::vector<std::unique_ptr<File>> many_;
};

TEST_P(RestingFiles, AreClosedAndOpenedAgain) {
  MakeMany(20);
  EXPECT_EQ(OpenIn(scratch_.path()).size(), kOpenMax);
  for (int round = 0; round < 2; ++round) {
    for (size_t i = 0; i < many_.size(); ++i) {
      ASSERT_NO_FATAL_FAILURE(ExpectReads(many_[i].get(), i));
      EXPECT_EQ(*many_[i]->SizeBytes(), kBlocks * kBlockBytes);
      EXPECT_EQ(OpenIn(scratch_.path()).size(), kOpenMax);
    }
  }
  many_.clear();
  EXPECT_TRUE(OpenIn(scratch_.path()).empty());
}

TEST_P(RestingFiles, ThoseThatAreUsedAgainAndAgainStayOpen) {
  MakeMany(10);
  for (size_t i = 1; i < many_.size(); ++i) {
    for (int twice = 0; twice < 2; ++twice) {
      ASSERT_NO_FATAL_FAILURE(ExpectReads(many_[0].get(), 0));
    }
    ASSERT_NO_FATAL_FAILURE(ExpectReads(many_[i].get(), i));
    const std::vector<std::string> open = OpenIn(scratch_.path());
    EXPECT_EQ(std::count(open.begin(), open.end(), NameOf(0)), 1) << i;
  }
}

// An error of a device that has been told to nobody would be lost.
TEST_P(RestingFiles, AFileWithUnsyncedChangesStaysOpen) {
  const auto unsynced = Make(100, /*is_synced=*/false);
  MakeMany(10);
  EXPECT_EQ(OpenIn(scratch_.path()).front(), NameOf(100));
  ASSERT_TRUE(unsynced->Sync().ok());
  for (size_t i = 0; i < many_.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectReads(many_[i].get(), i));
  }
  EXPECT_NE(OpenIn(scratch_.path()).front(), NameOf(100));
  // It can be changed all the same.
  Blocks block(kBlockBytes);
  std::fill(block.bytes().begin(), block.bytes().end(), ByteOf(100, 0));
  ASSERT_TRUE(unsynced->Write(0, block.bytes()).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectReads(unsynced.get(), 100));
}

TEST_P(RestingFiles, AFileThatWasRemovedOrReplacedIsDataLoss) {
  MakeMany(10);
  Blocks read(kBlocks * kBlockBytes);
  ASSERT_TRUE(held_->Remove(NameOf(0)).ok());
  ASSERT_TRUE(held_->Rename(NameOf(2), NameOf(1)).ok());
  for (const size_t lost : {size_t{0}, size_t{1}}) {
    const Status status = many_[lost]->Read(0, read.bytes());
    EXPECT_TRUE(IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find(held_->PathOf(NameOf(lost))), std::string::npos) << status;
    std::vector<Transfer> reads(
        2, {Transfer::Kind::kRead, many_[lost].get(), 0, read.block(0), OkStatus()});
    reads[0].file = many_[3].get();
    files_->TransferAll(reads);
    EXPECT_TRUE(reads[0].status.ok()) << reads[0].status;
    EXPECT_TRUE(IsDataLoss(reads[1].status)) << reads[1].status;
  }
  ExpectReads(many_[3].get(), 3);
}

// Lists of more files than there are descriptors, by threads at once.
TEST_P(RestingFiles, ListsOfManyFilesAreDoneByAllThreads) {
  constexpr size_t kFiles = 30;
  MakeMany(kFiles);
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      Blocks read(64 * kBlockBytes);
      for (int round = 0; round < 60; ++round) {
        std::vector<Transfer> reads;
        std::vector<std::byte> expected;
        for (size_t i = 0; i < 1 + random.Below(64); ++i) {
          const size_t number = random.Below(kFiles);
          const size_t block = random.Below(kBlocks);
          expected.push_back(ByteOf(number, block));
          reads.push_back({Transfer::Kind::kRead, many_[number].get(), block * kBlockBytes,
                           read.block(i), UnknownError("")});
        }
        files_->TransferAll(reads);
        for (size_t i = 0; i < reads.size(); ++i) {
          if (!reads[i].status.ok() || read.block(i)[17] != expected[i]) ++wrong;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  for (size_t i = 0; i < kFiles; ++i) ASSERT_NO_FATAL_FAILURE(ExpectReads(many_[i].get(), i));
  EXPECT_EQ(OpenIn(scratch_.path()).size(), kOpenMax) << "no more than that stay";
}

// The hand tries to close them again and again, and leaves them open: they are synced too late.
TEST_P(RestingFiles, ThreadsThatReadUnsyncedFilesOpenEachOnce) {
  constexpr size_t kUnsynced = 3;
  constexpr size_t kFiles = 8;
  for (size_t i = 0; i < kFiles; ++i) many_.push_back(Make(i, /*is_synced=*/i >= kUnsynced));
  std::atomic<uint64_t> wrong{0};
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      Random random(t);
      Blocks read(kBlockBytes);
      for (int i = 0; i < 20'000; ++i) {
        const size_t number = random.Below(kFiles);
        const Status status = many_[number]->Read(0, read.bytes());
        if (!status.ok() || read.bytes()[17] != ByteOf(number, 0)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0u);
  for (size_t i = 0; i < kUnsynced; ++i) ASSERT_TRUE(many_[i]->Sync().ok());
  for (size_t i = 0; i < kFiles; ++i) ASSERT_NO_FATAL_FAILURE(ExpectReads(many_[i].get(), i));
  // All may be open, where threads used them while others were opened: the next one closes those
  // beyond the limit. One that was opened twice would be open twice, or rest no more.
  many_.push_back(Make(kFiles));
  EXPECT_EQ(OpenIn(scratch_.path()).size(), kOpenMax);
  many_.clear();
  EXPECT_TRUE(OpenIn(scratch_.path()).empty());
}

// A cache in a process without a free descriptor. Each opening that fails is counted.
class NoDescriptors : public testing::Test {
 protected:
  std::unique_ptr<CachedDescriptor> MakeEntered() {
    auto descriptor = std::make_unique<CachedDescriptor>(dup(0));
    descriptor->Enter(&cache_, [this] {
      ++tries_;
      const uint64_t begin_ns = SteadyClock()->NowNs();
      while (SteadyClock()->NowNs() - begin_ns < try_ns_) {
      }
      return is_any_left_ ? dup(0) : -EMFILE;
    });
    return descriptor;
  }
  std::unique_ptr<CachedDescriptor> MakeClosed() {
    auto descriptor = MakeEntered();
    EXPECT_TRUE(cache_.CloseOne());
    return descriptor;
  }
  // The openings that a use in vain tries.
  uint64_t TriesOf(CachedDescriptor* descriptor) {
    tries_ = 0;
    EXPECT_EQ(descriptor->Use(), -EMFILE);
    return tries_;
  }

  DescriptorCache cache_{8};
  bool is_any_left_ = false;
  uint64_t tries_ = 0;
  uint64_t try_ns_ = 0;  // the time that each takes at least
};

TEST_F(NoDescriptors, AFileThatMayNotBeClosedIsNotWaitedFor) {
  const auto closed = MakeClosed();
  EXPECT_EQ(TriesOf(closed.get()), 1u);
  const auto unsynced = MakeEntered();
  unsynced->NoteChange();
  EXPECT_EQ(TriesOf(closed.get()), 1u);
  ASSERT_GE(unsynced->Use(), 0);
  EXPECT_EQ(TriesOf(closed.get()), 1u) << "its use ends, and it stays open";
  unsynced->EndUse();
}

TEST_F(NoDescriptors, AFileThatIsUsedIsWaitedForOnceUntilAnOpeningSucceeds) {
  const auto first = MakeClosed();
  const auto second = MakeClosed();
  const auto used = MakeEntered();
  ASSERT_GE(used->Use(), 0);
  EXPECT_GT(TriesOf(first.get()), 100u);
  EXPECT_EQ(TriesOf(first.get()), 1u);
  EXPECT_EQ(TriesOf(second.get()), 1u);
  is_any_left_ = true;
  ASSERT_GE(first->Use(), 0);
  is_any_left_ = false;
  EXPECT_GT(TriesOf(second.get()), 100u);
  first->EndUse();
  used->EndUse();
}

// As where a pause gives the core to many other threads.
TEST_F(NoDescriptors, SlowTriesEndAfterSomeTenthsOfASecond) {
  const auto closed = MakeClosed();
  const auto used = MakeEntered();
  ASSERT_GE(used->Use(), 0);
  try_ns_ = 1'000'000;
  EXPECT_LE(TriesOf(closed.get()), 300u);
  used->EndUse();
}

INSTANTIATE_TEST_SUITE_P(All, RestingFiles, testing::Bool(),
                         [](const auto& rings) { return rings.param ? "Rings" : "Threads"; });

}  // namespace
}  // namespace embank::test::descriptor_cache_test
