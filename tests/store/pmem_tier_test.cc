// Rows in PMem: how they come there and leave it, and what a store says whose PMem is missing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/write.h"
#include "store/inspect/repair.h"
#include "store/inspect/survey.h"
#include "store/inspect/verify.h"
#include "store/payload/topk_flush.h"
#include "store/scan/scan.h"
#include "tests/store/pmem_rows.h"

namespace embank::test::pmem_tier_test {
namespace {

TEST_F(PmemTier, RowsThatLeaveDramGoToPmemWhileItHasSpace) {
  OpenWith(kLargePmem);
  Fill(4000);
  EXPECT_GT(pmem_rows(), 1500u);
  EXPECT_EQ(ssd_rows(), 0u);
  EXPECT_EQ(world_->logs()->lowest().counters().appended_rows, 0u);
  ExpectRows(4000);
}

TEST_F(PmemTier, FullPmemDemotesItsOldestRowsToTheSsd) {
  OpenWith(kPmemBytes);
  Fill(6000);
  EXPECT_GT(pmem_rows(), 100u);
  EXPECT_GT(ssd_rows(), 2000u);
  EXPECT_GT(world_->demoted_rows(), 100u);
  ExpectRows(6000);
}

// Three rows of one tier, five of the next, and so on; by both ways of a lookup through the index.
TEST_F(PmemTier, HitsAreCountedInTheTierOfEachRow) {
  world_.AddHbmOptions(uint64_t{1} << 20);
  OpenWith(kPmemBytes);
  Fill(6000);
  for (int i = 0; i < 10; ++i) Lookups(KeysFrom(5900, 50));
  ASSERT_TRUE(world_->topk_flush()->FlushNow().ok());
  const std::map<Tier, size_t> rows = {
      {Tier::kHbm, 3}, {Tier::kDram, 5}, {Tier::kPmem, 7}, {Tier::kSsd, 11}};
  for (const MissingRule missing : {MissingRule::kSkip, MissingRule::kCreate}) {
    std::vector<Key> keys;
    for (const auto& [tier, count] : rows) {
      const std::vector<Key> some = KeysIn(tier, 6000, count);
      ASSERT_EQ(some.size(), count) << "in tier " << static_cast<int>(tier);
      keys.insert(keys.end(), some.begin(), some.end());
    }
    const CallCounters& calls = table_->counters().calls;
    const auto before = calls.Counts(TableVerb::kLookup).found_in;
    std::vector<float> values(keys.size() * kDim);
    ASSERT_TRUE(Lookup(table_, keys, missing, RowsIn(&values, kDim), {}).ok());
    const auto after = calls.Counts(TableVerb::kLookup).found_in;
    for (const auto& [tier, count] : rows) {
      const auto at = static_cast<size_t>(tier);
      EXPECT_EQ(after[at] - before[at], count) << "in tier " << at;
    }
  }
}

TEST_F(PmemTier, PrefetchedRowsAreCountedByTheTierThatTheyLeft) {
  OpenWith(kPmemBytes);
  Fill(6000);
  std::vector<Key> keys = KeysIn(Tier::kPmem, 6000, 7);
  const std::vector<Key> of_ssd = KeysIn(Tier::kSsd, 6000, 11);
  keys.insert(keys.end(), of_ssd.begin(), of_ssd.end());
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  const auto& from = table_->counters().prefetched_from;
  EXPECT_EQ(from[static_cast<size_t>(Tier::kPmem)], 7u);
  EXPECT_EQ(from[static_cast<size_t>(Tier::kSsd)], 11u);
  EXPECT_EQ(table_->counters().prefetched_rows, 18u);
}

// Each segment has one or two rows that nobody writes again, and so never dies by itself.
TEST_F(PmemTier, AFullPmemIsUsedAgainWhereFewRowsLiveInItsSegments) {
  constexpr uint64_t kBytes = 2 * kPmemBytes;
  OpenWith(kBytes);
  constexpr int kRounds = 10;
  constexpr Key kColdKeys = 25;  // of each round: too few rows in all to be demoted
  constexpr Key kOverwrittenKeys = 500;
  for (int round = 1; round <= kRounds; ++round) {
    const Key cold = 10000 * static_cast<Key>(round);
    for (Key part = 0; part < kColdKeys; ++part) {
      std::vector<Key> keys = KeysFrom(part * 20, 20);
      keys.push_back(cold + part);
      const std::vector<float> rows = RowsOfKeys(keys, static_cast<float>(round));
      ASSERT_TRUE(Upsert(table_, keys, RowsOf(rows, kDim), {}).ok());
    }
    Checkpoint();
  }
  const RowLogCounters& counters = world_->logs()->pmem()->counters();
  const uint64_t fill_rows = kBytes / (kDim * 2 * sizeof(float));
  EXPECT_GT(counters.compacted_rows, 0u);
  EXPECT_GT(counters.appended_rows - counters.compacted_rows, 2 * fill_rows);
  EXPECT_EQ(world_->demoted_rows(), 0u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(kOverwrittenKeys, kRounds);
  for (int round = 1; round <= kRounds; ++round) {
    const std::vector<Key> keys = KeysFrom(10000 * static_cast<Key>(round), kColdKeys);
    std::vector<float> rows(keys.size() * kDim);
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {}).ok());
    EXPECT_EQ(rows, RowsOfKeys(keys, static_cast<float>(round))) << "of round " << round;
  }
}

TEST_F(PmemTier, ARowThatIsLookedUpStaysWhereOthersAreDemoted) {
  OpenWith(2 * kPmemBytes);
  Fill(2800);
  const std::vector<Key> warm = KeysIn(Tier::kPmem, 2800, 40);
  ASSERT_EQ(warm.size(), 40u);
  uint64_t kept = 0;
  for (Key key = 2800; key < 6000; key += 100) {
    Lookups(warm);
    Fill(100, 1.0f, key);
  }
  for (const Key key : warm) kept += TierOf(key) != Tier::kSsd ? 1 : 0;
  ASSERT_GT(world_->demoted_rows(), 500u);
  EXPECT_GE(kept, 38u) << "each was looked up between any two demotions of it";
  ExpectRows(6000);
}

TEST_F(PmemTier, LookupsPromoteOnlyRowsThatAreHotterThanTheVictim) {
  OpenWith(kLargePmem);
  Fill(4000);
  const std::vector<Key> in_dram = KeysIn(Tier::kDram, 4000, 4000);
  for (int i = 0; i < 4; ++i) Lookups(in_dram);
  const std::vector<Key> cold = KeysIn(Tier::kPmem, 4000, 50);
  const uint64_t before = pmem_rows();
  Lookups(cold);
  EXPECT_EQ(pmem_rows(), before) << "all of DRAM is hotter";
  for (int i = 0; i < 8; ++i) Lookups(cold);
  const auto promoted =
      std::ranges::count_if(cold, [&](Key key) { return TierOf(key) == Tier::kDram; });
  EXPECT_GT(promoted, 40) << "they are hotter now";
  ExpectRows(4000);
}

TEST_F(PmemTier, ARowOfPmemThatChangesIsNotAnsweredAsItWas) {
  OpenWith(kLargePmem);
  Fill(4000);
  // Clean rows in DRAM, whose records are in PMem, and rows of PMem alone.
  const std::vector<Key> keys = KeysIn(Tier::kPmem, 4000, 300);
  for (int i = 0; i < 8; ++i) Lookups(keys);
  const std::vector<float> twice = RowsOfKeys(keys, 2.0f);
  ASSERT_TRUE(Upsert(table_, keys, RowsOf(twice, kDim), {}).ok());
  // They leave DRAM, and come back.
  Fill(3000, 1.0f, 10000);
  std::vector<float> rows(keys.size() * kDim);
  ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {}).ok());
  EXPECT_EQ(rows, twice);
}

