// Heat over checkpoints, crashes and exports; without it a store is whole all the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/crc32c.h"
#include "store/batch/write.h"
#include "store/checkpoint/heat_file.h"
#include "store/inspect/verify.h"
#include "store/placement/memory_plan.h"
#include "tests/store/counted_heat.h"
#include "tests/support/files_by_path.h"
#include "tests/support/store_files.h"
#include "tests/support/warnings.h"

namespace embank::test::kept_heat_test {
namespace {

std::string HeatPath(int checkpoint) { return "log/HEAT-0000000" + std::to_string(checkpoint); }

bool Has(const SimulatedDisk& disk, const std::string& path) {
  const std::vector<std::string> files = disk.Files();
  return std::count(files.begin(), files.end(), path) > 0;
}

class KeptHeat : public testing::Test {
 protected:
  // Checkpoint 1 has no heat; 2 and 3 have.
  KeptHeat() : world_(11), counted_(MakeCold(&world_), kKeys) {
    EXPECT_FALSE(Has(disk(), HeatPath(1))) << "no row was looked up";
    for (Heats* const kept : {&second_, &third_}) {
      for (int batch = 0; batch < 30; ++batch) counted_.LookUp(DrawKeys(&random_));
      *kept = counted_.exact();
      EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
    }
    for (int batch = 0; batch < 10; ++batch) counted_.LookUp(DrawKeys(&random_));
  }

  SimulatedDisk& disk() { return world_.disk(); }
  Heats Told() { return HeatsOf(*world_->catalog().Open("t"), kKeys); }
  // Checks that rows are whole, and have the heat of their records.
  void ExpectRowsWithoutHeat() {
    EXPECT_EQ(Told(), Heats(kKeys));
    Rows expected;
    for (Key key = 0; key < kKeys; ++key) expected[key] = static_cast<float>(key);
    ExpectIs(world_.get(), {{"t", expected}});
  }
  // Opens it damaged, with one warning.
  void OpenWarned(const std::string& what) {
    const Warnings warnings;
    const Status opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    ASSERT_EQ(warnings.lines().size(), 1u);
    EXPECT_NE(warnings.lines()[0].find(HeatPath(3)), std::string::npos) << warnings.lines()[0];
    EXPECT_NE(warnings.lines()[0].find(what), std::string::npos) << warnings.lines()[0];
  }
  StatusOr<VerifyReport> Verify() {
    return VerifyStore(&disk(), "log", [](uint64_t, uint64_t) { return true; });
  }

  SpillWorld world_;
  Random random_{11};
  Counted counted_;
  Heats second_;
  Heats third_;
};

TEST_F(KeptHeat, IsThatOfTheCheckpoint) {
  ASSERT_NE(second_, third_);
  const auto crashed = [&] { return disk().AfterCrash(disk().changes(), Persistence::kNone, 0); };
  auto left = crashed();
  world_.SetDisk(std::move(left));
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
  EXPECT_LT(disk().Contents(HeatPath(3)).size(), HeatSketchBytes(kDramBytes, 0))
      << "blocks without entries are left out";
  // It goes on from there, and is kept again.
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
}

TEST_F(KeptHeat, HeatOfThePreviousCheckpointIsKeptToo) {
  EXPECT_TRUE(Has(disk(), HeatPath(2)) && Has(disk(), HeatPath(3)));
  ASSERT_TRUE(world_.Open(/*previous=*/true).ok());
  EXPECT_EQ(Told(), second_);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  EXPECT_FALSE(Has(disk(), HeatPath(3))) << "its manifest is gone";
  EXPECT_TRUE(Has(disk(), HeatPath(2)) && Has(disk(), HeatPath(4)));
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  EXPECT_FALSE(Has(disk(), HeatPath(2)));
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), second_);
}

// Epochs begin anew, ageing goes on.
TEST_F(KeptHeat, IsAsOldAsItWas) {
  counted_.Pass(kMillion);
  counted_.Pass(kMillion);
  const Heats aged = counted_.exact();
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), aged);
  Table* const table = *world_->catalog().Open("t");
  table->store().heat_clock->Count(kMillion);
  const Heats told = Told();
  for (Key key = 0; key < kKeys; ++key) ASSERT_EQ(told[key], aged[key] / 2);
}

