#include "store/checkpoint/checkpoint_directory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/simulated_disk.h"
#include "tests/support/warnings.h"
#include "tiers/row/row_layout.h"
#include "tiers/segment/log_record.h"

namespace embank::test::checkpoint_directory_test {
namespace {

using Checkpoints = std::vector<uint32_t>;
using DirectoryOr = StatusOr<std::unique_ptr<CheckpointDirectory>>;

constexpr uint32_t kSlotBytes = 32;

Manifest ManifestOf(uint32_t checkpoint, const std::vector<uint64_t>& segments = {}) {
  Manifest manifest;
  manifest.store_id = 5;
  manifest.checkpoint = checkpoint;
  manifest.next_segment_ids[Tier::kSsd] = 1000;
  manifest.row_classes = {{.slot_bytes = kSlotBytes}};
  for (const uint64_t segment : segments) {
    manifest.segments.push_back({.header = {.store_id = 5,
                                            .segment_id = segment,
                                            .row_class = 0,
                                            .record_bytes = RecordBytesOf(kSlotBytes),
                                            .segment_bytes = 16 * kBlockBytes},
                                 .used_slots = 1,
                                 .bits = {1},
                                 .keys = {},
                                 .tables = {}});
  }
  return manifest;
}

Status Keep(CheckpointDirectory* directory, Manifest manifest, uint32_t previous) {
  bool in_doubt = false;
  manifest.previous = previous;
  return directory->Keep(manifest, &in_doubt);
}

class CheckpointDirectoryTest : public testing::Test {
 protected:
  DirectoryOr Open(bool may_create = true) {
    return CheckpointDirectory::Open(&disk_, "store", may_create);
  }
  // One that must open.
  std::unique_ptr<CheckpointDirectory> Opened(bool may_create = true) {
    DirectoryOr directory = Open(may_create);
    EXPECT_TRUE(directory.ok()) << directory.status();
    return directory.ok() ? *std::move(directory) : nullptr;
  }
  void MakeFile(const std::string& path) {
    const auto file = disk_.Open(path, FileAccess::kCreate, FileCaching::kCached);
    ASSERT_TRUE(file.ok()) << file.status();
  }
  // Checkpoints 0 to last, each with the one before as its base.
  void MakeStore(uint32_t last) {
    const auto directory = Opened();
    for (uint32_t n = 0; n <= last; ++n) {
      const Status kept = Keep(directory.get(), ManifestOf(n), n == 0 ? 0 : n - 1);
      ASSERT_TRUE(kept.ok()) << kept;
    }
  }
  bool Has(const std::string& name) const {
    const std::vector<std::string> files = disk_.Files();
    return std::count(files.begin(), files.end(), "store/" + name) == 1;
  }
  static Checkpoints CheckpointsOf(const CheckpointDirectory& directory) {
    return directory.listing().checkpoints;
  }
  void FailOn(DiskCall::Kind kind) {
    disk_.SetFaults([kind](const DiskCall& call) {
      return call.kind == kind ? UnavailableError(call.path + ": no answer") : OkStatus();
    });
  }

