// PMem that is full, fails, is damaged, not mounted or elsewhere; rows that are forgotten there.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/repair.h"
#include "store/inspect/verify.h"
#include "tests/store/pmem_rows.h"

namespace embank::test::pmem_failures_test {
namespace {

class PmemFailures : public PmemTier {
 protected:
  // The record of a row that is in PMem alone.
  Location LocationOf(Key key) {
    return table_->store().index->Find(table_->IdOf(key, table_->HashOf(key))).location();
  }
  // Damages a record in PMem.
  void Rot(Location location) {
    const std::string segment = "/pmem/" + world_->logs()->Hold(location)->name;
    const std::vector<std::byte> rot(64, std::byte{0x5A});
    world_.disk().Corrupt(segment, SegmentOffsetOf(location) + 100, rot);
  }
  Outcome OutcomeOf(Key key) {
    std::vector<uint8_t> outcome(1);
    EXPECT_TRUE(Contains(table_, {&key, 1}, outcome).ok());
    return static_cast<Outcome>(outcome[0]);
  }
};

TEST_F(PmemFailures, WherePmemHasNoSpaceRowsGoToTheSsd) {
  OpenWith(kLargePmem);
  world_.disk().SetFaults([](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kPreallocate && call.path.find("/pmem/") == 0;
    return fails ? ResourceExhaustedError("no space") : OkStatus();
  });
  Fill(4000);
  EXPECT_EQ(pmem_rows(), 0u);
  EXPECT_GT(ssd_rows(), 1500u);
  ExpectRows(4000);
  Checkpoint();
  world_.disk().SetFaults({});
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(4000);
}

// A fault of writes to files in PMem.
std::function<Status(const DiskCall&)> WritesToPmemFail() {
  return [](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kWrite && call.path.find("/pmem/") == 0;
    return fails ? UnavailableError("the device fails") : OkStatus();
  };
}

TEST_F(PmemFailures, WherePmemFailsNoRowIsLostAndTheNextCheckpointSucceeds) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  Fill(3000, 2.0f);
  world_.disk().SetFaults(WritesToPmemFail());
  Fill(3000, 1.0f, 3000);
  ASSERT_TRUE(world_->logs()->pmem()->writer().has_stopped());
  EXPECT_GT(ssd_rows(), 1000u);
  ExpectRows(3000, 2.0f);
  Checkpoint();
  Fill(100, 3.0f);
  Checkpoint();
  world_.disk().SetFaults({});
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(100, 3.0f);
  Fill(100, 2.0f);
  ExpectRows(3000, 2.0f);
}

TEST_F(PmemFailures, WhereASyncOfPmemFailsTheNextCheckpointSucceeds) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  Fill(3000, 2.0f);
  world_.disk().SetFaults([](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kSync && call.path.find("/pmem/") == 0;
    return fails ? UnavailableError("the device fails") : OkStatus();
  });
  EXPECT_FALSE(world_->checkpoints()->Make({}).ok());
  Checkpoint();
  // Without the writes that no sync has made durable.
  auto left = world_.disk().AfterCrash(world_.disk().changes(), Persistence::kNone, 1);
  world_.SetDisk(std::move(left));
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000, 2.0f);
}

TEST_F(PmemFailures, ASegmentOnDamagedMemoryIsNotUsedAndAnotherIsMade) {
  OpenWith(kLargePmem);
  int damaged = 0;
  world_.disk().SetFaults([&](const DiskCall& call) {
    const bool fails =
        call.kind == DiskCall::Kind::kPreallocate && call.path.find("/pmem/") == 0 && damaged++ < 2;
    return fails ? UnavailableError("bad blocks") : OkStatus();
  });
  Fill(4000);
  EXPECT_EQ(ssd_rows(), 0u);
  EXPECT_GT(pmem_rows(), 1500u);
  ExpectRows(4000);
}

// Files of PMem with segments.
std::set<std::string> PmemSegments(const SimulatedDisk& disk) {
  std::set<std::string> segments;
  for (const std::string& file : disk.Files()) {
    if (file.find("/pmem/segment-") == 0) segments.insert(file);
  }
  return segments;
}