TEST_F(PmemTier, ACheckpointWritesNoRowToTheSsdWhilePmemHasSpace) {
  OpenWith(kLargePmem);
  Fill(1500);
  Checkpoint();
  EXPECT_EQ(world_->logs()->lowest().counters().appended_rows, 0u);
  EXPECT_GE(world_->logs()->pmem()->counters().appended_rows, 1500u);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(pmem_rows(), 1500u);
  ExpectRows(1500);
}

TEST_F(PmemTier, AStoreIsReopenedWithItsRowsInAllTiers) {
  OpenWith(kPmemBytes);
  Fill(5000);
  Checkpoint();
  Fill(1000, 3.0f);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_GT(pmem_rows(), 100u);
  EXPECT_GT(ssd_rows(), 2000u);
  ExpectRows(5000);
}

TEST_F(PmemTier, RowsOfAKeptCheckpointStayInPmem) {
  OpenWith(2 * kPmemBytes);
  Fill(2400);
  Checkpoint();
  // All rows are written anew, many times over; none of it is in the checkpoint.
  for (int round = 2; round < 6; ++round) Fill(2400, static_cast<float>(round));
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(2400);
}

TEST_F(PmemTier, EveryRowIsScannedOnce) {
  OpenWith(kPmemBytes);
  Fill(4000);
  ASSERT_GT(pmem_rows(), 100u);
  ASSERT_GT(ssd_rows(), 100u);
  Scan scan(table_);
  std::vector<Key> keys(300);
  std::vector<float> rows(keys.size() * kDim);
  std::vector<Key> seen;
  for (;;) {
    const StatusOr<uint64_t> count = scan.Next(keys, RowsIn(&rows, kDim));
    ASSERT_TRUE(count.ok()) << count.status();
    if (*count == 0) break;
    for (uint64_t i = 0; i < *count; ++i) {
      ASSERT_EQ(rows[i * kDim], static_cast<float>(keys[i]));
      seen.push_back(keys[i]);
    }
  }
  std::ranges::sort(seen);
  EXPECT_EQ(seen, KeysFrom(0, 4000));
}