  SimulatedDisk disk_;
};

// ---- opening ----

TEST_F(CheckpointDirectoryTest, ANewOneIsMadeAndHasNoCheckpoint) {
  const auto directory = Opened();
  ASSERT_NE(directory, nullptr);
  EXPECT_TRUE(directory->listing().checkpoints.empty());
  EXPECT_EQ(directory->listing().next_segment_ids[Tier::kSsd], 1u);
  EXPECT_EQ(disk_.Files(), (std::vector<std::string>{"store/LOCK"}));
  // Its name outlives a crash.
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kNone, 0);
  EXPECT_TRUE(left->List("store").ok());
}

TEST_F(CheckpointDirectoryTest, WhereNoneMayBeMadeNothingIs) {
  EXPECT_TRUE(IsNotFound(Open(/*may_create=*/false).status()));
  EXPECT_TRUE(disk_.Files().empty());
  EXPECT_FALSE(disk_.List("store").ok());
  // The same with a directory, with a lock or without.
  ASSERT_TRUE(disk_.CreateDirectory("store").ok());
  EXPECT_TRUE(IsNotFound(Open(/*may_create=*/false).status()));
  EXPECT_TRUE(disk_.Files().empty());
  MakeFile("store/LOCK");
  MakeFile("store/MANIFEST-00000001.new");
  const std::vector<std::string> before = disk_.Files();
  const Status status = Open(/*may_create=*/false).status();
  EXPECT_EQ(disk_.Files(), before);
  EXPECT_TRUE(IsNotFound(status)) << status;
  EXPECT_NE(status.message().find("path: store"), std::string::npos) << status;
}

TEST_F(CheckpointDirectoryTest, AnEmptyDirectoryIsTaken) {
  ASSERT_TRUE(disk_.CreateDirectory("store").ok());
  EXPECT_NE(Opened(), nullptr);
}

TEST_F(CheckpointDirectoryTest, OneThatIsOpenElsewhereIsUnavailable) {
  auto directory = Opened();
  ASSERT_TRUE(Keep(directory.get(), ManifestOf(0), 0).ok());
  for (const bool may_create : {false, true}) {
    const Status status = Open(may_create).status();
    EXPECT_TRUE(IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("path: store"), std::string::npos) << status;
  }
  directory.reset();
  EXPECT_NE(Opened(/*may_create=*/false), nullptr);
}

TEST_F(CheckpointDirectoryTest, AFileIsNoDirectory) {
  MakeFile("store");
  const Status status = Open().status();
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("store"), std::string::npos) << status;
  EXPECT_EQ(disk_.Files(), (std::vector<std::string>{"store"}));
}

TEST_F(CheckpointDirectoryTest, SegmentsWithoutAManifestAreDataLoss) {
  ASSERT_TRUE(disk_.CreateDirectory("store").ok());
  MakeFile("store/segment-0000000000000001");
  for (const bool may_create : {true, false}) {
    const Status status = Open(may_create).status();
    EXPECT_TRUE(IsDataLoss(status)) << status;
    EXPECT_NE(status.message().find("path: store"), std::string::npos) << status;
  }
  EXPECT_TRUE(Has("segment-0000000000000001"));
}

TEST_F(CheckpointDirectoryTest, AParentThatIsMissingIsNamed) {
  const auto directory = CheckpointDirectory::Open(&disk_, "none/store", true);
  EXPECT_TRUE(IsNotFound(directory.status()));
  EXPECT_NE(directory.status().message().find("none"), std::string::npos) << directory.status();
}

// ---- locks ----

TEST_F(CheckpointDirectoryTest, ALockThatIsMissingBesideAManifestIsMadeAgain) {
  MakeStore(1);
  ASSERT_TRUE(disk_.Remove("store/LOCK").ok());
  const Warnings warnings;
  const auto directory = Opened(/*may_create=*/false);
  EXPECT_TRUE(Has("LOCK"));
  ASSERT_EQ(warnings.lines().size(), 1u);
  EXPECT_NE(warnings.lines()[0].find("store/LOCK"), std::string::npos);
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({0, 1}));
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
}

TEST_F(CheckpointDirectoryTest, WithoutALockAndAManifestNoLockIsMade) {
  ASSERT_TRUE(disk_.CreateDirectory("store").ok());
  MakeFile("store/segment-0000000000000001");
  EXPECT_TRUE(IsDataLoss(Open(/*may_create=*/false).status()));
  EXPECT_FALSE(Has("LOCK"));
}

TEST_F(CheckpointDirectoryTest, AReplacedLockIsNoticedBeforeAManifestIsWritten) {
  MakeStore(1);
  const auto directory = Opened();
  ASSERT_TRUE(disk_.Rename("store/LOCK", "store/aside").ok());
  for (const bool is_replaced : {false, true}) {
    if (is_replaced) MakeFile("store/LOCK");
    const size_t changes = disk_.changes();
    const Status status = Keep(directory.get(), ManifestOf(2), 1);
    EXPECT_TRUE(IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("store/LOCK"), std::string::npos) << status;
    EXPECT_EQ(disk_.changes(), changes);
  }
  ASSERT_TRUE(disk_.Rename("store/aside", "store/LOCK").ok());
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
}