TEST_F(PmemFailures, AFooterThatCannotBeWrittenLeavesItsOwnersInMemory) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  world_.Close();
  // The first write to a segment that is there is that of its footer.
  const std::set<std::string> there = PmemSegments(world_.disk());
  ASSERT_FALSE(there.empty());
  world_.disk().SetFaults([there](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kWrite && there.count(call.path) > 0;
    return fails ? UnavailableError("bad blocks") : OkStatus();
  });
  ASSERT_NO_FATAL_FAILURE(Reopen());
  Fill(1000, 2.0f, 1000);
  Checkpoint();
  Checkpoint();
  EXPECT_FALSE(world_->logs()->pmem()->writer().has_stopped());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(1000);
  world_.Close();
  world_.disk().SetFaults({});
}

TEST_F(PmemFailures, AHeaderOnDamagedMemoryIsWorthAWarning) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  world_.Close();
  std::set<std::string> unread = PmemSegments(world_.disk());
  world_.disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kRead && unread.erase(call.path) > 0;
    return fails ? DataLossError("bad blocks") : OkStatus();
  });
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_TRUE(unread.empty());
  ExpectRows(1000);
  world_.disk().SetFaults({});
}

TEST_F(PmemFailures, PmemThatIsFullIsAskedAgainAfterSoManyRows) {
  OpenWith(kLargePmem);
  Table* const small = world_.Create("small", Optimizer::kNone, 4);
  constexpr size_t kRows = 40'000;
  const std::vector<Key> keys = KeysFrom(0, kRows);
  ASSERT_TRUE(Upsert(small, keys, RowsOf(std::vector<float>(kRows * 4), 4), {}).ok());
  int asked = 0;
  world_.disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kPreallocate && call.path.find("/pmem/") == 0;
    asked += fails ? 1 : 0;
    return fails ? ResourceExhaustedError("no space") : OkStatus();
  });
  Checkpoint();
  EXPECT_GE(asked, 9) << "every 4,096 rows";
  EXPECT_LE(asked, 12);
}

TEST_F(PmemFailures, WhereTheIndexIsFullTheOldestRowsInPmemAreForgotten) {
  OpenWith(kLargePmem);
  TableOptions options = OptionsOf(1);
  options.on_full = OnFull::kForget;
  Table* const table = *world_->CreateTable("forgets", options);
  constexpr Key kRows = 1'200'000;
  constexpr Key kBatch = 2'000;
  std::vector<uint8_t> outcomes(kBatch);
  // Some are refused where a shard is full before a row of it was forgotten, as on an SSD.
  ptrdiff_t refused = 0;
  for (Key key = 0; key < kRows; key += kBatch) {
    const std::vector<float> rows(kBatch, static_cast<float>(key));
    ASSERT_TRUE(Upsert(table, KeysFrom(key, kBatch), RowsOf(rows, 1), outcomes).ok());
    refused += std::ranges::count(outcomes, static_cast<uint8_t>(Outcome::kRefused));
  }
  EXPECT_LT(refused, static_cast<ptrdiff_t>(kRows / 1000));
  ASSERT_LT(table->rows(), kRows) << "none was forgotten";
  ASSERT_EQ(table->rows_in(Tier::kSsd), 0u);
  const auto found = [&](Key first) {
    EXPECT_TRUE(Contains(table, KeysFrom(first, kBatch), outcomes).ok());
    return std::ranges::count(outcomes, static_cast<uint8_t>(Outcome::kFound));
  };
  EXPECT_EQ(found(0), 0);
  for (Key key = kRows - 200'000; key < kRows; key += kBatch) {
    EXPECT_GE(found(key), static_cast<ptrdiff_t>(kBatch * 99 / 100)) << "from key " << key;
  }
}

