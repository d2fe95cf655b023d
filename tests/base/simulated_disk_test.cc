// The images that a crash may leave of a simulated disk, and the failures of its calls.
#include "tests/support/simulated_disk.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "tests/support/bytes.h"
#include "tests/support/files_by_path.h"

namespace embank::test::simulated_disk_test {
namespace {

std::string TextOf(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// A disk with a directory, durable.
class DiskWorld : public testing::Test {
 protected:
  DiskWorld() {
    EXPECT_TRUE(disk_.CreateDirectory("d").ok());
    disk_.ClearHistory();
  }
  std::unique_ptr<File> Create(const std::string& path) {
    return *disk_.Open(path, FileAccess::kCreate, FileCaching::kCached);
  }
  // The texts that a file may have after a crash at the end, over many draws; "-": it is not there.
  std::set<std::string> TextsAfterCrash(const std::string& path, Persistence persistence) const {
    std::set<std::string> texts;
    for (uint64_t seed = 0; seed < 1000; ++seed) {
      const auto left = disk_.AfterCrash(disk_.changes(), persistence, seed);
      const std::vector<std::string> files = left->Files();
      const bool there = std::count(files.begin(), files.end(), path) > 0;
      texts.insert(there ? TextOf(left->Contents(path)) : "-");
    }
    return texts;
  }
  using Texts = std::set<std::string>;
  // The texts that a file that is always there may have wherever a crash comes.
  static Texts TextsOfCrashes(const SimulatedDisk& disk, const std::string& path) {
    Texts texts;
    for (size_t change = 0; change <= disk.changes(); ++change) {
      for (const Persistence persistence :
           {Persistence::kNone, Persistence::kAll, Persistence::kAllButOne, Persistence::kSome,
            Persistence::kTorn}) {
        for (uint64_t seed = 0; seed < 50; ++seed) {
          texts.insert(TextOf(disk.AfterCrash(change, persistence, seed)->Contents(path)));
        }
      }
    }
    return texts;
  }

  SimulatedDisk disk_;
};

Status DeviceFails(const DiskCall&) { return UnavailableError("the device fails"); }

TEST_F(DiskWorld, ACrashMayTakeAllThatIsNotSynced) {
  const auto file = Create("d/a");
  ASSERT_TRUE(file->Write(0, BytesOf("x")).ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kAll), Texts{"x"});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"-"});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kSome), (Texts{"-", "", "x"}));
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kAllButOne), (Texts{"-", ""}));
}

TEST_F(DiskWorld, ASyncKeepsTheBytesButNotTheName) {
  const auto file = Create("d/a");
  ASSERT_TRUE(file->Write(0, BytesOf("x")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"-"});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kSome), (Texts{"-", "x"}));
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"x"});
}

TEST_F(DiskWorld, ASyncDoesNotReachWhatIsWrittenAfterIt) {
  const auto file = Create("d/a");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  ASSERT_TRUE(file->Write(0, BytesOf("aaaa")).ok());
  ASSERT_TRUE(file->Sync().ok());
  ASSERT_TRUE(file->Write(0, BytesOf("b")).ok());
  ASSERT_TRUE(file->Write(2, BytesOf("cc")).ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"aaaa"});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kSome), (Texts{"aaaa", "baaa", "aacc", "bacc"}))
      << "a later write may stay without an earlier one";
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kTorn).count("aaca"), 1u);
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kTorn).count("aaac"), 1u);
}

TEST_F(DiskWorld, ATornWriteMayLackAnySectorOrAllButItsLength) {
  const auto file = Create("d/a");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  // Four sectors, each with a letter.
  std::string text;
  for (const char letter : {'a', 'b', 'c', 'd'}) text += std::string(512, letter);
  ASSERT_TRUE(file->Write(0, BytesOf(text)).ok());
  std::set<std::string> shapes;  // of each sector its last letter
  for (const std::string& left : TextsAfterCrash("d/a", Persistence::kTorn)) {
    std::string shape;
    for (size_t i = 511; i < left.size(); i += 512) shape += left[i] == '\0' ? '-' : left[i];
    shapes.insert(shape);
  }
  for (const char* shape : {"", "abcd", "a-cd", "ab-d", "a", "----", "abc-", "-bcd"}) {
    EXPECT_EQ(shapes.count(shape), 1u) << shape;
  }
}