// As on some network file systems, LOCK is the only lock.
TEST_F(CheckpointDirectoryTest, WhereDirectoriesAreNotLockedTheFileIs) {
  MakeStore(1);
  disk_.SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kLockDirectory ? UnimplementedError("no such locks")
                                                       : OkStatus();
  });
  auto first = Opened();
  EXPECT_TRUE(IsUnavailable(Open().status()));
  EXPECT_TRUE(IsUnavailable(CheckpointDirectory::OpenToRead(&disk_, "store", "path").status()));
  // Removing the lock file lets another process in; the first then makes no further checkpoint.
  ASSERT_TRUE(disk_.Remove("store/LOCK").ok());
  auto second = Opened();
  EXPECT_TRUE(IsUnavailable(Keep(first.get(), ManifestOf(2), 1)));
  EXPECT_TRUE(Keep(second.get(), ManifestOf(2), 1).ok());
  first.reset();
  second.reset();
  ASSERT_TRUE(disk_.Remove("store/LOCK").ok());
  const Status reader = CheckpointDirectory::OpenToRead(&disk_, "store", "path").status();
  EXPECT_TRUE(IsFailedPrecondition(reader)) << reader;
  EXPECT_NE(reader.message().find("path: store has no LOCK"), std::string::npos) << reader;
  EXPECT_TRUE(IsNotFound(CheckpointDirectory::OpenToRead(&disk_, "none", "path").status()));
}

// ---- keeping ----

TEST_F(CheckpointDirectoryTest, TheBaseAndTheNewestAreKept) {
  const auto directory = Opened();
  ASSERT_TRUE(Keep(directory.get(), ManifestOf(0), 0).ok());
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({0}));
  ASSERT_TRUE(Keep(directory.get(), ManifestOf(1), 0).ok());
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({0, 1}));
  ASSERT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({1, 2}));
  // One that failed left a number out; and a store that was opened as its previous one goes on.
  ASSERT_TRUE(Keep(directory.get(), ManifestOf(5), 1).ok());
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({1, 5}));
  EXPECT_EQ(disk_.Files(),
            (std::vector<std::string>{"store/COMPLETED-00000005", "store/LOCK",
                                      "store/MANIFEST-00000001", "store/MANIFEST-00000005"}));
  for (const uint32_t checkpoint : {1u, 5u}) {
    const auto loaded = directory->Load(checkpoint);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_EQ(loaded->checkpoint, checkpoint);
  }
}

TEST_F(CheckpointDirectoryTest, CheckpointsAreInTheOrderOfTheirNumbers) {
  MakeStore(0x1F);
  EXPECT_TRUE(Has("MANIFEST-0000001e"));
  EXPECT_EQ(CheckpointsOf(*Opened(/*may_create=*/false)), Checkpoints({0x1E, 0x1F}));
  // Across a digit of another length.
  ASSERT_TRUE(Keep(Opened().get(), ManifestOf(0x100), 0x1F).ok());
  EXPECT_EQ(CheckpointsOf(*Opened()), Checkpoints({0x1F, 0x100}));
}

TEST_F(CheckpointDirectoryTest, KeptCheckpointsOutliveACrash) {
  MakeStore(3);
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kNone, 0);
  const auto directory = CheckpointDirectory::Open(left.get(), "store", false);
  ASSERT_TRUE(directory.ok()) << directory.status();
  // The names that were removed last may be there again; the newest says which counts.
  EXPECT_EQ(CheckpointsOf(**directory).back(), 3u);
  EXPECT_EQ((*directory)->Load(3)->previous, 2u);
  EXPECT_TRUE((*directory)->Load(2).ok());
  EXPECT_TRUE((*directory)->Load(3).ok());
}