TEST_F(KeptHeat, ComesToASketchOfAnotherSize) {
  for (const uint64_t dram_bytes : {kDramBytes + (uint64_t{5} << 20), uint64_t{0}, kDramBytes}) {
    world_.options().dram_bytes = dram_bytes;
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_EQ(Told(), third_);
    ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  }
}

TEST_F(KeptHeat, DamagedIsLostAlone) {
  const std::vector<std::byte> bytes = disk().Contents(HeatPath(3));
  for (const uint64_t offset : {uint64_t{0}, bytes.size() / 2, bytes.size() - 1}) {
    FlipBits(&disk(), HeatPath(3), offset, 16);
    ASSERT_NO_FATAL_FAILURE(OpenWarned("damaged"));
    ASSERT_NO_FATAL_FAILURE(ExpectRowsWithoutHeat());
    FlipBits(&disk(), HeatPath(3), offset, 16);
  }
  world_.Close();
  FlipBits(&disk(), HeatPath(3), 77, 1);
  const auto report = Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->damage.size(), 1u);
  EXPECT_EQ(report->damage[0].file, "HEAT-00000003");
  EXPECT_EQ(PartName(report->damage[0].part), std::string("heat"));
  EXPECT_TRUE(report->damage[0].lost.empty());
  for (const VerifiedCheckpoint& checkpoint : report->checkpoints) {
    EXPECT_TRUE(checkpoint.opens && checkpoint.rows_lost == 0);
  }
}

TEST_F(KeptHeat, CutOffOrMissingIsLostAlone) {
  disk().Truncate(HeatPath(3), disk().Contents(HeatPath(3)).size() - 4096);
  ASSERT_NO_FATAL_FAILURE(OpenWarned("bytes, not"));
  ASSERT_NO_FATAL_FAILURE(ExpectRowsWithoutHeat());
  ASSERT_TRUE(disk().Remove(HeatPath(3)).ok());
  ASSERT_NO_FATAL_FAILURE(OpenWarned("NOT_FOUND"));
  ASSERT_NO_FATAL_FAILURE(ExpectRowsWithoutHeat());
  world_.Close();
  const auto report = Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->damage.size(), 1u);
  EXPECT_EQ(report->damage[0].file, "HEAT-00000003");
}

TEST_F(KeptHeat, HeatOfNoCheckpointIsAnOrphan) {
  const std::vector<std::byte> other = disk().Contents(HeatPath(2));
  world_.Close();
  for (const int of : {1, 9}) {
    const auto file = disk().Open(HeatPath(of), FileAccess::kCreate, FileCaching::kCached);
    ASSERT_TRUE((*file)->Write(0, other).ok());
  }
  const auto report = Verify();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_TRUE(report->clean());
  EXPECT_EQ(report->orphans.names, (std::vector<std::string>{"HEAT-00000001", "HEAT-00000009"}));
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_FALSE(Has(disk(), HeatPath(1)) || Has(disk(), HeatPath(9)));
  EXPECT_EQ(Told(), third_);
}

TEST_F(KeptHeat, IsExported) {
  for (const bool links : {true, false}) {
    if (!links) disk().SetFaults(NoLinks);
    const std::string path = links ? "linked" : "copied";
    // Checkpoints of the source come and go meanwhile.
    bool first = true;
    const Status exported = world_->checkpoints()->Export(path, [&](uint64_t, uint64_t) {
      for (int i = 0; first && i < 2; ++i) EXPECT_TRUE(world_->checkpoints()->Make({}).ok());
      first = false;
      return true;
    });
    ASSERT_TRUE(exported.ok()) << exported;
    const auto copy = OpenAt(&world_, path);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(HeatsOf(*(*copy)->catalog().Open("t"), kKeys), links ? third_ : counted_.exact());
  }
  // Heat files that were kept for exports are not kept any more.
  disk().SetFaults(nullptr);
  ASSERT_TRUE(world_->checkpoints()->Make({}).ok());
  EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 2u);
}