TEST_F(PmemFailures, AnUnmountedPmemIsNamedAndNothingIsMadeInIt) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  world_.Close();
  ASSERT_TRUE(world_.disk().CreateDirectory("/mount_point").ok());
  StoreOptions& options = world_.options();
  options.pmem_path = "/mount_point";
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("/mount_point"), std::string::npos) << status;
  EXPECT_NE(status.message().find("1000 rows"), std::string::npos) << status;
  EXPECT_TRUE(world_.disk().List("/mount_point")->empty());
  options.pmem_path = "/pmem";
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(1000);
}

// As `rm -rf` of the directory does while a store has it open.
void RemoveAll(SimulatedDisk* disk, const std::string& directory) {
  const std::vector<std::string> names = *disk->List(directory);
  for (const std::string& name : names) ASSERT_TRUE(disk->Remove(directory + "/" + name).ok());
}

TEST_F(PmemFailures, ADirectoryThatIsRemovedLeavesItsRowsToTheSsd) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  Fill(1500, 2.0f);
  ASSERT_GT(pmem_rows(), 1000u);
  ASSERT_NO_FATAL_FAILURE(RemoveAll(&world_.disk(), "/pmem"));
  ExpectRows(1500, 2.0f);
  Fill(500, 3.0f);
  for (int i = 0; i < 2; ++i) {
    Checkpoint();
    EXPECT_EQ(pmem_rows(), 0u);
    EXPECT_TRUE(world_->logs()->pmem()->writer().is_lost());
    EXPECT_EQ(world_->checkpoints()->Report().rows_lost, 0u);
    ExpectRows(500, 3.0f);
  }
  // A crash: only what the checkpoint made durable.
  world_.SetDisk(world_.disk().AfterCrash(world_.disk().changes(), Persistence::kNone, 1));
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(table_->rows(), 3000u);
  ExpectRows(500, 3.0f);
  Fill(3000, 4.0f);
  EXPECT_GT(pmem_rows(), 0u) << "it is used again";
  Checkpoint();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000, 4.0f);
}

TEST_F(PmemFailures, OneSegmentThatIsRemovedIsEnough) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  ASSERT_TRUE(world_.disk().Remove(*PmemSegments(world_.disk()).begin()).ok());
  Fill(10, 2.0f);
  Checkpoint();
  EXPECT_EQ(pmem_rows(), 0u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(table_->rows(), 3000u);
}

TEST_F(PmemFailures, RowsThatCannotBeReadInARemovedDirectoryAreCounted) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  const Key lost = KeysIn(Tier::kPmem, 3000, 1)[0];
  Rot(LocationOf(lost));
  ASSERT_NO_FATAL_FAILURE(RemoveAll(&world_.disk(), "/pmem"));
  for (int i = 0; i < 2; ++i) {
    Checkpoint();
    EXPECT_EQ(pmem_rows(), 1u);
    EXPECT_EQ(OutcomeOf(lost), Outcome::kDataLoss);
    EXPECT_EQ(world_->checkpoints()->Report().rows_lost, 1u);
  }
  for (int i = 0; i < 2; ++i) {
    ASSERT_NO_FATAL_FAILURE(Reopen());
    EXPECT_EQ(table_->rows(), 2999u);
    EXPECT_EQ(OutcomeOf(lost), Outcome::kAbsent);
    EXPECT_EQ(world_->checkpoints()->Report().rows_lost, 1u);
    Checkpoint();
  }
}