TEST_F(DiskWorld, AfterASyncThatFailedNoLaterOneBringsBackWhatWasBefore) {
  const auto file = Create("d/a");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  ASSERT_TRUE(file->Write(0, BytesOf("x")).ok());
  disk_.SetFaults(DeviceFails);
  EXPECT_FALSE(file->Sync().ok());
  disk_.SetFaults(nullptr);
  ASSERT_TRUE(file->Write(1, BytesOf("y")).ok());
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{std::string("\0y", 2)});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kAll), Texts{"xy"});
}

TEST_F(DiskWorld, AfterADirectorysSyncThatFailedNoLaterOneBringsBackWhatWasBefore) {
  Create("d/a");
  disk_.SetFaults(DeviceFails);
  EXPECT_FALSE(disk_.SyncDirectory("d").ok());
  disk_.SetFaults(nullptr);
  Create("d/b");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"-"});
  EXPECT_EQ(TextsAfterCrash("d/b", Persistence::kNone), Texts{""});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kAll), Texts{""});
}

TEST_F(DiskWorld, FilesInALostDirectoryAreLost) {
  ASSERT_TRUE(disk_.CreateDirectory("e").ok());
  ASSERT_TRUE(Create("e/a")->Write(0, BytesOf("x")).ok());
  ASSERT_TRUE(disk_.SyncDirectory("e").ok());
  EXPECT_EQ(TextsAfterCrash("e/a", Persistence::kNone), Texts{"-"});
  ASSERT_TRUE(disk_.SyncDirectory(".").ok());
  EXPECT_EQ(TextsAfterCrash("e/a", Persistence::kNone), Texts{""});
  EXPECT_FALSE(disk_.SyncDirectory("none").ok());
  EXPECT_FALSE(disk_.SyncDirectory("e/a").ok());
  EXPECT_FALSE(disk_.Remove("e").ok()) << "it is not empty";
}

TEST_F(DiskWorld, AReplacedFileIsTheFormerOrTheNewOneWhereverACrashComes) {
  ASSERT_TRUE(ReplaceFile(OpenedDirectory(&disk_, "d").get(), "m", BytesOf("the former one")).ok());
  disk_.ClearHistory();
  ASSERT_TRUE(
      ReplaceFile(OpenedDirectory(&disk_, "d").get(), "m", BytesOf("the new one, which is longer"))
          .ok());
  EXPECT_EQ(TextsOfCrashes(disk_, "d/m"),
            (Texts{"the former one", "the new one, which is longer"}));
  EXPECT_EQ(TextsAfterCrash("d/m", Persistence::kNone), Texts{"the new one, which is longer"});
}

TEST_F(DiskWorld, AReplacedFileIsTheFormerOrTheNewOneWhicheverCallFails) {
  const Texts either = {"the former one", "the new one, which is longer"};
  ASSERT_TRUE(ReplaceFile(OpenedDirectory(&disk_, "d").get(), "m", BytesOf("the former one")).ok());
  Status status = UnknownError("");
  uint64_t failing = 0;
  while (!status.ok()) {
    ++failing;
    const auto disk = disk_.AfterCrash(disk_.changes(), Persistence::kAll, 1);
    const auto directory = OpenedDirectory(disk.get(), "d");
    const uint64_t before = disk->calls();
    disk->SetFaults([&](const DiskCall& call) {
      return call.number == before + failing ? DeviceFails(call) : OkStatus();
    });
    status = ReplaceFile(directory.get(), "m", BytesOf("the new one, which is longer"));
    disk->SetFaults(nullptr);
    EXPECT_EQ(either.count(TextOf(disk->Contents("d/m"))), 1u) << "call " << failing;
    for (const std::string& text : TextsOfCrashes(*disk, "d/m")) {
      EXPECT_EQ(either.count(text), 1u) << "a crash after call " << failing << " left " << text;
    }
    EXPECT_TRUE(ReplaceFile(directory.get(), "m", BytesOf("another")).ok())
        << "it can be tried again";
    EXPECT_EQ(TextOf(disk->Contents("d/m")), "another");
  }
  EXPECT_GT(failing, 5u) << "at least opened, written, synced, renamed and synced";
}

