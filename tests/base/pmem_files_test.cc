// Mapped files: what they promise beyond file_system_test.cc, over libpmem and over a fake of it.
// Run once as the machine is, and once with PMEM_IS_PMEM_FORCE=1: all that is mapped is persistent
// memory then.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/pmem/bad_ranges.h"
#include "base/pmem/pmem_file_system.h"
#include "base/pmem/pmem_library.h"
#include "tests/support/bytes.h"
#include "tests/support/child_process.h"
#include "tests/support/fake_pmem.h"
#include "tests/support/files_by_path.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::pmem_files_test {
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
  ASSERT_NE(Open("pmem_probe", FileAccess::kCreate), nullptr) << "a crash left it";
  const StatusOr<PmemKind> kind = files_->KindOf(held_.get());
  ASSERT_TRUE(kind.ok()) << kind.status();
  // No machine that runs the tests has persistent memory at these places.
  EXPECT_STREQ(NameOf(*kind), IsForced() ? "pmem" : "mapped files, msync");
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
  EXPECT_EQ(counters.drains, is_pmem ? 1u : 0u) << "a sync needs none of its own";
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

TEST_P(MappedFilesTest, HolesOfAFileThatIsOpenedToBeWrittenAreTaken) {
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

TEST_P(MappedFilesTest, ADirectoryLinksIntoAnotherOfItsFileSystem) {
  ASSERT_TRUE(Create("a")->Write(0, BytesOf("linked")).ok());
  ASSERT_TRUE(files_->CreateDirectory(path_ + "/sub").ok());
  const auto sub = OpenedDirectory(files_.get(), path_ + "/sub");
  ASSERT_TRUE(held_->Link("a", sub.get(), "b").ok());
  const auto file = *sub->Open("b", FileAccess::kRead, FileCaching::kCached);
  EXPECT_EQ(TextOf(file->mapping().first(6)), "linked");
}

// The limit that the documents name: nobody can answer with a status there.
TEST_P(MappedFilesTest, AMapWhoseFileIsCutOffEndsTheProcess) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have a handler of their own for this signal";
#endif
  const auto file = Create("a");
  const std::string end = InChild([&] {
    std::filesystem::resize_file(path_ + "/a", kBlockBytes);
    const bool inside = file->mapping()[kBlockBytes - 1] == std::byte{0};
    if (!inside) return 1;
    return std::to_integer<int>(file->mapping()[kBytes - 1]);
  });
  EXPECT_EQ(end, "signal 7");
}