TEST_F(PmemTier, ATableIsDroppedFromAllTiers) {
  OpenWith(kPmemBytes);
  Fill(4000);
  ASSERT_TRUE(world_->DropTable("t").ok());
  EXPECT_EQ(world_->logs()->pmem()->segments().live_rows(), 0u);
  EXPECT_EQ(world_->logs()->lowest().segments().live_rows(), 0u);
}

TEST_F(PmemTier, AnExportNeedsNoPmem) {
  OpenWith(kPmemBytes);
  Fill(4000);
  Checkpoint();
  ASSERT_TRUE(world_->checkpoints()->Export("copy", [](uint64_t, uint64_t) { return true; }).ok());
  world_.Close();
  StoreOptions& options = world_.options();
  options.path = "copy";
  options.pmem_path.clear();
  options.pmem_bytes = 0;
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(pmem_rows(), 0u);
  ExpectRows(4000);
  // Its segments have numbers of PMem; those that it writes there later are others.
  Fill(1000, 2.0f);
  Checkpoint();
  options.pmem_path = "/other";
  options.pmem_bytes = kLargePmem;
  ASSERT_NO_FATAL_FAILURE(Reopen());
  Fill(1000, 3.0f);
  Checkpoint();
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(1000, 3.0f);
}

TEST_F(PmemTier, WithoutItsPmemTheStoreDoesNotOpenAndSaysWhereItIs) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  const std::string rows = std::to_string(table_->rows());
  world_.Close();
  StoreOptions& options = world_.options();
  const StoreOptions right = options;
  const auto opened = [&] { return world_.OpenBeside().status(); };
  options.pmem_path.clear();
  options.pmem_bytes = 0;
  Status status = opened();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  EXPECT_NE(status.message().find("/pmem"), std::string::npos) << status;
  EXPECT_NE(status.message().find(rows + " rows"), std::string::npos) << status;
  options = right;
  options.pmem_path = "/not_there";
  status = opened();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition) << status;
  options = right;
  options.pmem_path = "log";
  EXPECT_FALSE(opened().ok());
  options = right;
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000);
}

TEST_F(PmemTier, ReadersSeeTheRowsOfPmemAndChangeNothing) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  world_.Close();
  StoreOptions& options = world_.options();
  options.read_only = true;
  options.may_create = false;
  world_.disk().SetReadOnly(true);
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(pmem_rows(), 3000u);
  ExpectRows(3000);
  world_.Close();
  world_.disk().SetReadOnly(false);
}

TEST_F(PmemTier, ThePmemOfAnotherStoreIsRefused) {
  OpenWith(kLargePmem);
  world_.Close();
  StoreOptions& options = world_.options();
  options.path = "another";
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("pmem_path: /pmem is the PMem of another store than another"),
            std::string::npos)
      << status;
}