// A process that was killed after the rename has not synced the name.
TEST_F(CheckpointDirectoryTest, AFoundCheckpointOutlivesACrash) {
  MakeStore(1);
  {
    const auto directory = Opened();
    disk_.SetFaults([](const DiskCall& call) {
      const bool killed = call.kind == DiskCall::Kind::kSyncDirectory;
      return killed ? CancelledError("killed") : OkStatus();
    });
    EXPECT_FALSE(Keep(directory.get(), ManifestOf(2), 1).ok());
  }
  disk_.SetFaults(nullptr);
  EXPECT_EQ(CheckpointsOf(*Opened()).back(), 2u);
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kNone, 0);
  const auto directory = CheckpointDirectory::Open(left.get(), "store", false);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ(CheckpointsOf(**directory).back(), 2u);
}

TEST_F(CheckpointDirectoryTest, OneThatCannotBeWrittenLeavesTheOthers) {
  MakeStore(1);
  const auto directory = Opened();
  for (const DiskCall::Kind kind : {DiskCall::Kind::kOpen, DiskCall::Kind::kWrite,
                                    DiskCall::Kind::kSync, DiskCall::Kind::kRename}) {
    SCOPED_TRACE(static_cast<int>(kind));
    FailOn(kind);
    const Status status = Keep(directory.get(), ManifestOf(2), 1);
    disk_.SetFaults(nullptr);
    EXPECT_TRUE(IsUnavailable(status)) << status;
    EXPECT_NE(status.message().find("MANIFEST-00000002"), std::string::npos) << status;
    EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({0, 1}));
    EXPECT_TRUE(directory->Load(0).ok() && directory->Load(1).ok());
    EXPECT_FALSE(Has("MANIFEST-00000002"));
  }
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
}

// No later sync of the directory makes up for one that failed.
TEST_F(CheckpointDirectoryTest, OneInDoubtIsTheLastUntilTheDirectoryIsOpenedAnew) {
  MakeStore(1);
  {
    const auto directory = Opened();
    FailOn(DiskCall::Kind::kSyncDirectory);
    const Status status = Keep(directory.get(), ManifestOf(2), 1);
    disk_.SetFaults(nullptr);
    EXPECT_TRUE(IsUnavailable(status)) << status;
    EXPECT_EQ(Keep(directory.get(), ManifestOf(3), 1), status);
    EXPECT_TRUE(Has("MANIFEST-00000000") && Has("MANIFEST-00000001"));
    EXPECT_FALSE(Has("MANIFEST-00000003"));
  }
  const auto directory = Opened();
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({0, 1, 2}));
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(3), 2).ok());
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({2, 3}));
  EXPECT_FALSE(Has("MANIFEST-00000000"));
}

TEST_F(CheckpointDirectoryTest, AFileThatCannotBeRemovedIsWorthAWord) {
  MakeStore(1);
  const auto directory = Opened();
  const Warnings warnings;
  disk_.SetFaults([](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kRemove && !call.path.ends_with(".new");
    return fails ? UnavailableError(call.path + ": stuck") : OkStatus();
  });
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
  disk_.SetFaults(nullptr);
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({1, 2}));
  ASSERT_EQ(warnings.lines().size(), 1u);
  EXPECT_NE(warnings.lines()[0].find("MANIFEST-00000000"), std::string::npos);
  // The next opening gets rid of it.
  EXPECT_TRUE(Has("MANIFEST-00000000"));
}

// ---- completed checkpoints ----

// Every image that a crash before a change may leave: no manifest is missing for which there is a
// mark.
TEST_F(CheckpointDirectoryTest, ACrashIsNeverTakenForALostManifest) {
  MakeStore(3);
  ASSERT_TRUE(Keep(Opened().get(), ManifestOf(7), 2).ok());  // as the previous one was opened
  uint64_t images = 0;
  uint64_t marked = 0;
  for (size_t change = 0; change <= disk_.changes(); ++change) {
    for (uint64_t seed = 0; seed < 30; ++seed) {
      for (const Persistence persistence :
           {Persistence::kNone, Persistence::kAll, Persistence::kAllButOne, Persistence::kSome}) {
        const auto left = disk_.AfterCrash(change, persistence, seed);
        DirectoryOr directory = CheckpointDirectory::Open(left.get(), "store", true);
        ASSERT_TRUE(directory.ok()) << directory.status() << " before change " << change;
        const auto kept = (*directory)->LoadKept();
        ++images;
        if (kept.empty()) continue;
        ASSERT_TRUE(kept[0].manifest.ok()) << kept[0].manifest.status() << ", " << change;
        const std::string newest = ManifestName(kept[0].checkpoint);
        (*directory).reset();
        ASSERT_TRUE(left->Remove("store/" + newest).ok());
        const auto without = CheckpointDirectory::Open(left.get(), "store", true);
        const bool is_noticed = !without.ok() || (!(*without)->LoadKept().empty() &&
                                                  !(*without)->LoadKept()[0].manifest.ok());
        marked += is_noticed ? 1 : 0;
      }
    }
  }
  EXPECT_GT(marked, images / 2) << "of " << images;
}