TEST_F(DiskWorld, ADraftForWhoseNameThereIsNoMemoryIsRemoved) {
  disk_.SetFaults([](const DiskCall& call) {
    if (call.kind == DiskCall::Kind::kRename) throw std::bad_alloc();
    return OkStatus();
  });
  EXPECT_TRUE(
      IsResourceExhausted(ReplaceFile(OpenedDirectory(&disk_, "d").get(), "m", BytesOf("x"))));
  EXPECT_TRUE(disk_.Files().empty());
}

TEST_F(DiskWorld, ARenamedFileMayBeEmptyIfNothingElseOfItIsLeft) {
  ASSERT_TRUE(Create("d/a")->Write(0, BytesOf("x")).ok());
  ASSERT_TRUE(disk_.Rename("d/a", "d/b").ok());
  EXPECT_EQ(TextsAfterCrash("d/b", Persistence::kSome), (Texts{"-", "", "x"}));
}

TEST_F(DiskWorld, TheSyncOfOneFileIsNotThatOfAnother) {
  const auto a = Create("d/a");
  const auto b = Create("d/b");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  ASSERT_TRUE(a->Write(0, BytesOf("a")).ok());
  ASSERT_TRUE(b->Write(0, BytesOf("b")).ok());
  ASSERT_TRUE(b->Sync().ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{""});
  EXPECT_EQ(TextsAfterCrash("d/b", Persistence::kNone), Texts{"b"});
}

TEST_F(DiskWorld, GrowthMayBeLost) {
  const auto file = Create("d/a");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  ASSERT_TRUE(file->Preallocate(2).ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kSome), (Texts{"", std::string(2, '\0')}));
  ASSERT_TRUE(file->Sync().ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{std::string(2, '\0')});
}

TEST_F(DiskWorld, ADirectoryIsNeitherRenamedNorRenamedOver) {
  Create("d/a");
  ASSERT_TRUE(disk_.CreateDirectory("e").ok());
  EXPECT_DEATH(disk_.Rename("e", "f").IgnoreError(), "broken");
  EXPECT_DEATH(disk_.Rename("d/a", "e").IgnoreError(), "broken");
}

TEST_F(DiskWorld, ARenameIsWholeOrLost) {
  for (const char* name : {"d/a", "d/b"}) {
    const auto file = Create(name);
    ASSERT_TRUE(file->Write(0, BytesOf(name)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  ASSERT_TRUE(disk_.Rename("d/a", "d/b").ok());
  EXPECT_EQ(TextsAfterCrash("d/b", Persistence::kSome), (Texts{"d/a", "d/b"}));
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kSome), (Texts{"-", "d/a"}));
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  EXPECT_EQ(TextsAfterCrash("d/b", Persistence::kNone), Texts{"d/a"});
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"-"});
}

TEST_F(DiskWorld, ARemovedFileMayComeBack) {
  ASSERT_TRUE(Create("d/a")->Write(0, BytesOf("x")).ok());
  disk_.ClearHistory();
  ASSERT_TRUE(disk_.Remove("d/a").ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kSome), (Texts{"-", "x"}));
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"-"});
}

TEST_F(DiskWorld, ACrashMayComeBeforeAnyChange) {
  const auto file = Create("d/a");
  ASSERT_TRUE(disk_.SyncDirectory("d").ok());
  for (const char* text : {"1", "2", "3"}) {
    ASSERT_TRUE(file->Write(0, BytesOf(text)).ok());
    ASSERT_TRUE(file->Sync().ok());
  }
  std::vector<std::string> texts;
  for (size_t change = 2; change <= disk_.changes(); ++change) {
    texts.push_back(TextOf(disk_.AfterCrash(change, Persistence::kNone, 1)->Contents("d/a")));
  }
  EXPECT_EQ(texts, (std::vector<std::string>{"", "", "1", "1", "2", "2", "3"}));
}