// A checkpoint compacts PMem where most of it is dead.
TEST_F(PmemFailures, CompactionGivesUpNoRowOfARemovedDirectory) {
  OpenWith(kLargePmem);
  Table* const dropped = world_.Create("dropped", Optimizer::kAdagrad);
  for (Key key = 0; key < 1000; key += 5) {
    for (Table* const table : {table_, dropped, dropped}) {
      const std::vector<Key> keys = KeysFrom(table == table_ ? key : key + dropped->rows(), 5);
      ASSERT_TRUE(Upsert(table, keys, RowsOf(RowsOfKeys(keys, 1.0f), kDim), {}).ok());
    }
  }
  Checkpoint();
  ASSERT_TRUE(world_->DropTable("dropped").ok());
  CompactionCandidates& candidates = world_->logs()->pmem()->candidates();
  ASSERT_TRUE(candidates.HasWaste());
  std::shared_ptr<LogSegment> victim = candidates.PickVictim(CompactionAim::kSize);
  ASSERT_NE(victim, nullptr);
  std::vector<Location> live(100);
  uint32_t slot = 0;
  live.resize(candidates.LiveOf(*victim, &slot, live));
  candidates.Release(std::move(victim), /*is_done=*/false);
  ASSERT_GE(live.size(), 2u);
  Rot(live[0]);
  ASSERT_NO_FATAL_FAILURE(RemoveAll(&world_.disk(), "/pmem"));
  Checkpoint();
  EXPECT_EQ(world_->checkpoints()->Report().rows_lost, 1u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(table_->rows(), 999u);
}

TEST_F(PmemFailures, WhereTheSsdHasNoSpaceForRowsOfARemovedDirectoryTheyStayReadable) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  ASSERT_NO_FATAL_FAILURE(RemoveAll(&world_.disk(), "/pmem"));
  world_.disk().SetFaults([](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kPreallocate && call.path.find("log/") == 0;
    return fails ? ResourceExhaustedError("no space") : OkStatus();
  });
  EXPECT_FALSE(world_->checkpoints()->Make({}).ok());
  ExpectRows(3000);
  world_.disk().SetFaults({});
  Checkpoint();
  EXPECT_EQ(pmem_rows(), 0u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000);
}

// The names of the marks in a directory.
std::vector<std::string> MarksIn(SimulatedDisk* disk, const std::string& directory) {
  std::vector<std::string> marks = *disk->List(directory);
  std::erase_if(marks, [](const std::string& name) { return name.find("PMEM-") != 0; });
  return marks;
}

TEST_F(PmemFailures, AMarkThatIsRemovedOnEitherSideIsMadeAgain) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  world_.Close();
  const std::vector<std::string> marks = MarksIn(&world_.disk(), "/pmem");
  ASSERT_EQ(marks.size(), 1u);
  const auto remove = [&](const std::string& directory) {
    ASSERT_TRUE(world_.disk().Remove(directory + "/" + marks[0]).ok());
  };
  // The store had another directory before.
  const std::string older = "PMEM-ffffffffffffffff";
  ASSERT_TRUE(world_.disk().Open("log/" + older, FileAccess::kCreate, FileCaching::kCached).ok());
  const auto verify = [&] {
    return *VerifyStore(&world_.disk(), "log", [](uint64_t, uint64_t) { return true; });
  };
  for (const std::vector<std::string>& sides :
       {std::vector<std::string>{"log"}, {"/pmem"}, {"log", "/pmem"}}) {
    for (const std::string& side : sides) ASSERT_NO_FATAL_FAILURE(remove(side));
    const VerifyReport report = verify();
    EXPECT_TRUE(report.clean()) << FormatVerifyReport(report);
    EXPECT_TRUE(report.checkpoints[0].opens);
    ASSERT_NO_FATAL_FAILURE(Reopen());
    ExpectRows(3000);
    world_.Close();
    EXPECT_EQ(MarksIn(&world_.disk(), "log"), (std::vector<std::string>{marks[0], older}));
    EXPECT_EQ(MarksIn(&world_.disk(), "/pmem"), marks);
  }
  // Without a mark and a segment nothing proves it.
  ASSERT_NO_FATAL_FAILURE(remove("/pmem"));
  ASSERT_TRUE(world_.disk().Remove(*PmemSegments(world_.disk()).begin()).ok());
  const Status refused = world_.OpenBeside().status();
  EXPECT_EQ(refused.code(), StatusCode::kFailedPrecondition) << refused;
  EXPECT_NE(refused.message().find("make a file of this name"), std::string::npos) << refused;
  EXPECT_NE(refused.message().find(marks[0]), std::string::npos) << refused;
  EXPECT_FALSE(verify().checkpoints[0].opens);
}