TEST_F(PmemTier, AnExportDoesNotOpenWithThePmemOfItsSource) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  ASSERT_TRUE(world_->checkpoints()->Export("copy", [](uint64_t, uint64_t) { return true; }).ok());
  // Segments that the export does not have.
  Fill(3000, 2.0f);
  Checkpoint();
  Fill(3000, 3.0f);
  Checkpoint();
  world_.Close();
  world_.options().path = "copy";
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("/pmem is the PMem of another store than copy"),
            std::string::npos)
      << status;
  world_.options().path = "log";
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(3000, 3.0f);
}

TEST_F(PmemTier, ACopyOfTheStoreFromBeforeACheckpointDoesNotOpenWithItsPmem) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  Fill(1000, 2.0f);
  Checkpoint();
  world_.Close();
  CopyDirectory("log", "copy");
  ASSERT_NO_FATAL_FAILURE(Reopen());
  Fill(1000, 3.0f);
  Checkpoint();
  world_.Close();
  world_.options().path = "copy";
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status;
  EXPECT_NE(status.message().find("older copy"), std::string::npos) << status;
  world_.options().path = "log";
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(1000, 3.0f);
}

TEST_F(PmemTier, ACopyOfTheStoreAndOfItsPmemOpens) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  world_.Close();
  CopyDirectory("log", "copy");
  CopyDirectory("/pmem", "/pmem_copy");
  world_.options().path = "copy";
  world_.options().pmem_path = "/pmem_copy";
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ExpectRows(1000);
}

TEST_F(PmemTier, SegmentsThatADamagedManifestMayHaveStayAndTakeSpace) {
  OpenWith(kLargePmem);
  Fill(1000);
  Checkpoint();
  Fill(1000, 2.0f);
  Checkpoint();
  const uint64_t before = PmemTakenBytes();
  world_.Close();
  const std::vector<std::string> files = world_.disk().Files();
  const auto older = std::ranges::find_if(
      files, [](const std::string& file) { return file.find("log/MANIFEST-") == 0; });
  const std::byte wrong = world_.disk().Contents(*older)[30] ^ std::byte{1};
  world_.disk().Corrupt(*older, 30, std::span(&wrong, 1));
  ASSERT_NO_FATAL_FAILURE(Reopen());
  EXPECT_EQ(PmemTakenBytes(), before);
}

TEST_F(PmemTier, OneStoreHasItsPmemAtATime) {
  OpenWith(kLargePmem);
  Checkpoint();
  CopyDirectory("log", "copy");
  world_.options().path = "copy";
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kUnavailable) << status;
  EXPECT_EQ(status.message().find("pmem_path: /pmem is open already"), 0u) << status;
}

TEST_F(PmemTier, AMissingSegmentIsNamed) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  world_.Close();
  const std::vector<std::string> files = world_.disk().Files();
  const auto segment = std::ranges::find_if(
      files, [](const std::string& file) { return file.find("/pmem/segment-") == 0; });
  ASSERT_NE(segment, files.end());
  auto directory = world_.disk().OpenDirectory("/pmem");
  ASSERT_TRUE(directory.ok());
  const std::string name = segment->substr(std::string("/pmem/").size());
  ASSERT_TRUE((*directory)->Remove(name).ok());
  const Status status = world_.OpenBeside().status();
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.message().find(name), std::string::npos) << status;
}

TEST_F(PmemTier, VerifyAndSurveyReadPmemToo) {
  OpenWith(kLargePmem);
  Fill(3000);
  Checkpoint();
  world_.Close();
  const auto survey = SurveyStore(&world_.disk(), "log");
  ASSERT_TRUE(survey.ok()) << survey.status();
  EXPECT_EQ(survey->tables[0].rows, 3000u);
  EXPECT_EQ(survey->unknown_rows, 0u);
  const auto verify = [&] {
    return *VerifyStore(&world_.disk(), "log", [](uint64_t, uint64_t) { return true; });
  };
  EXPECT_EQ(verify().damage_count, 0u);
  const std::vector<std::string> files = world_.disk().Files();
  const std::string& segment = *std::ranges::find_if(
      files, [](const std::string& file) { return file.find("/pmem/segment-") == 0; });
  const std::byte wrong = world_.disk().Contents(segment)[kBlockBytes + 100] ^ std::byte{1};
  world_.disk().Corrupt(segment, kBlockBytes + 100, std::span(&wrong, 1));
  EXPECT_EQ(verify().damage_count, 1u);
}

}  // namespace
}  // namespace embank::test::pmem_tier_test
