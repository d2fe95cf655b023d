// Rings behind the file system: their threads, their registrations, and their work when the kernel
// refuses a part of it.
#include "base/files/ring_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/files/posix_file_system.h"
#include "base/threads/log.h"
#include "tests/support/blocks.h"
#include "tests/support/files_by_path.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::ring_pool_test {
namespace {

constexpr size_t kBlocks = 40;

bool HasRings() { return std::string_view(IoUringState()).starts_with("yes"); }
bool HasAllOfRings() {
  return std::string_view(IoUringState()) ==
         "yes: deferred completions, registered files, registered memory";
}

// Descriptors of the rings of this process.
std::vector<int> Rings() {
  std::vector<int> rings;
  for (int descriptor = 0; descriptor < 1000; ++descriptor) {
    char target[100] = {};
    const std::string link = "/proc/self/fd/" + std::to_string(descriptor);
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    if (std::string_view(target).find("io_uring") != std::string_view::npos) {
      rings.push_back(descriptor);
    }
  }
  return rings;
}

// Breaks all rings: their descriptors become another file.
void BreakRings() {
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  ASSERT_GE(null, 0);
  for (const int ring : Rings()) ASSERT_EQ(dup2(null, ring), ring);
  close(null);
}

// Reads as many blocks as `into` has, each filled with `first` plus its number, and checks that
// they are whole.
void ExpectReadsLists(FileSystem* files, File* file, std::span<std::byte> into, size_t first) {
  std::vector<Transfer> reads;
  for (size_t i = 0; i < kBlocks; ++i) {
    reads.push_back({Transfer::Kind::kRead, file, i * kBlockBytes,
                     into.subspan(i * kBlockBytes, kBlockBytes), UnknownError("")});
  }
  files->TransferAll(reads);
  for (size_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(reads[i].status.ok()) << reads[i].status;
    ASSERT_EQ(into[i * kBlockBytes + 17], static_cast<std::byte>(first + i)) << i;
  }
}
void ExpectReadsLists(FileSystem* files, File* file, size_t first = 0) {
  Blocks read(kBlocks * kBlockBytes);
  ExpectReadsLists(files, file, read.bytes(), first);
}

std::unique_ptr<File> FileOfNumberedBlocks(FileSystem* files, const std::string& path,
                                           size_t first = 0) {
  auto file = *OpenByPath(files, path, FileAccess::kCreate, FileCaching::kDirect);
  Blocks block(kBlockBytes);
  for (size_t i = 0; i < kBlocks; ++i) {
    std::fill(block.bytes().begin(), block.bytes().end(), static_cast<std::byte>(first + i));
    EXPECT_TRUE(file->Write(i * kBlockBytes, block.bytes()).ok());
  }
  return file;
}

// The log lines while it lives.
class LogLines {
 public:
  LogLines() {
    SetLogSink([](int32_t, const char* message,
                  void* user) { static_cast<LogLines*>(user)->lines_.push_back(message); },
               this);
  }
  ~LogLines() { SetLogSink(nullptr, nullptr); }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  std::vector<std::string> lines_;
};

TEST(RingPool, GoesOnWithThreadsWhenARingBreaks) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get()));
  ASSERT_NO_FATAL_FAILURE(BreakRings());
  const LogLines log;
  for (int i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get()));
  }
  EXPECT_EQ(log.lines(), std::vector<std::string>{"io_uring: a ring broke; reads and writes go "
                                                  "through threads from now on"});
}

TEST(RingPool, GoesOnWithThreadsWhereRingsAreRefused) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({.transfer_threads = 3});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  const auto held = OpenedDirectory(files.get(), directory.path());
  rlimit limit;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int next = dup(0);
  ASSERT_GE(next, 0);
  close(next);
  const rlimit none = {static_cast<rlim_t>(next), limit.rlim_max};
  const LogLines log;
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  ExpectReadsLists(files.get(), file.get());
  EXPECT_EQ(held->Open("a", FileAccess::kRead, FileCaching::kCached).status().code(),
            StatusCode::kResourceExhausted);
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  ExpectReadsLists(files.get(), file.get());
  EXPECT_EQ(log.lines(),
            std::vector<std::string>{"io_uring: Too many open files; reads and writes go through "
                                     "threads from now on"});
}

// From now on a system call of this thread, with such a second argument, answers an error. False:
// this process may not ask for that.
bool RefuseCalls(uint32_t call, uint32_t argument, uint32_t error) {
  std::array<sock_filter, 6> steps = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[1])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, argument, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program = {steps.size(), steps.data()};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Reads lists, in memory that is kept, three times by one thread to which the calls are refused;