TEST_F(DiskWorld, ACrashLeavesADiskLikeAnother) {
  ASSERT_TRUE(Create("d/a")->Write(0, BytesOf("x")).ok());
  const auto lock = disk_.Lock("d/a", false);
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kAll, 1);
  EXPECT_TRUE(left->Lock("d/a", false).ok()) << "locks end with their process";
  EXPECT_EQ(TextOf(left->AfterCrash(0, Persistence::kNone, 1)->Contents("d/a")), "x")
      << "what a crash has left is durable";
  const auto file = *left->Open("d/b", FileAccess::kCreate, FileCaching::kCached);
  ASSERT_TRUE(file->Write(0, BytesOf("y")).ok());
  EXPECT_EQ(TextOf(left->Contents("d/a")), "x") << "files of different numbers";
}

TEST_F(DiskWorld, CallsFailAsPlanned) {
  const auto file = Create("d/a");
  std::vector<DiskCall::Kind> kinds;
  disk_.SetFaults([&](const DiskCall& call) {
    kinds.push_back(call.kind);
    EXPECT_EQ(call.path, "d/a");
    return kinds.size() == 2 ? UnavailableError("the device fails") : OkStatus();
  });
  EXPECT_TRUE(file->Write(0, BytesOf("12345678")).ok());
  EXPECT_EQ(file->Write(0, BytesOf("abcdefgh")).message(), "the device fails");
  EXPECT_TRUE(file->Sync().ok());
  disk_.SetFaults(nullptr);
  std::set<std::string> left;  // of many writes that fail
  disk_.SetFaults(DeviceFails);
  for (int i = 0; i < 50; ++i) {
    EXPECT_FALSE(file->Write(0, BytesOf(i % 2 == 0 ? "ABCDEFGH" : "12345678")).ok());
    left.insert(TextOf(disk_.Contents("d/a")));
  }
  disk_.SetFaults(nullptr);
  EXPECT_GT(left.size(), 10u) << "writes that fail leave pieces";
  EXPECT_EQ(kinds,
            (std::vector{DiskCall::Kind::kWrite, DiskCall::Kind::kWrite, DiskCall::Kind::kSync}));
}

TEST_F(DiskWorld, EveryCallCanFail) {
  using Kind = DiskCall::Kind;
  const auto file = Create("d/a");
  ASSERT_TRUE(file->Write(0, BytesOf("x")).ok());
  const auto lock = *disk_.Lock("d/a", true);
  std::vector<Kind> kinds;
  disk_.SetFaults([&](const DiskCall& call) {
    kinds.push_back(call.kind);
    return DeviceFails(call);
  });
  std::vector<std::byte> read(1);
  const std::vector<Status> statuses = {
      disk_.Open("d/b", FileAccess::kCreate, FileCaching::kCached).status(),
      file->Read(0, read),
      file->Write(0, {}),
      file->Preallocate(2),
      file->Sync(),
      file->SizeBytes().status(),
      disk_.Rename("d/a", "d/b"),
      disk_.Link("d/a", "d/b"),
      disk_.Remove("d/a"),
      disk_.CreateDirectory("e"),
      disk_.List("d").status(),
      disk_.SyncDirectory("none"),
      disk_.FreeBytes("d").status(),
      disk_.Lock("d/a", false).status(),
      disk_.OpenDirectory("d").status(),
      disk_.LockDirectory("d", false).status(),
      lock->IsInPlace().status(),
  };
  disk_.SetFaults(nullptr);
  for (const Status& status : statuses) EXPECT_EQ(status, DeviceFails({}));
  EXPECT_EQ(kinds, (std::vector{Kind::kOpen, Kind::kRead, Kind::kWrite, Kind::kPreallocate,
                                Kind::kSync, Kind::kSize, Kind::kRename, Kind::kLink, Kind::kRemove,
                                Kind::kCreateDirectory, Kind::kList, Kind::kSyncDirectory,
                                Kind::kFreeBytes, Kind::kLock, Kind::kOpenDirectory,
                                Kind::kLockDirectory, Kind::kLockInPlace}));
  EXPECT_EQ(disk_.Files(), std::vector<std::string>{"d/a"});
  EXPECT_EQ(TextOf(disk_.Contents("d/a")), "x");
  EXPECT_TRUE(disk_.Lock("d/a", true).ok());
  EXPECT_TRUE(disk_.LockDirectory("d", false).ok());
}

