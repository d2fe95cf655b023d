// PMem that is full, fails, is damaged, not mounted or elsewhere; rows that are forgotten there.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
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

class PmemFailures : public PmemTier {};

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