// the log lines.
std::vector<std::string> LinesOfRefusal(uint32_t call, uint32_t argument, uint32_t error) {
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  Blocks memory(kBlocks * kBlockBytes);
  files->RegisterMemory(memory.bytes());
  const LogLines log;
  std::thread([&] {
    if (!RefuseCalls(call, argument, error)) GTEST_SKIP() << "no filters of system calls";
    for (int i = 0; i < 3; ++i) ExpectReadsLists(files.get(), file.get(), memory.bytes(), 0);
  }).join();
  files->UnregisterMemory(memory.bytes());
  return log.lines();
}

using Lines = std::vector<std::string>;

// The numbers of the registration calls: linux/io_uring.h.
TEST(RingPool, DoesWithoutRegisteredFilesWhereTheyAreRefused) {
  if (!HasAllOfRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  constexpr uint32_t kTableOfFiles = 13;
  constexpr uint32_t kFile = 6;
  for (const uint32_t what : {kTableOfFiles, kFile}) {
    const Lines lines = LinesOfRefusal(SYS_io_uring_register, what, ENOMEM);
    if (IsSkipped()) return;
    EXPECT_EQ(lines, Lines{"io_uring: files are not registered: Cannot allocate memory"}) << what;
  }
}

TEST(RingPool, DoesWithoutRegisteredMemoryWhereItIsRefused) {
  if (!HasAllOfRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  constexpr uint32_t kTableOfMemory = 15;
  constexpr uint32_t kMemory = 16;
  for (const uint32_t what : {kTableOfMemory, kMemory}) {
    const Lines lines = LinesOfRefusal(SYS_io_uring_register, what, ENOMEM);
    if (IsSkipped()) return;
    EXPECT_EQ(lines, Lines{"io_uring: memory is not registered: Cannot allocate memory"}) << what;
  }
}

// A pipe with a name, as a file and as its other end.
struct Pipe {
  Pipe(FileSystem* files, const std::string& path) {
    EXPECT_EQ(mkfifo(path.c_str(), 0600), 0);
    file = *OpenByPath(files, path, FileAccess::kWrite, FileCaching::kCached);
    end = open(path.c_str(), O_RDWR | O_CLOEXEC);
    EXPECT_GE(end, 0);
  }
  ~Pipe() { close(end); }

  std::unique_ptr<File> file;
  int end;
};

// 32 of 40 transfers are on their way when the others are refused; one of them waits for us.
TEST(RingPool, WaitsForWhatIsOnItsWayWhenARingBreaks) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  const Pipe out(files.get(), directory.path() + "/out");
  const Pipe in(files.get(), directory.path() + "/in");
  Blocks read_into(kBlocks * kBlockBytes);
  std::byte sent = {};
  std::vector<Transfer> transfers = {
      {Transfer::Kind::kWrite, out.file.get(), 0, {&sent, 1}, UnknownError("")},
      {Transfer::Kind::kRead, in.file.get(), 0, {&sent, 1}, UnknownError("")}};
  while (transfers.size() < kBlocks) {
    const size_t i = transfers.size();
    transfers.push_back(
        {Transfer::Kind::kRead, file.get(), i * kBlockBytes, read_into.block(i), UnknownError("")});
  }
  const LogLines log;
  std::thread reader([&] {
    const bool refused = RefuseCalls(SYS_io_uring_enter, kBlocks - 32, EIO);
    files->TransferAll(transfers);
    if (!refused) GTEST_SKIP() << "no filters of system calls";
  });
  char byte = 'x';
  EXPECT_EQ(read(out.end, &byte, 1), 1);
  EXPECT_EQ(write(in.end, &byte, 1), 1);
  reader.join();
  for (size_t i = 0; i < kBlocks; ++i) {
    ASSERT_TRUE(transfers[i].status.ok()) << i << " " << transfers[i].status;
    ASSERT_EQ(read_into.block(i)[17], static_cast<std::byte>(i < 2 ? 0 : i));
  }
  if (IsSkipped()) return;
  EXPECT_EQ(log.lines(),
            Lines{"io_uring: a ring broke; reads and writes go through threads from now on"});
}

// A second file gets the number of the first.
TEST(RingPool, AClosedFileIsInNoTable) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  for (size_t first = 0; first < 3; ++first) {
    const std::string path = directory.path() + "/" + std::to_string(first);
    auto file = FileOfNumberedBlocks(files.get(), path, first * kBlocks);
    ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get(), first * kBlocks));
    EXPECT_EQ(Rings().size(), 1u);
    file.reset();
    EXPECT_EQ(Rings().size(), 0u) << "its space would not be given back";
  }
}

TEST(RingPool, AFileThatNoRingHasMetLeavesThemAlone) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get()));
  const std::vector<int> rings = Rings();
  FileOfNumberedBlocks(files.get(), directory.path() + "/b").reset();
  EXPECT_EQ(Rings(), rings);
}