TEST_F(KeptHeat, IsToldAndLeftByThoseWhoOnlyRead) {
  world_.Close();
  // A file of no checkpoint, which is not theirs to remove.
  const auto other = disk().Open(HeatPath(9), FileAccess::kCreate, FileCaching::kCached);
  ASSERT_TRUE((*other)->Write(0, disk().Contents(HeatPath(2))).ok());
  world_.options().read_only = true;
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
  Counted counted(*world_->catalog().Open("t"), kKeys);
  for (int batch = 0; batch < 30; ++batch) counted.LookUp(DrawKeys(&random_));
  Heats sum = counted.exact();
  for (Key key = 0; key < kKeys; ++key) sum[key] += third_[key];
  EXPECT_EQ(Told(), sum);
  const Status exported = world_->checkpoints()->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 3u);
  world_.Close();
  world_.options().read_only = false;
}

TEST_F(KeptHeat, MissingIsNoMatterOfAnExport) {
  ASSERT_TRUE(disk().Remove(HeatPath(3)).ok());
  const Warnings warnings;
  const Status exported = world_->checkpoints()->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  EXPECT_EQ(warnings.lines().size(), 1u);
  const auto copy = OpenAt(&world_, "copy");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(warnings.lines().size(), 1u) << "the copy's manifest names none";
  EXPECT_EQ(HeatsOf(*(*copy)->catalog().Open("t"), kKeys), Heats(kKeys));
}

TEST_F(KeptHeat, AFileOfASizeThatNoneHasIsDamaged) {
  FailingMemory memory;
  MemoryBudget budget(0);
  const auto sketch = HeatSketch::Create(&memory, &budget, HeatSketch::kGrainBytes);
  ASSERT_TRUE(sketch.ok());
  const uint64_t bytes = disk().Contents(HeatPath(3)).size();
  const uint64_t grain = HeatSketch::kGrainBytes;
  const auto log = OpenedDirectory(&disk(), "log");
  const std::string name = HeatName(3);
  for (const HeatFile& file : {HeatFile{.bytes = bytes, .sketch_bytes = 0},
                               {.bytes = bytes, .sketch_bytes = grain + 64},
                               {.bytes = 3 * grain, .sketch_bytes = grain},
                               {.bytes = grain + 64, .sketch_bytes = grain},
                               {.bytes = bytes + grain, .sketch_bytes = bytes}}) {
    EXPECT_TRUE(IsDataLoss(LoadHeat(log.get(), name, file, sketch->get())));
  }
}

// Five rows in place of a block, as files once had for rows in memory: the upper half of a hash,
// the fingerprint, and the heat of each.
TEST_F(KeptHeat, RowsInPlaceOfABlockAreRead) {
  const KeyHash hash = HashKey(TableHash("t"), 77);
  const std::array<uint32_t, 7> piece = {0xFFFFFFFF, static_cast<uint32_t>(hash >> 32),
                                         HeatBlock::FingerprintOf(hash), 4321};
  std::vector<std::byte> bytes(HeatSketch::kGrainBytes);
  std::memcpy(bytes.data(), piece.data(), sizeof piece);
  const std::string name = HeatName(9);
  const auto written = disk().Open("log/" + name, FileAccess::kCreate, FileCaching::kCached);
  ASSERT_TRUE((*written)->Write(0, bytes).ok());
  FailingMemory memory;
  MemoryBudget budget(0);
  const auto sketch = HeatSketch::Create(&memory, &budget, HeatSketch::kGrainBytes);
  ASSERT_TRUE(sketch.ok());
  const auto log = OpenedDirectory(&disk(), "log");
  const Status loaded =
      LoadHeat(log.get(), name,
               {.bytes = bytes.size(), .sketch_bytes = bytes.size(), .crc = ExtendCrc32c(0, bytes)},
               sketch->get());
  ASSERT_TRUE(loaded.ok()) << loaded;
  EXPECT_EQ((*sketch)->Get(hash, 0), 4321u);
  EXPECT_EQ((*sketch)->Get(HashKey(TableHash("t"), 78), 0), 0u);
}