TEST_F(CheckpointDirectoryTest, EveryCrashLeavesTheMarkOfACompletedCheckpoint) {
  MakeStore(2);
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kSome, seed);
    ASSERT_TRUE(left->Remove("store/MANIFEST-00000002").ok());
    const auto directory = CheckpointDirectory::Open(left.get(), "store", false);
    ASSERT_TRUE(directory.ok()) << directory.status();
    const auto kept = (*directory)->LoadKept();
    ASSERT_EQ(kept.size(), 2u);
    EXPECT_EQ(kept[0].checkpoint, 2u);
    EXPECT_TRUE(IsDataLoss(kept[0].manifest.status())) << kept[0].manifest.status();
    EXPECT_EQ(kept[1].checkpoint, 1u);
    EXPECT_TRUE(kept[1].manifest.ok());
    EXPECT_EQ((*directory)->listing().next_checkpoint(), 3u);
  }
}

TEST_F(CheckpointDirectoryTest, AStoreWhoseOnlyManifestIsMissingIsNotTakenForANewOne) {
  MakeStore(0);
  ASSERT_TRUE(disk_.Remove("store/MANIFEST-00000000").ok());
  const Status status = Open(/*may_create=*/true).status();
  EXPECT_TRUE(IsDataLoss(status)) << status;
  EXPECT_NE(status.message().find("checkpoint 0"), std::string::npos) << status;
  const auto reader = CheckpointDirectory::OpenToRead(&disk_, "store", "path");
  ASSERT_TRUE(reader.ok()) << reader.status();
  ASSERT_EQ((*reader)->LoadKept().size(), 1u);
  EXPECT_TRUE(IsDataLoss((*reader)->LoadKept()[0].manifest.status()));
}

// A checkpoint in doubt may be found, and be there no more after a crash.
TEST_F(CheckpointDirectoryTest, OnlyWhatWasMadeDurableHereCountsAsCompleted) {
  MakeStore(1);
  {
    const auto directory = Opened();
    FailOn(DiskCall::Kind::kSyncDirectory);
    EXPECT_FALSE(Keep(directory.get(), ManifestOf(2), 1).ok());
    disk_.SetFaults(nullptr);
  }
  {
    const auto directory = Opened();
    const Manifest kept[] = {*directory->Load(2), *directory->Load(1)};
    directory->RemoveOrphans(kept);
  }
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kNone, 0);
  const auto directory = CheckpointDirectory::Open(left.get(), "store", false);
  ASSERT_TRUE(directory.ok()) << directory.status();
  EXPECT_EQ((*directory)->LoadKept()[0].checkpoint, 1u);
  EXPECT_TRUE((*directory)->LoadKept()[0].manifest.ok());
}

// The names that the failed sync has dropped are those of others, too.
TEST_F(CheckpointDirectoryTest, AMarkThatIsNotDurableLeavesItsCheckpointAndIsTheLast) {
  MakeStore(1);
  const auto directory = Opened();
  int syncs = 0;
  disk_.SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kSyncDirectory && ++syncs == 2;
    return fails ? UnavailableError(call.path + ": no answer") : OkStatus();
  });
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
  disk_.SetFaults(nullptr);
  EXPECT_EQ(syncs, 2);
  EXPECT_TRUE(IsUnavailable(Keep(directory.get(), ManifestOf(3), 2)));
  const auto left = disk_.AfterCrash(disk_.changes(), Persistence::kNone, 0);
  const auto again = CheckpointDirectory::Open(left.get(), "store", false);
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ((*again)->LoadKept()[0].checkpoint, 2u);
}