// Such an error does not prove that the directory is another store's.
TEST_F(PmemFailures, WhereHeadersCannotBeReadNowTheStatusIsThatOfTheFiles) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  world_.Close();
  const std::string mark = MarksIn(&world_.disk(), "/pmem")[0];
  ASSERT_TRUE(world_.disk().Remove("/pmem/" + mark).ok());
  for (const Status& error :
       {ResourceExhaustedError("now"), PermissionDeniedError("now"), UnavailableError("now")}) {
    world_.disk().SetFaults([&](const DiskCall& call) {
      const bool fails =
          call.kind == DiskCall::Kind::kOpen && call.path.find("/pmem/segment-") == 0;
      return fails ? error : OkStatus();
    });
    const Status refused = world_.OpenBeside().status();
    EXPECT_EQ(refused.code(), error.code()) << refused;
    EXPECT_NE(refused.message().find(mark + ": if it is the store's, make a file"),
              std::string::npos)
        << refused;
  }
  world_.disk().SetFaults({});
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000);
}

// The previous checkpoint has other segments.
TEST_F(PmemFailures, AHeaderThatCannotBeReadHidesNoProofOfAnotherCheckpoint) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  const std::set<std::string> before = PmemSegments(world_.disk());
  Fill(3000, 2.0f);
  Checkpoint();
  world_.Close();
  std::string segment;
  for (const std::string& name : PmemSegments(world_.disk())) {
    if (before.count(name) == 0) segment = name;
  }
  ASSERT_FALSE(segment.empty());
  ASSERT_TRUE(world_.disk().Remove("/pmem/" + MarksIn(&world_.disk(), "/pmem")[0]).ok());
  uint64_t failed = 0;
  world_.disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kOpen && call.path == segment && failed == 0;
    failed += fails ? 1 : 0;
    return fails ? UnavailableError("once") : OkStatus();
  });
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(failed, 1u);
  ExpectRows(3000, 2.0f);
}

TEST_F(PmemFailures, AnotherPmemWithoutRowsOfTheStoreIsRefusedByVerifyAndByTheOpening) {
  OpenWith(kLargePmem);
  Fill(100);
  Fill(100, 2.0f);
  const std::vector<std::string> marks = MarksIn(&world_.disk(), "/pmem");
  ASSERT_EQ(pmem_rows(), 0u);
  std::vector<Key> keys = KeysFrom(0, 100);
  ASSERT_TRUE(Erase(table_, keys, {}).ok());
  Checkpoint();
  world_.Close();
  const auto mark = [&](const std::string& name) {
    ASSERT_TRUE(
        world_.disk().Open("/pmem/" + name, FileAccess::kCreate, FileCaching::kCached).ok());
  };
  // The manifest knows the id.
  ASSERT_TRUE(world_.disk().Remove("log/" + marks[0]).ok());
  ASSERT_NO_FATAL_FAILURE(Reopen());
  world_.Close();
  ASSERT_TRUE(world_.disk().Remove("/pmem/" + marks[0]).ok());
  ASSERT_NO_FATAL_FAILURE(mark("PMEM-00000000000000ab"));
  const Status refused = world_.OpenBeside().status();
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument) << refused;
  const auto report = VerifyStore(&world_.disk(), "log", [](uint64_t, uint64_t) { return true; });
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->damage_count, 2u) << FormatVerifyReport(*report);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(report->damage[static_cast<size_t>(i)].file, "/pmem");
    EXPECT_FALSE(report->checkpoints[static_cast<size_t>(i)].opens);
  }
}

// Tools that clean up remove empty files.
TEST_F(PmemFailures, NoFileOfAStoreIsEmpty) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  world_.Close();
  for (const std::string& file : world_.disk().Files()) {
    EXPECT_FALSE(world_.disk().Contents(file).empty()) << file;
  }
}

TEST_F(PmemFailures, ARefusedOpenOfANewStoreLeavesNothing) {
  OpenWith(kLargePmem);
  world_.Close();
  const std::vector<std::string> before = world_.disk().Files();
  StoreOptions& options = world_.options();
  options.path = "new";
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_EQ(world_.disk().Files(), before);
  EXPECT_TRUE(IsNotFound(world_.disk().OpenDirectory("new").status()));
}