TEST_F(KeptHeat, IsLeftOutWhereItCannotBeWritten) {
  disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kWrite && call.path == HeatPath(4);
    return fails ? ResourceExhaustedError("no space") : OkStatus();
  });
  {
    const Warnings warnings;
    const auto checkpoint = world_->checkpoints()->Make({});
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ASSERT_EQ(warnings.lines().size(), 1u);
    EXPECT_NE(warnings.lines()[0].find("no space"), std::string::npos) << warnings.lines()[0];
  }
  disk().SetFaults(nullptr);
  EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 1u) << "of checkpoint 3";
  ASSERT_TRUE(world_.Open().ok());
  ExpectRowsWithoutHeat();
}

TEST_F(KeptHeat, HeatOfACheckpointThatFailedIsRemoved) {
  disk().SetFaults([&](const DiskCall& call) {
    const bool fails =
        call.kind == DiskCall::Kind::kOpen && call.path.find("MANIFEST-") != std::string::npos;
    return fails ? ResourceExhaustedError("no space") : OkStatus();
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(IsResourceExhausted(world_->checkpoints()->Make({}).status()));
    EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 2u);
  }
  disk().SetFaults(nullptr);
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
}

TEST_F(KeptHeat, DoesNotPileUpBehindAManifestInDoubt) {
  int syncs = 0;  // of a checkpoint: behind its segments, behind its manifest
  disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kSyncDirectory && ++syncs == 2;
    return fails ? UnavailableError("no answer") : OkStatus();
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(IsUnavailable(world_->checkpoints()->Make({}).status()));
    EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 3u) << "those of 2 and 3, and of 4 in doubt";
  }
  disk().SetFaults(nullptr);
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), counted_.exact());
}

TEST_F(KeptHeat, HeatOfTheNewestStaysThoughThePreviousIsOpenedAndExported) {
  ASSERT_TRUE(world_.Open(/*previous=*/true).ok());
  const Status exported = world_->checkpoints()->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
}

// Small rows of which memory holds more than a file has space for.
TEST(HeatOfAllRows, IsKeptOfTheHottestRows) {
  SpillWorld world(7);
  constexpr Key kRows = 150'000;
  constexpr Key kHot = 30'000;
  constexpr uint32_t kSmallDim = 4;
  Table* const table = world.Create("t", Optimizer::kNone, kSmallDim);
  const std::vector<float> ones(kRows * kSmallDim, 1.0f);
  ASSERT_TRUE(Upsert(table, KeysFrom(0, kRows), RowsOf(ones, kSmallDim), {}).ok());
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_EQ(table->rows_in_log(), 0u);
  Counted counted(table, kRows);
  counted.LookUp(KeysFrom(0, kRows));
  for (int i = 0; i < 4; ++i) counted.LookUp(KeysFrom(0, kHot));
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world.Open().ok());
  const Heats told = HeatsOf(*world->catalog().Open("t"), kRows);
  Key lost_hot = 0;
  Key kept = 0;
  Key mistaken = 0;  // for a row with the same fingerprint
  for (Key key = 0; key < kRows; ++key) {
    const uint32_t exact = counted.exact()[key];
    if (told[key] == exact) ++kept;
    if (told[key] > exact) ++mistaken;
    if (key < kHot && told[key] < exact) ++lost_hot;
  }
  std::printf("heat of %lu rows of %lu, and not of %lu hot ones\n", kept, kRows, lost_hot);
  EXPECT_LE(mistaken, 8u);
  // Blocks of more than twelve hot rows are rare.
  EXPECT_LE(lost_hot, kHot / 500);
  const uint64_t entries = HeatSketchBytes(kDramBytes, 0) / sizeof(HeatBlock) * HeatBlock::kEntries;
  EXPECT_LT(entries, kRows) << "memory holds too few rows for this test";
  EXPECT_GE(kept, entries - entries / 20) << "there was space for more";
}

