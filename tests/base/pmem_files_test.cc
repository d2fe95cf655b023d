// Mapped files: what they promise beyond file_system_test.cc, over libpmem and over a fake of it.
// Run once as the machine is, and once with PMEM_IS_PMEM_FORCE=1: all that is mapped is persistent
// memory then.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/pmem/pmem_file_system.h"
#include "base/pmem/pmem_library.h"
#include "tests/support/bytes.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_pmem.h"
#include "tests/support/files_by_path.h"
#include "tests/support/scratch_directory.h"

namespace embank::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint64_t kBytes = 3 * kBlockBytes;

std::string TextOf(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

bool IsForced() {
  const char* const forced = std::getenv("PMEM_IS_PMEM_FORCE");  // NOLINT(concurrency-mt-unsafe)
  return forced != nullptr && std::string(forced) == "1";
}

size_t OpenDescriptors() {
  const std::filesystem::directory_iterator numbers("/proc/self/fd");
  return static_cast<size_t>(std::distance(begin(numbers), end(numbers)));
}

// ---- the library ----

TEST(PmemLibrary, AMissingLibraryIsUnavailableAndItsPackageIsNamed) {
  const auto library = LoadPmemLibrary("libembank_has_no_such.so.1");
  EXPECT_EQ(library.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("package libpmem1"));
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("cannot open shared object"));
}

TEST(PmemLibrary, ALibraryWithoutTheFunctionsIsUnavailable) {
  const auto library = LoadPmemLibrary("libc.so.6");
  EXPECT_EQ(library.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(library.status().message()), HasSubstr("pmem_map_file"));
}

// ---- real files, and libpmem ----

// A directory on a disk, or in the system's memory.
class MappedFilesTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const StatusOr<PmemLibrary> library = LoadPmemLibrary();
    if (!library.ok()) GTEST_SKIP() << library.status();
    if (access(GetParam(), W_OK) != 0) GTEST_SKIP() << "no " << GetParam() << " to write to";
    path_ = std::string(GetParam()) + "/embank_pmem_XXXXXX";
    ASSERT_NE(mkdtemp(path_.data()), nullptr);
    files_ = MakePmemFileSystem(base_.get(), *library);
    held_ = OpenedDirectory(files_.get(), path_);
  }
  void TearDown() override {
    if (!path_.empty()) std::filesystem::remove_all(path_);
  }

  std::unique_ptr<File> Open(const std::string& name, FileAccess access) {
    StatusOr<std::unique_ptr<File>> file = held_->Open(name, access, FileCaching::kDirect);
    EXPECT_TRUE(file.ok()) << file.status();
    return file.ok() ? *std::move(file) : nullptr;
  }
  // A new file of kBytes.
  std::unique_ptr<File> Create(const std::string& name) {
    std::unique_ptr<File> file = Open(name, FileAccess::kCreate);
    const Status taken = file->Preallocate(kBytes);
    EXPECT_TRUE(taken.ok()) << taken;
    return file;
  }
  bool IsPmem() { return *files_->KindOf(held_.get()) == PmemKind::kPmem; }

  std::string path_;
  const std::unique_ptr<FileSystem> base_ = MakePosixFileSystem({});
  std::unique_ptr<PmemFileSystem> files_;
  std::unique_ptr<Directory> held_;
};

INSTANTIATE_TEST_SUITE_P(All, MappedFilesTest, testing::Values("/var/tmp", "/dev/shm"),
                         [](const auto& place) -> std::string {
                           return place.param == std::string("/dev/shm") ? "Memory" : "Disk";
                         });