TEST_F(DiskWorld, AWriteWithoutSpaceLeavesPiecesOfWhatThereWasSpaceFor) {
  disk_.SetCapacity(10);
  Texts left;  // of many such writes
  for (int i = 0; i < 200; ++i) {
    const auto file = Create("d/a");
    ASSERT_TRUE(file->Write(0, BytesOf("1234")).ok());
    EXPECT_EQ(file->Write(2, BytesOf("abcdefghijkl")).code(), StatusCode::kResourceExhausted);
    left.insert(TextOf(disk_.Contents("d/a")));
    ASSERT_TRUE(disk_.Remove("d/a").ok());
  }
  for (const std::string& text : left) {
    ASSERT_LE(text.size(), 10u);
    for (size_t i = 0; i < text.size(); ++i) {
      const char before = i < 4 ? "1234"[i] : '\0';
      const char after = "12abcdefgh"[i];
      EXPECT_TRUE(text[i] == before || text[i] == after) << text;
    }
  }
  EXPECT_EQ(left.count("1234"), 1u);
  EXPECT_EQ(left.count("12abcdefgh"), 1u) << "all that there was space for";
  EXPECT_GT(left.size(), 10u);
}

TEST_F(DiskWorld, RunsFullAndHasSpaceAgain) {
  disk_.SetCapacity(10);
  auto file = Create("d/a");
  EXPECT_TRUE(file->Preallocate(8).ok());
  EXPECT_EQ(*disk_.FreeBytes("d"), 2u);
  EXPECT_TRUE(file->Write(0, BytesOf("12345678")).ok()) << "its space was taken before";
  EXPECT_EQ(file->Write(8, BytesOf("901")).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(Create("d/b")->Preallocate(3).code(), StatusCode::kResourceExhausted);
  ASSERT_TRUE(disk_.Remove("d/a").ok());
  EXPECT_LE(*disk_.FreeBytes("d"), 2u) << "an open file keeps its space";
  file = nullptr;
  EXPECT_EQ(*disk_.FreeBytes("d"), 10u);
  EXPECT_TRUE(Create("d/c")->Preallocate(10).ok());
}

TEST_F(DiskWorld, AHoleTakesNoSpace) {
  disk_.SetCapacity(10);
  const auto file = Create("d/a");
  EXPECT_TRUE(file->Write(100, BytesOf("1234")).ok());
  EXPECT_EQ(disk_.TakenBytes("d/a"), 4u);
  EXPECT_TRUE(file->PreallocateRange(50, 6).ok());
  EXPECT_EQ(*disk_.FreeBytes("d"), 0u);
  EXPECT_EQ(file->Write(0, BytesOf("5")).code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(file->Write(50, BytesOf("567890")).ok()) << "its space was taken before";
  disk_.Truncate("d/a", 52);
  EXPECT_EQ(*file->TakenBytes(), 2u);
}

TEST_F(DiskWorld, AReadOnlyFileSystemIsReadAndNothingElse) {
  ASSERT_TRUE(Create("d/f")->Write(0, BytesOf("text")).ok());
  disk_.SetReadOnly(true);
  const size_t changes = disk_.changes();
  const Status refused[] = {disk_.Open("d/f", FileAccess::kWrite, FileCaching::kCached).status(),
                            disk_.Open("d/g", FileAccess::kCreate, FileCaching::kCached).status(),
                            disk_.Rename("d/f", "d/g"),
                            disk_.Link("d/f", "d/g"),
                            disk_.Remove("d/f"),
                            disk_.CreateDirectory("e"),
                            disk_.Lock("d/f", false).status()};
  for (const Status& status : refused) {
    EXPECT_TRUE(IsPermissionDenied(status)) << status;
  }
  EXPECT_TRUE(disk_.Lock("d/f", true).ok());
  EXPECT_EQ(disk_.List("d")->size(), 1u);
  const auto bytes = ReadWholeFile(OpenedDirectory(&disk_, "d").get(), "f", 100);
  ASSERT_TRUE(bytes.ok()) << bytes.status();
  EXPECT_EQ(TextOf(*bytes), "text");
  EXPECT_EQ(disk_.changes(), changes);
  disk_.SetReadOnly(false);
  EXPECT_TRUE(disk_.Remove("d/f").ok());
}

TEST_F(DiskWorld, RotsUnseen) {
  ASSERT_TRUE(Create("d/a")->Write(0, BytesOf("12345")).ok());
  disk_.Corrupt("d/a", 2, BytesOf("x"));
  disk_.ClearHistory();
  const auto file = *disk_.Open("d/a", FileAccess::kWrite, FileCaching::kCached);
  ASSERT_TRUE(file->Write(0, BytesOf("ab")).ok());
  disk_.Corrupt("d/a", 4, BytesOf("y"));
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"12x4y"})
      << "rot stays, and makes nothing else durable";
  disk_.Truncate("d/a", 1);
  EXPECT_EQ(TextOf(disk_.Contents("d/a")), "a");
  EXPECT_EQ(TextsAfterCrash("d/a", Persistence::kNone), Texts{"1"});
}