// A tmpfs of 64 KiB in a child's own name space; -1: this user may not mount one.
template <typename Body>
std::string InSmallFileSystem(const std::string& path, const Body& body) {
  return InChild([&] {
    constexpr int kMayNot = 77;
    if (unshare(CLONE_NEWNS) != 0) return kMayNot;
    if (mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return kMayNot;
    if (mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k") != 0) return kMayNot;
    const auto base = MakePosixFileSystem({});
    const auto files = MakePmemFileSystem(base.get(), *LoadPmemLibrary());
    const auto held = OpenedDirectory(files.get(), path);
    body(held.get());
    return testing::Test::HasFailure() ? 1 : 0;
  });
}

TEST_P(MappedFilesTest, AFullFileSystemRefusesAFileAndKeepsTheOthers) {
  const std::string end = InSmallFileSystem(path_, [](Directory* held) {
    const auto first = *held->Open("a", FileAccess::kCreate, FileCaching::kCached);
    ASSERT_TRUE(first->Preallocate(kBytes).ok());
    const auto second = *held->Open("b", FileAccess::kCreate, FileCaching::kCached);
    EXPECT_EQ(second->Preallocate(1 << 20).code(), StatusCode::kResourceExhausted);
    EXPECT_THAT(*held->List(), ElementsAre("a"));
    const auto third = *held->Open("c", FileAccess::kCreate, FileCaching::kCached);
    ASSERT_TRUE(third->Preallocate(kBytes).ok()) << "its space was given back";
    EXPECT_TRUE(third->Write(0, std::vector<std::byte>(kBytes)).ok());
  });
  if (end == "exit 77") GTEST_SKIP() << "no right to mount a file system";
  EXPECT_EQ(end, "exit 0");
}

TEST_P(MappedFilesTest, AFileWithHolesThatDoNotFitIsNotOpenedToBeWritten) {
  const std::string end = InSmallFileSystem(path_, [](Directory* held) {
    ASSERT_TRUE(held->Open("a", FileAccess::kCreate, FileCaching::kCached).ok());
    std::filesystem::resize_file(held->path() + "/a", 1 << 20);
    EXPECT_TRUE(held->Open("a", FileAccess::kRead, FileCaching::kCached).ok());
    EXPECT_EQ(held->Open("a", FileAccess::kWrite, FileCaching::kCached).status().code(),
              StatusCode::kResourceExhausted);
    EXPECT_THAT(*held->List(), ElementsAre("a"));
  });
  if (end == "exit 77") GTEST_SKIP() << "no right to mount a file system";
  EXPECT_EQ(end, "exit 0");
}

TEST(MappedFiles, AFileThatTheSystemDoesNotMapIsUnimplemented) {
  const std::string directory = "/sys/kernel/mm/transparent_hugepage";
  if (access((directory + "/enabled").c_str(), R_OK) != 0) GTEST_SKIP() << "no " << directory;
  const FakePmem fake(/*is_pmem=*/false);
  const auto base = MakePosixFileSystem({});
  const auto files = MakePmemFileSystem(base.get(), FakePmem::library());
  const Status opened = OpenedDirectory(files.get(), directory)
                            ->Open("enabled", FileAccess::kRead, FileCaching::kCached)
                            .status();
  EXPECT_EQ(opened.code(), StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(opened.message()), HasSubstr("pmem_path must be on a file system"));
}

// ---- a fake of libpmem ----

class FakedFilesTest : public testing::Test {
 protected:
  explicit FakedFilesTest(bool is_pmem = true) : fake_(is_pmem) {}

  std::unique_ptr<File> Open(const std::string& name, FileAccess access) {
    return *held_->Open(name, access, FileCaching::kCached);
  }
  std::unique_ptr<File> Create(const std::string& name) {
    std::unique_ptr<File> file = Open(name, FileAccess::kCreate);
    EXPECT_TRUE(file->Preallocate(kBytes).ok());
    return file;
  }

  const ScratchDirectory directory_;
  FakePmem fake_;
  const std::unique_ptr<FileSystem> base_ = MakePosixFileSystem({.open_files_max = 1});
  const std::unique_ptr<PmemFileSystem> files_ =
      MakePmemFileSystem(base_.get(), FakePmem::library());
  const std::unique_ptr<Directory> held_ = OpenedDirectory(files_.get(), directory_.path());
};

class FakedPmemTest : public FakedFilesTest {};

class FakedMsyncTest : public FakedFilesTest {
 protected:
  FakedMsyncTest() : FakedFilesTest(/*is_pmem=*/false) {}
};

// A drain waits for its own thread alone: without one the thread that syncs would wait for nothing.
TEST_F(FakedPmemTest, AWriteIsNonTemporalAndEndsWithADrain) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Write(5, BytesOf("12345678")).ok());
  EXPECT_THAT(fake_.Calls(), ElementsAre("map", "copy 5 8 3", "drain"));
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_THAT(fake_.Calls(), IsEmpty()) << "the write has drained";
}

TEST_F(FakedPmemTest, AListOfWritesHasOneDrainBehindThem) {
  const auto a = Create("a");
  const auto b = Create("b");
  fake_.Calls();
  std::vector<std::byte> bytes = BytesOf("12345678");
  std::vector<std::byte> read(4);
  std::vector<Transfer> transfers = {
      {Transfer::Kind::kWrite, b.get(), 0, std::span(bytes).first(4), UnknownError("")},
      {Transfer::Kind::kWrite, b.get(), 64, std::span(bytes).last(4), UnknownError("")},
      {Transfer::Kind::kWrite, a.get(), kBytes, bytes, UnknownError("")},
      {Transfer::Kind::kRead, b.get(), 64, read, UnknownError("")}};
  files_->TransferAll(transfers);
  EXPECT_THAT(fake_.Calls(), ElementsAre("copy 0 4 3", "copy 64 4 3", "drain"));
  EXPECT_TRUE(transfers[0].status.ok() && transfers[1].status.ok() && transfers[3].status.ok());
  EXPECT_EQ(transfers[2].status.code(), StatusCode::kOutOfRange);
  EXPECT_EQ(TextOf(read), "5678");
  EXPECT_EQ(files_->counters().drains, 1u);
}