TEST(HeatOfAllRows, IsKeptOfAllRowsWhereMemoryHasNoLimit) {
  for (const uint64_t ssd_bytes : {uint64_t{0}, uint64_t{256} << 20}) {
    SpillWorld world(8);
    world.options().dram_bytes = 0;
    world.options().ssd_bytes = ssd_bytes;
    ASSERT_TRUE(world.Open().ok());
    constexpr Key kRows = 30'000;
    constexpr uint32_t kSmallDim = 4;
    Table* const table = world.Create("t", Optimizer::kNone, kSmallDim);
    const std::vector<float> ones(kRows * kSmallDim, 1.0f);
    ASSERT_TRUE(Upsert(table, KeysFrom(0, kRows), RowsOf(ones, kSmallDim), {}).ok());
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    Counted counted(table, kRows);
    counted.LookUp(KeysFrom(100, kRows - 100));
    counted.LookUp(KeysFrom(0, 5000));
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ASSERT_TRUE(world.Open().ok());
    // But for a few in blocks of more than twelve; and so it is when the store grows meanwhile, and
    // its sketch with it.
    for (Key rows = kRows; rows <= 3 * kRows; rows += kRows) {
      const Heats told = HeatsOf(*world->catalog().Open("t"), kRows);
      Key colder = 0;
      for (Key key = 0; key < kRows; ++key) {
        EXPECT_LE(told[key], counted.exact()[key]);
        if (told[key] < counted.exact()[key]) ++colder;
      }
      EXPECT_LE(colder, kRows / 500) << rows;
      Table* const opened = *world->catalog().Open("t");
      ASSERT_TRUE(Upsert(opened, KeysFrom(rows, kRows), RowsOf(ones, kSmallDim), {}).ok());
      LookUp(opened, KeysFrom(rows, kRows / 4));
      ASSERT_TRUE(world->checkpoints()->Make({}).ok());
      ASSERT_TRUE(world.Open().ok());
    }
  }
}

// A large sketch that hardly has heat follows the rows of a store without a limit of memory.
TEST(HeatOfAllRows, HasASketchOfTheirSizeWhereMemoryHasNoLimit) {
  SpillWorld world(10);
  constexpr Key kRows = 1500;  // 250 blocks
  constexpr Key kHot = 50;
  Table* const table = world.Create("t", Optimizer::kSgd);
  Put(table, KeysFrom(0, kRows), 1.0f);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  Counted counted(table, kRows);
  counted.LookUp(KeysFrom(0, kHot));
  EXPECT_GT(table->store().heat_sketch->bytes(), 4 * HeatSketch::kGrainBytes);
  world.options().dram_bytes = 0;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ASSERT_TRUE(world.Open().ok());
    Table* const opened = *world->catalog().Open("t");
    EXPECT_EQ(opened->store().heat_sketch->bytes(), 4 * HeatSketch::kGrainBytes);
    EXPECT_EQ(HeatsOf(opened, kRows), counted.exact());
  }
}

// Heat is kept where rows leave space for it, and takes no more than there is.
TEST(HeatOfAllRows, GivesWayToRows) {
  constexpr uint64_t kSsdBytes = uint64_t{40} << 20;
  SpillWorld world(9, nullptr, kSsdBytes);
  Table* const table = world.Create("t", Optimizer::kSgd);
  Random random(9);
  int kept = 0;
  int left_out = 0;
  const std::vector<float> values(200 * kDim, 1.0f);
  std::vector<float> rows(200 * kDim);
  for (int checkpoint = 1; checkpoint <= 40; ++checkpoint) {
    for (int batch = 0; batch < 12; ++batch) {
      const Key first = random.Below(std::min<Key>(table->rows() + 200, 4200));
      const Status status = Upsert(table, KeysFrom(first, 200), RowsOf(values, kDim), {});
      EXPECT_TRUE(status.ok() || IsResourceExhausted(status)) << status;
      const std::vector<Key> keys = KeysFrom(random.Below(4000), 200);
      ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
    }
    const auto made = world->checkpoints()->Make({});
    ASSERT_TRUE(made.ok()) << made.status();
    ++(Has(world.disk(), "log/" + HeatName(*made)) ? kept : left_out);
    uint64_t bytes = 0;
    for (const std::string& file : world.disk().Files())
      bytes += world.disk().Contents(file).size();
    EXPECT_LE(bytes, kSsdBytes);
    world.disk().ClearHistory();
  }
  std::printf("heat kept by %d checkpoints, left out by %d\n", kept, left_out);
  EXPECT_GT(kept, 0);
  EXPECT_GT(left_out, 0);
}

}  // namespace
}  // namespace embank::test::kept_heat_test