// ---- persistent memory ----

constexpr size_t kLineBytes = 64;

// A file of three lines, all 'a' and durable, and open.
class PmemWorld : public testing::Test {
 protected:
  PmemWorld() {
    EXPECT_TRUE(disk_.CreateDirectory("d").ok());
    file_ = *disk_.Open("d/a", FileAccess::kCreate, FileCaching::kDirect);
    EXPECT_TRUE(file_->Preallocate(3 * kLineBytes).ok());
    EXPECT_TRUE(file_->Write(0, BytesOf(std::string(3 * kLineBytes, 'a'))).ok());
    EXPECT_TRUE(file_->Sync().ok());
    disk_.ClearHistory();
  }
  std::set<std::string> TextsAfterCrash(Persistence persistence) const {
    std::set<std::string> texts;
    for (uint64_t seed = 0; seed < 3000; ++seed) {
      const auto left = disk_.AfterCrash(disk_.changes(), persistence, seed);
      texts.insert(TextOf(left->Contents("d/a")));
    }
    return texts;
  }

  SimulatedDisk disk_{SimulatedMedium::kPmem};
  std::unique_ptr<File> file_;
};

TEST_F(PmemWorld, AFileIsMappedByPreallocateAndByOpening) {
  EXPECT_FALSE(file_->direct());
  ASSERT_EQ(file_->mapping().size(), 3 * kLineBytes);
  ASSERT_TRUE(file_->Write(1, BytesOf("xyz")).ok());
  EXPECT_EQ(TextOf({file_->mapping().begin(), file_->mapping().begin() + 5}), "axyza");
  const auto again = *disk_.Open("d/a", FileAccess::kRead, FileCaching::kDirect);
  EXPECT_EQ(again->mapping().data(), file_->mapping().data());
  const auto fresh = *disk_.Open("d/b", FileAccess::kCreate, FileCaching::kDirect);
  EXPECT_TRUE(fresh->mapping().empty());
  EXPECT_TRUE(
      (*SimulatedDisk().Open("c", FileAccess::kCreate, FileCaching::kCached))->mapping().empty());
}

TEST_F(PmemWorld, AMappedFileKeepsItsLength) {
  EXPECT_EQ(file_->Write(3 * kLineBytes - 1, BytesOf("xy")).code(), StatusCode::kOutOfRange);
  EXPECT_EQ(file_->Preallocate(3 * kLineBytes + 1).code(), StatusCode::kUnimplemented);
  EXPECT_TRUE(file_->Preallocate(1).ok());
  EXPECT_EQ(*file_->SizeBytes(), 3 * kLineBytes);
}