// Pages that were kept stay the kernel's under their addresses, whatever is mapped there later.
TEST(RingPool, MemoryThatComesAgainIsReadInto) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  constexpr size_t kBytes = kBlocks * kBlockBytes;
  void* const place =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(place, MAP_FAILED);
  const std::span<std::byte> memory(static_cast<std::byte*>(place), kBytes);
  for (int i = 0; i < 3; ++i) {
    files->RegisterMemory(memory);
    ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get(), memory, 0));
    files->UnregisterMemory(memory);
    ASSERT_EQ(
        mmap(place, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
        place);
  }
  munmap(place, kBytes);
}

TEST(RingPool, FilesEndWhileRingsAreBusy) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const LogLines log;
  const auto open_and_close = [&](size_t thread) {
    for (size_t i = 0; i < 20; ++i) {
      const size_t first = thread * 100 + i;
      const std::string path = directory.path() + "/" + std::to_string(first);
      const auto file = FileOfNumberedBlocks(files.get(), path, first);
      for (int k = 0; k < 3; ++k) ExpectReadsLists(files.get(), file.get(), first);
    }
  };
  std::thread other([&] { open_and_close(1); });
  open_and_close(0);
  other.join();
  EXPECT_EQ(log.lines(), Lines());
}

// It has the first file under the number that the second one gets.
TEST(RingPool, ARingThatIsBusyWhenAFileEndsIsNotUsedAgain) {
  if (!HasRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const Pipe out(files.get(), directory.path() + "/out");
  const Pipe in(files.get(), directory.path() + "/in");
  FileOfNumberedBlocks(files.get(), directory.path() + "/b", kBlocks).reset();
  auto first = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  File* const first_file = first.get();
  std::atomic<File*> opened = nullptr;
  std::thread reader([&] {
    ExpectReadsLists(files.get(), first_file);
    std::byte byte = {};
    std::vector<Transfer> transfers = {
        {Transfer::Kind::kWrite, out.file.get(), 0, {&byte, 1}, UnknownError("")},
        {Transfer::Kind::kRead, in.file.get(), 0, {&byte, 1}, UnknownError("")}};
    files->TransferAll(transfers);
    EXPECT_TRUE(transfers[0].status.ok() && transfers[1].status.ok());
    ExpectReadsLists(files.get(), opened.load(), kBlocks);
  });
  char byte = 'x';
  EXPECT_EQ(read(out.end, &byte, 1), 1) << "the reader's ring is busy";
  first.reset();
  const auto second =
      *OpenByPath(files.get(), directory.path() + "/b", FileAccess::kRead, FileCaching::kDirect);
  opened = second.get();
  EXPECT_EQ(write(in.end, &byte, 1), 1);
  reader.join();
}

TEST(RingPool, EachThreadHasARingOfItsOwn) {
  if (!HasAllOfRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  const LogLines log;
  for (size_t i = 0; i < 3; ++i) {
    ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get()));
    EXPECT_EQ(Rings().size(), i + 1);
    std::thread([&] { ExpectReadsLists(files.get(), file.get()); }).join();
  }
  EXPECT_EQ(log.lines(), Lines());
}

TEST(RingPool, RingsOfThreadsThatHaveEndedAreBounded) {
  if (!HasAllOfRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/a");
  for (size_t i = 0; i < 70; ++i) {
    std::thread([&] { ExpectReadsLists(files.get(), file.get()); }).join();
  }
  EXPECT_EQ(Rings().size(), 64u);
}

// The facts that the kernel reports about a ring.
TEST(RingPool, RegistersWhatItUses) {
  if (!HasAllOfRings()) GTEST_SKIP() << "io_uring " << IoUringState();
  const ScratchDirectory directory;
  const auto files = MakePosixFileSystem({});
  const auto file = FileOfNumberedBlocks(files.get(), directory.path() + "/file_of_blocks");
  Blocks memory(kBlocks * kBlockBytes);
  files->RegisterMemory(memory.bytes());
  ASSERT_NO_FATAL_FAILURE(ExpectReadsLists(files.get(), file.get(), memory.bytes(), 0));
  ASSERT_EQ(Rings().size(), 1u);
  std::ifstream info("/proc/self/fdinfo/" + std::to_string(Rings().front()));
  std::stringstream text;
  text << info.rdbuf();
  files->UnregisterMemory(memory.bytes());
  if (text.str().find("UserFiles") == std::string::npos) GTEST_SKIP() << "the kernel does not tell";
  EXPECT_NE(text.str().find("file_of_blocks"), std::string::npos) << text.str();
  const std::string bytes = "/" + std::to_string(kBlocks * kBlockBytes);
  EXPECT_NE(text.str().find(bytes), std::string::npos) << text.str();
}

}  // namespace
}  // namespace embank::test::ring_pool_test