TEST_F(PmemFailures, AMarkThatNoSyncMadeDurableDoesNotStay) {
  world_.Close();
  const std::vector<std::string> before = world_.disk().Files();
  StoreOptions& options = world_.options();
  options.path = "new";
  options.pmem_path = "/pmem_new";
  options.pmem_bytes = kLargePmem;
  for (const std::string directory : {"new", "/pmem_new"}) {
    bool is_made = false;
    world_.disk().SetFaults([&](const DiskCall& call) {
      is_made = is_made || call.path.find(directory + "/PMEM-") == 0;
      const bool fails = is_made && call.kind == DiskCall::Kind::kSyncDirectory;
      return fails ? NotFoundError("it is gone") : OkStatus();
    });
    const Status status = world_.OpenBeside().status();
    world_.disk().SetFaults({});
    const bool is_pmems = directory == "/pmem_new";
    EXPECT_EQ(status.code(), is_pmems ? StatusCode::kInvalidArgument : StatusCode::kNotFound);
    EXPECT_EQ(status.message().find("pmem_path: ") == 0, is_pmems) << status;
    EXPECT_EQ(world_.disk().Files(), before);
    EXPECT_TRUE(IsNotFound(world_.disk().OpenDirectory("new").status()));
    EXPECT_TRUE(IsNotFound(world_.disk().OpenDirectory("/pmem_new").status()));
  }
}

TEST_F(PmemFailures, PmemNeedsADirectoryOfItsOwn) {
  world_.Close();
  StoreOptions& options = world_.options();
  for (const char* const path : {"new", "new/", "./new"}) {
    options.path = "new";
    options.pmem_path = path;
    options.pmem_bytes = kLargePmem;
    const Status status = world_.OpenBeside().status();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
    EXPECT_EQ(status.message().find("pmem_path: "), 0u) << status;
    EXPECT_EQ(world_.disk().OpenDirectory("new").status().code(), StatusCode::kNotFound);
  }
}

TEST_F(PmemFailures, VerifyAndRepairReadAPmemThatWasMoved) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  Fill(1000, 2.0f);
  Checkpoint();
  world_.Close();
  CopyDirectory("/pmem", "/moved");
  const std::vector<std::string> names = *world_.disk().List("/pmem");
  for (const std::string& name : names) {
    ASSERT_TRUE(world_.disk().Remove("/pmem/" + name).ok());
  }
  const auto verify = [&](const std::string& pmem_path) {
    return *VerifyStore(
        &world_.disk(), "log", [](uint64_t, uint64_t) { return true; }, pmem_path);
  };
  EXPECT_GT(verify("").damage_count, 0u);
  EXPECT_EQ(verify("/moved").damage_count, 0u);
  const auto repaired =
      RepairStore(&world_.disk(), {.directory = "log", .target = "saved", .pmem_path = "/moved"},
                  [](uint64_t, uint64_t) { return true; });
  ASSERT_TRUE(repaired.ok()) << repaired.status();
  EXPECT_EQ(repaired->rows_saved, 1000u);
  // The next checkpoint names the new place, the one before it the old one.
  world_.options().pmem_path = "/moved";
  ASSERT_NO_FATAL_FAILURE(Reopen());
  Fill(1000, 3.0f);
  Checkpoint();
  world_.Close();
  EXPECT_EQ(verify("").damage_count, 0u);
}

TEST_F(PmemFailures, VerifyListsOrphansInPmem) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  world_.Close();
  const std::string orphan = "/pmem/" + SegmentName(kPmemSegmentIdMin + 1000);
  ASSERT_TRUE(world_.disk().Open(orphan, FileAccess::kCreate, FileCaching::kCached).ok());
  const auto report = VerifyStore(&world_.disk(), "log", [](uint64_t, uint64_t) { return true; });
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->orphans.names, std::vector<std::string>{orphan});
}

}  // namespace
}  // namespace embank::test::pmem_failures_test