TEST_F(PmemWorld, AFileForWhichThereIsNoSpaceIsNotLeftBehind) {
  disk_.SetCapacity(4 * kLineBytes);
  const auto file = *disk_.Open("d/b", FileAccess::kCreate, FileCaching::kDirect);
  EXPECT_EQ(file->Preallocate(2 * kLineBytes).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(disk_.Files(), std::vector<std::string>{"d/a"});
}

// Each line is a letter of the shape: as before, as written, or some words of each.
TEST_F(PmemWorld, ATornWriteLeavesAnyOfItsLinesAndAnyWordsOfALine) {
  ASSERT_TRUE(file_->Write(0, BytesOf(std::string(3 * kLineBytes, 'b'))).ok());
  std::set<std::string> shapes;
  bool has_torn_word = false;
  for (const std::string& left : TextsAfterCrash(Persistence::kTorn)) {
    std::string shape;
    for (size_t line = 0; line < 3; ++line) {
      const std::string bytes = left.substr(line * kLineBytes, kLineBytes);
      for (size_t word = 0; word < kLineBytes; word += 8) {
        if (bytes.substr(word, 8) != std::string(8, bytes[word])) has_torn_word = true;
      }
      const auto written = std::count(bytes.begin(), bytes.end(), 'b');
      shape += written == 0 ? 'a' : written == kLineBytes ? 'b' : 'm';
    }
    shapes.insert(shape);
  }
  EXPECT_FALSE(has_torn_word);
  for (const char* shape : {"aaa", "bbb", "abb", "bab", "bba", "aab", "baa", "aba", "mab", "bmb",
                            "amb", "mmm", "bbm"}) {
    EXPECT_EQ(shapes.count(shape), 1u) << shape;
  }
}

TEST_F(PmemWorld, AWriteInsideOfWordsIsTornAtThem) {
  ASSERT_TRUE(file_->Write(4, BytesOf("bbbbbbbb")).ok());  // the ends of two words
  std::set<std::string> begins;
  for (const std::string& left : TextsAfterCrash(Persistence::kTorn)) {
    begins.insert(left.substr(0, 16));
  }
  EXPECT_EQ(begins, (std::set<std::string>{"aaaaaaaaaaaaaaaa", "aaaabbbbbbbbaaaa",
                                           "aaaabbbbaaaaaaaa", "aaaaaaaabbbbaaaa"}));
}

TEST_F(PmemWorld, OnlyASyncMakesWritesDurable) {
  const std::string before(3 * kLineBytes, 'a');
  const std::string after = "b" + before.substr(1);
  const uint64_t syncs = disk_.syncs();
  ASSERT_TRUE(file_->Write(0, BytesOf("b")).ok());
  EXPECT_EQ(TextsAfterCrash(Persistence::kNone), std::set<std::string>{before});
  EXPECT_EQ(TextsAfterCrash(Persistence::kSome), (std::set<std::string>{before, after}));
  ASSERT_TRUE(file_->Sync().ok());
  EXPECT_EQ(TextsAfterCrash(Persistence::kTorn), std::set<std::string>{after});
  EXPECT_EQ(disk_.syncs(), syncs + 1);
}

TEST_F(PmemWorld, ACrashLeavesPersistentMemoryAgain) {
  ASSERT_TRUE(file_->Write(0, BytesOf("b")).ok());
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kAll, 1);
  const auto file = *left->Open("d/a", FileAccess::kWrite, FileCaching::kDirect);
  ASSERT_EQ(file->mapping().size(), 3 * kLineBytes);
  ASSERT_TRUE(file->Write(1, BytesOf("c")).ok());
  EXPECT_EQ(TextOf(left->Contents("d/a")).substr(0, 3), "bca");
  EXPECT_EQ(TextOf(disk_.Contents("d/a")).substr(0, 3), "baa");
}

}  // namespace
}  // namespace embank::test::simulated_disk_test