TEST_F(FakedMsyncTest, ASyncWritesBackAllThatWasWrittenSinceTheLastOne) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Write(9'000, BytesOf("123")).ok());
  ASSERT_TRUE(file->Write(100, BytesOf("12345")).ok());
  ASSERT_TRUE(file->Write(4'000, BytesOf("between")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_THAT(fake_.Calls(), ElementsAre("map", "msync 100 8903"));
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_THAT(fake_.Calls(), IsEmpty()) << "nothing was written meanwhile";
  ASSERT_TRUE(file->Write(7, BytesOf("x")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_THAT(fake_.Calls(), ElementsAre("msync 7 1"));
}

TEST_F(FakedMsyncTest, AFileWhoseSyncFailedIsNeverSyncedAgain) {
  const auto file = Create("a");
  ASSERT_TRUE(file->Write(0, BytesOf("x")).ok());
  fake_.msync_error = EIO;
  const Status failed = file->Sync();
  EXPECT_EQ(failed.code(), StatusCode::kUnavailable);
  EXPECT_THAT(std::string(failed.message()), HasSubstr(directory_.path() + "/a: Input/output"));
  fake_.msync_error = 0;
  fake_.Calls();
  ASSERT_TRUE(file->Write(0, BytesOf("y")).ok());
  EXPECT_EQ(file->Sync(), failed);
  EXPECT_THAT(fake_.Calls(), IsEmpty());
}

// The length of a file is durable by the system's sync of it, which has to find the file again.
TEST_F(FakedPmemTest, AFirstSyncThatFailsIsTheLast) {
  Create("a");
  Create("b");
  const auto a = Open("a", FileAccess::kWrite);
  a->MayRest();
  const auto b = Open("b", FileAccess::kWrite);
  b->MayRest();  // one file at most stays open, so that a rests
  ASSERT_TRUE(held_->Remove("a").ok());
  fake_.Calls();
  const Status failed = a->Sync();
  EXPECT_EQ(failed.code(), StatusCode::kDataLoss);
  EXPECT_THAT(fake_.Calls(), IsEmpty());
  EXPECT_EQ(a->Sync(), failed);
  EXPECT_THAT(fake_.Calls(), IsEmpty());
  EXPECT_TRUE(b->Sync().ok());
}

TEST_F(FakedPmemTest, AMapThatFailsHasAStatusAndLeavesNoNewFile) {
  const struct {
    int error;
    StatusCode code;
    const char* words;
  } cases[] = {{ENODEV, StatusCode::kUnimplemented, "pmem_path must be on a file system"},
               {EOPNOTSUPP, StatusCode::kUnimplemented, "pmem_path must be on a file system"},
               {ENOENT, StatusCode::kUnavailable, "needs /proc"},
               {ENOMEM, StatusCode::kResourceExhausted, "Cannot allocate memory"},
               {EACCES, StatusCode::kPermissionDenied, "Permission denied"},
               {EIO, StatusCode::kUnavailable, "Input/output error"}};
  Create("old");
  for (const auto& one : cases) {
    fake_.map_error = one.error;
    const auto file = Open("new", FileAccess::kCreate);
    const Status mapped = file->Preallocate(kBytes);
    EXPECT_EQ(mapped.code(), one.code) << mapped;
    EXPECT_THAT(std::string(mapped.message()), HasSubstr(one.words));
    EXPECT_THAT(std::string(mapped.message()), HasSubstr("libpmem: the fake's reason"));
    EXPECT_TRUE(file->mapping().empty());
    EXPECT_EQ(held_->Open("old", FileAccess::kWrite, FileCaching::kCached).status().code(),
              one.code);
    EXPECT_EQ(files_->KindOf(held_.get()).status().code(), one.code);
    EXPECT_THAT(*held_->List(), ElementsAre("old"));
    EXPECT_TRUE(held_->Open("old", FileAccess::kRead, FileCaching::kCached).ok())
        << "it is mapped without libpmem";
  }
}

TEST_F(FakedPmemTest, AFileThatIsOnlyReadIsNotWritten) {
  Create("a");
  const auto file = Open("a", FileAccess::kRead);
  EXPECT_DEATH(file->Write(0, BytesOf("x")).IgnoreError(), "broken");
}

// ---- damaged blocks ----

TEST(BadRanges, BadRangesOfAFileAreDataLossAndTheOthersAreRead) {
  const ScratchDirectory directory;
  const FakePmem fake(/*is_pmem=*/true);
  const auto base = MakePosixFileSystem({});
  std::vector<BadRange> bad;
  const auto files = MakePmemFileSystem(
      base.get(), FakePmem::library(), [&](int) -> StatusOr<std::vector<BadRange>> { return bad; });
  const auto held = OpenedDirectory(files.get(), directory.path());
  const auto whole = *held->Open("a", FileAccess::kCreate, FileCaching::kCached);
  ASSERT_TRUE(whole->Preallocate(kBytes).ok());
  bad = {{512, 1024}, {4096, 8192}};
  const auto fresh = *held->Open("b", FileAccess::kCreate, FileCaching::kCached);
  EXPECT_EQ(fresh->Preallocate(kBytes).code(), StatusCode::kUnavailable) << "a new file";
  EXPECT_EQ(held->List()->size(), 1u) << "it has lost its name";
  const auto file = *held->Open("a", FileAccess::kWrite, FileCaching::kCached);
  EXPECT_TRUE(file->mapping().empty());
  EXPECT_EQ(*file->SizeBytes(), kBytes);
  std::vector<std::byte> some(256);
  for (const uint64_t offset : {257, 512, 900, 1023, 4000, 5000, 8191}) {
    EXPECT_EQ(file->Read(offset, some).code(), StatusCode::kDataLoss) << offset;
    EXPECT_EQ(file->Write(offset, some).code(), StatusCode::kUnavailable) << offset;
  }
  EXPECT_EQ(
      file->Read(600, some).message(),
      "read " + directory.path() + "/a: its bytes 512 to 1023 are on bad blocks of the device");
  for (const uint64_t offset : {0, 256, 1024, 3840, 8192}) {
    EXPECT_TRUE(file->Read(offset, some).ok()) << offset;
    EXPECT_TRUE(file->Write(offset, some).ok()) << offset;
  }
}

// A device of the system as sysfs shows it, with a list of our own, beside a real file.
class BadBlocksTest : public testing::Test {
 protected:
  BadBlocksTest() {
    const auto base = MakePosixFileSystem({});
    const auto file = *OpenByPath(base.get(), path_, FileAccess::kCreate, FileCaching::kCached);
    EXPECT_TRUE(file->Preallocate(1 << 20).ok());
    EXPECT_TRUE(file->Write(0, std::vector<std::byte>(1 << 20, std::byte{1})).ok());
    EXPECT_TRUE(file->Sync().ok());
    descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about;
    EXPECT_EQ(fstat(descriptor_, &about), 0);
    std::filesystem::create_directories(sysfs_ + "/devices/disk/part");
    std::filesystem::create_directories(sysfs_ + "/dev/block");
    link_ = sysfs_ + "/dev/block/" + std::to_string(major(about.st_dev)) + ":" +
            std::to_string(minor(about.st_dev));
  }
  ~BadBlocksTest() override { close(descriptor_); }

  // The file's first extent; of no bytes: the file system does not tell.
  fiemap_extent FirstExtent() const {
    alignas(fiemap) std::array<std::byte, sizeof(fiemap) + sizeof(fiemap_extent)> request = {};
    fiemap head;
    std::memset(&head, 0, sizeof(head));
    head.fm_length = FIEMAP_MAX_OFFSET;
    head.fm_extent_count = 1;
    std::memcpy(request.data(), &head, sizeof(head));
    fiemap_extent extent = {};
    if (ioctl(descriptor_, FS_IOC_FIEMAP, request.data()) != 0) return extent;
    std::memcpy(&extent, request.data() + sizeof(head), sizeof(extent));
    return extent;
  }
  void ShowDevice(const std::string& what) {
    std::filesystem::create_directory_symlink(sysfs_ + "/devices/" + what, link_);
  }
  void WriteText(const std::string& name, const std::string& text) {
    std::ofstream(sysfs_ + "/devices/" + name) << text;
  }

  const ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/a";
  const std::string sysfs_ = directory_.path() + "/sys";
  std::string link_;
  int descriptor_ = -1;
};

TEST_F(BadBlocksTest, AFileOnADiskHasThoseThatLieInItsExtents) {
  const fiemap_extent extent = FirstExtent();
  if (extent.fe_length == 0) GTEST_SKIP() << "no extents of files in " << directory_.path();
  const uint64_t sector = extent.fe_physical / 512;
  WriteText("disk/badblocks", std::to_string(sector - 2) + " 3\n" + std::to_string(sector + 8) +
                                  " 1\n" + std::to_string(sector - 1) + " 1\n");
  ShowDevice("disk");
  const auto bad = BadRangesBelow(sysfs_, descriptor_);
  ASSERT_TRUE(bad.ok()) << bad.status();
  EXPECT_THAT(*bad, ElementsAre(BadRange{0, 512}, BadRange{4096, 4608}));
}

TEST_F(BadBlocksTest, AFileOfManyExtentsIsLookedThroughToItsEnd) {
  if (FirstExtent().fe_length == 0) GTEST_SKIP() << "no extents in " << directory_.path();
  constexpr uint64_t kExtents = 150;
  const auto base = MakePosixFileSystem({});
  const std::string path = directory_.path() + "/b";
  const auto file = *OpenByPath(base.get(), path, FileAccess::kCreate, FileCaching::kCached);
  for (uint64_t i = 0; i < kExtents; ++i) {
    ASSERT_TRUE(file->Write(2 * i * kBlockBytes, std::vector<std::byte>(kBlockBytes)).ok());
  }
  ASSERT_TRUE(file->Sync().ok());
  WriteText("disk/badblocks", "0 1000000000000\n");
  ShowDevice("disk");
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto bad = BadRangesBelow(sysfs_, descriptor);
  close(descriptor);
  ASSERT_EQ(bad->size(), kExtents);
  for (uint64_t i = 0; i < kExtents; ++i) {
    EXPECT_EQ((*bad)[i], (BadRange{2 * i * kBlockBytes, (2 * i + 1) * kBlockBytes}));
  }
}

TEST_F(BadBlocksTest, TheListOfAPartitionIsItsDisks) {
  const fiemap_extent extent = FirstExtent();
  if (extent.fe_length == 0) GTEST_SKIP() << "no extents of files in " << directory_.path();
  const uint64_t sector = extent.fe_physical / 512;
  WriteText("disk/badblocks", "5 1\n" + std::to_string(2048 + sector + 1) + " 2\n");
  WriteText("disk/part/start", "2048\n");
  ShowDevice("disk/part");
  const auto bad = BadRangesBelow(sysfs_, descriptor_);
  ASSERT_TRUE(bad.ok()) << bad.status();
  EXPECT_THAT(*bad, ElementsAre(BadRange{512, 1536}));
}

TEST_F(BadBlocksTest, ADeviceWithoutAListHasNone) {
  EXPECT_THAT(*BadRangesBelow(sysfs_, descriptor_), IsEmpty()) << "no device";
  ShowDevice("disk");
  EXPECT_THAT(*BadRangesBelow(sysfs_, descriptor_), IsEmpty()) << "no list";
  WriteText("disk/badblocks", "\n");
  EXPECT_THAT(*BadRangesBelow(sysfs_, descriptor_), IsEmpty()) << "an empty list";
  EXPECT_THAT(*BadRangesOf(descriptor_), IsEmpty()) << "of this machine";
}

}  // namespace
}  // namespace embank::test::pmem_files_test