TEST_P(MappedFilesTest, AFileIsMappedOnceItIsPreallocated) {
  const auto file = Open("a", FileAccess::kCreate);
  EXPECT_TRUE(file->mapping().empty());
  EXPECT_FALSE(file->direct());
  ASSERT_TRUE(file->Preallocate(kBytes).ok());
  ASSERT_EQ(file->mapping().size(), kBytes);
  EXPECT_EQ(*file->SizeBytes(), kBytes);
  EXPECT_EQ(TextOf(file->mapping()), std::string(kBytes, '\0'));
  ASSERT_TRUE(file->Write(4'090, BytesOf("over two pages")).ok());
  EXPECT_EQ(TextOf(file->mapping().subspan(4'090, 14)), "over two pages");
  std::vector<std::byte> read(14);
  ASSERT_TRUE(file->Read(4'090, read).ok());
  EXPECT_EQ(TextOf(read), "over two pages");
  EXPECT_TRUE(file->Sync().ok());
}

TEST_P(MappedFilesTest, AFileWithBytesIsMappedWholeWhenItIsOpened) {
  ASSERT_TRUE(Create("a")->Write(kBytes - 3, BytesOf("end")).ok());
  const auto writer = Open("a", FileAccess::kWrite);
  const auto reader = Open("a", FileAccess::kRead);
  ASSERT_EQ(writer->mapping().size(), kBytes);
  ASSERT_EQ(reader->mapping().size(), kBytes);
  EXPECT_EQ(TextOf(reader->mapping().last(3)), "end");
  ASSERT_TRUE(writer->Write(0, BytesOf("begin")).ok());
  EXPECT_EQ(TextOf(reader->mapping().first(5)), "begin") << "two maps of one file";
  EXPECT_TRUE(reader->Sync().ok());
}

TEST_P(MappedFilesTest, AnEmptyFileIsOpenedAndNotMapped) {
  ASSERT_NE(Open("a", FileAccess::kCreate), nullptr);
  const auto file = Open("a", FileAccess::kRead);
  EXPECT_TRUE(file->mapping().empty());
  EXPECT_EQ(*file->SizeBytes(), 0u);
  std::vector<std::byte> one(1);
  EXPECT_EQ(file->Read(0, one).code(), StatusCode::kOutOfRange);
}

TEST_P(MappedFilesTest, NothingIsReadOrWrittenOutsideOfTheMap) {
  const auto file = Create("a");
  const auto three = BytesOf("abc");
  std::vector<std::byte> read(3);
  for (const uint64_t offset : {kBytes - 2, kBytes, kBytes + 1, UINT64_MAX - 1}) {
    EXPECT_EQ(file->Write(offset, three).code(), StatusCode::kOutOfRange) << offset;
    EXPECT_EQ(file->Read(offset, read).code(), StatusCode::kOutOfRange) << offset;
  }
  EXPECT_EQ(TextOf(file->mapping()), std::string(kBytes, '\0'));
  EXPECT_TRUE(file->Write(kBytes - 3, three).ok());
  EXPECT_TRUE(file->Read(kBytes - 3, read).ok());
  EXPECT_TRUE(file->Write(kBytes, {}).ok());
}

TEST_P(MappedFilesTest, AMappedFileKeepsItsLength) {
  const auto file = Create("a");
  const std::byte* const begin = file->mapping().data();
  EXPECT_TRUE(file->Preallocate(kBytes).ok());
  EXPECT_TRUE(file->Preallocate(1).ok());
  EXPECT_EQ(file->Preallocate(kBytes + 1).code(), StatusCode::kUnimplemented);
  EXPECT_EQ(file->mapping().data(), begin);
  EXPECT_EQ(*file->SizeBytes(), kBytes);
}

TEST_P(MappedFilesTest, AMapOutlivesTheNameOfItsFile) {
  const auto file = Create("a");
  ASSERT_TRUE(held_->Remove("a").ok());
  ASSERT_TRUE(file->Write(0, BytesOf("still")).ok());
  EXPECT_EQ(TextOf(file->mapping().first(5)), "still");
  EXPECT_TRUE(file->Sync().ok());
}

TEST_P(MappedFilesTest, ADirectoryTellsItsKindAndKeepsNothingOfTheQuestion) {
  ASSERT_TRUE(base_->OpenDirectory(path_).ok());
  ASSERT_NE(Open("pmem_probe", FileAccess::kCreate), nullptr) << "a crash left it";
  const StatusOr<PmemKind> kind = files_->KindOf(held_.get());
  ASSERT_TRUE(kind.ok()) << kind.status();
  if (IsForced()) EXPECT_STREQ(NameOf(*kind), "pmem");
  // No machine that runs the tests has persistent memory at these places.
  if (!IsForced()) EXPECT_STREQ(NameOf(*kind), "mapped files, msync");
  EXPECT_THAT(*held_->List(), IsEmpty());
}

TEST_P(MappedFilesTest, CountsWhatMakesWritesDurable) {
  const bool is_pmem = IsPmem();
  const auto file = Create("a");
  ASSERT_TRUE(file->Write(0, BytesOf("12345")).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Sync().ok());
  const PmemCounters counters = files_->counters();
  EXPECT_EQ(counters.written_bytes, 5u);
  EXPECT_EQ(counters.drains, is_pmem ? 3u : 0u) << "one of the write, two of the syncs";
  EXPECT_EQ(counters.msyncs, is_pmem ? 0u : 1u) << "nothing was written before the second sync";
}

TEST_P(MappedFilesTest, AMappedFileHasADescriptorUntilItsFirstSync) {
  const size_t before = OpenDescriptors();
  const auto written = Create("a");
  EXPECT_EQ(OpenDescriptors(), before + 1);
  ASSERT_TRUE(written->Sync().ok());
  EXPECT_EQ(OpenDescriptors(), before);
  const auto read = Open("a", FileAccess::kRead);
  EXPECT_EQ(OpenDescriptors(), before);
  ASSERT_TRUE(written->Write(0, BytesOf("x")).ok());
  EXPECT_TRUE(written->Sync().ok());
}

TEST_P(MappedFilesTest, WhatWasNotThereWhenAFileIsOpenedToBeWrittenIsTaken) {
  ASSERT_NE(Open("a", FileAccess::kCreate), nullptr);
  std::filesystem::resize_file(path_ + "/a", 1 << 20);
  struct stat about;
  ASSERT_NE(Open("a", FileAccess::kRead), nullptr);
  ASSERT_EQ(stat((path_ + "/a").c_str(), &about), 0);
  ASSERT_LT(about.st_blocks * 512, 1 << 20) << "it has holes";
  ASSERT_NE(Open("a", FileAccess::kWrite), nullptr);
  ASSERT_EQ(stat((path_ + "/a").c_str(), &about), 0);
  EXPECT_GE(about.st_blocks * 512, 1 << 20);
}

TEST_P(MappedFilesTest, AFileForWhichThereIsNoSpaceIsNotLeftBehind) {
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &limit), 0);
  const rlimit small = {kBytes, limit.rlim_max};
  const auto file = Open("a", FileAccess::kCreate);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(file->Preallocate(kBytes + 1).code(), StatusCode::kResourceExhausted);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  EXPECT_TRUE(file->mapping().empty());
  EXPECT_THAT(*held_->List(), IsEmpty());
}

}  // namespace
}  // namespace embank::test