TEST_F(CheckpointDirectoryTest, AMarkThatCannotBeMadeIsWorthAWordAndIsMadeLater) {
  MakeStore(1);
  const auto directory = Opened();
  const Warnings warnings;
  disk_.SetFaults([](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kRename && !call.path.ends_with(".new");
    return fails ? UnavailableError(call.path + ": stuck") : OkStatus();
  });
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
  disk_.SetFaults(nullptr);
  ASSERT_EQ(warnings.lines().size(), 1u);
  EXPECT_NE(warnings.lines()[0].find("checkpoint 2"), std::string::npos);
  EXPECT_TRUE(Has("COMPLETED-00000001"));
  EXPECT_TRUE(Keep(directory.get(), ManifestOf(3), 2).ok());
  EXPECT_TRUE(Has("COMPLETED-00000003"));
  EXPECT_FALSE(Has("COMPLETED-00000001"));
}

TEST_F(CheckpointDirectoryTest, OneMarkStaysHoweverOftenAStoreIsOpened) {
  MakeStore(1);
  for (uint32_t checkpoint = 2; checkpoint < 6; ++checkpoint) {
    const auto directory = Opened();
    const Manifest kept[] = {*directory->Load(checkpoint - 1)};
    directory->RemoveOrphans(kept);
    ASSERT_TRUE(Keep(directory.get(), ManifestOf(checkpoint), checkpoint - 1).ok());
    const std::vector<std::string> files = disk_.Files();
    EXPECT_EQ(std::count_if(files.begin(), files.end(),
                            [](const std::string& name) {
                              return name.find("COMPLETED-") != std::string::npos;
                            }),
              1);
  }
}

// The files of versions that made no marks.
TEST_F(CheckpointDirectoryTest, AStoreWithoutAMarkIsOpenedAndMarkedByItsNextCheckpoint) {
  MakeStore(2);
  ASSERT_TRUE(disk_.Remove("store/COMPLETED-00000002").ok());
  EXPECT_TRUE(Opened()->LoadKept()[0].manifest.ok());
  ASSERT_TRUE(Keep(Opened().get(), ManifestOf(3), 2).ok());
  EXPECT_TRUE(Has("COMPLETED-00000003"));
}

// ---- loading ----

TEST_F(CheckpointDirectoryTest, ADamagedManifestIsNamed) {
  MakeStore(1);
  const std::byte wrong[] = {std::byte{0xFF}, std::byte{0xFE}};
  disk_.Corrupt("store/MANIFEST-00000001", 20, wrong);
  const Status status = Opened()->Load(1).status();
  EXPECT_TRUE(IsDataLoss(status)) << status;
  EXPECT_EQ(status.message().find("store/MANIFEST-00000001: "), 0u) << status;
}

TEST_F(CheckpointDirectoryTest, AManifestUnderAnothersNameIsDataLoss) {
  MakeStore(1);
  ASSERT_TRUE(disk_.Rename("store/MANIFEST-00000001", "store/MANIFEST-00000004").ok());
  const auto directory = Opened();
  ASSERT_EQ(CheckpointsOf(*directory), Checkpoints({0, 4}));
  const Status status = directory->Load(4).status();
  EXPECT_TRUE(IsDataLoss(status)) << status;
  EXPECT_EQ(status.message().find("store/MANIFEST-00000004: "), 0u) << status;
  EXPECT_NE(status.message().find("checkpoint 1"), std::string::npos) << status;
}

TEST_F(CheckpointDirectoryTest, ADeviceThatFailsIsNotDamage) {
  MakeStore(1);
  const auto directory = Opened();
  FailOn(DiskCall::Kind::kRead);
  EXPECT_TRUE(IsUnavailable(directory->Load(1).status()));
  disk_.SetFaults(nullptr);
  FailOn(DiskCall::Kind::kList);
  EXPECT_TRUE(IsUnavailable(CheckpointDirectory::Open(&disk_, "other", true).status()));
}

// ---- leftovers of a crash ----

TEST_F(CheckpointDirectoryTest, DraftsAndOrphansAreRemovedAndKeptOnesNot) {
  {
    const auto directory = Opened();
    ASSERT_TRUE(Keep(directory.get(), ManifestOf(6), 0).ok());
    ASSERT_TRUE(Keep(directory.get(), ManifestOf(7, {1, 3}), 6).ok());
    ASSERT_TRUE(Keep(directory.get(), ManifestOf(8, {3, 0x2A}), 7).ok());
  }
  for (const char* const name : {"1", "2", "3", "a", "b"}) {
    MakeFile(std::string("store/segment-000000000000000") + name);
  }
  MakeFile("store/segment-000000000000002a");
  MakeFile("store/MANIFEST-00000009.new");
  MakeFile("store/MANIFEST-00000003");
  const auto directory = Opened();
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({3, 7, 8}));
  EXPECT_EQ(directory->listing().next_segment_ids[Tier::kSsd], 0x2Bu);
  const Manifest kept[] = {*directory->Load(8), *directory->Load(7)};
  directory->RemoveOrphans(kept);
  EXPECT_EQ(disk_.Files(),
            (std::vector<std::string>{
                "store/COMPLETED-00000008", "store/LOCK", "store/MANIFEST-00000007",
                "store/MANIFEST-00000008", "store/segment-0000000000000001",
                "store/segment-0000000000000003", "store/segment-000000000000002a"}));
  // Those that come later are none.
  MakeFile("store/segment-000000000000002b");
  directory->RemoveOrphans(kept);
  EXPECT_TRUE(Has("segment-000000000000002b"));
}

TEST(StoreListing, ASegmentOfAnotherMediumIsNotTheOneOfTheDirectory) {
  const std::vector<std::string> names = {SegmentName(kPmemSegmentIdMin)};
  const StoreListing listing = StoreListing::Of(names);
  Manifest manifest;
  SegmentRows& rows = manifest.segments.emplace_back();
  rows.header.segment_id = kPmemSegmentIdMin;
  rows.tier = Tier::kPmem;
  const Manifest* const kept[] = {&manifest};
  EXPECT_TRUE(listing.SegmentsBeside(kept, Tier::kPmem).empty());
  EXPECT_EQ(listing.SegmentsBeside(kept, Tier::kSsd), names);
}

TEST_F(CheckpointDirectoryTest, NamesThatAreNotItsOwnAreLeftAlone) {
  MakeStore(1);
  const std::vector<std::string> others = {"segment-1",
                                           "segment-00000000000000g1",
                                           "segment-+000000000000001",
                                           "segment-00000000000000011",
                                           "segment-0000000000000001.bak",
                                           "MANIFEST-1",
                                           "MANIFEST-0000000x",
                                           "MANIFEST-000000001",
                                           "manifest-00000009",
                                           "MANIFEST",
                                           "notes.new",
                                           "notes"};
  for (const std::string& name : others) MakeFile("store/" + name);
  const auto directory = Opened();
  EXPECT_EQ(CheckpointsOf(*directory), Checkpoints({0, 1}));
  EXPECT_EQ(directory->listing().next_segment_ids[Tier::kSsd], 1u);
  const Manifest kept[] = {*directory->Load(1), *directory->Load(0)};
  directory->RemoveOrphans(kept);
  ASSERT_TRUE(Keep(directory.get(), ManifestOf(2), 1).ok());
  for (const std::string& name : others) EXPECT_TRUE(Has(name)) << name;
}

TEST_F(CheckpointDirectoryTest, AnOrphanThatCannotBeRemovedIsWorthAWord) {
  MakeStore(1);
  MakeFile("store/segment-0000000000000001");
  MakeFile("store/segment-0000000000000002");
  const auto directory = Opened();
  const Warnings warnings;
  FailOn(DiskCall::Kind::kRemove);
  const Manifest kept[] = {*directory->Load(1), *directory->Load(0)};
  directory->RemoveOrphans(kept);
  EXPECT_EQ(warnings.lines().size(), 2u);
  EXPECT_TRUE(Has("segment-0000000000000001"));
}

}  // namespace
}  // namespace embank::test::checkpoint_directory_test
