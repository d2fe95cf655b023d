// Heat of rows that leave memory clean and come back: as a plain counter has it, or close to it,
// never more; over checkpoints, crashes and exports; without it a store is whole all the same.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "store/gradients.h"
#include "store/heat_file.h"
#include "store/lookup.h"
#include "store/verify.h"
#include "store/write.h"
#include "tests/support/export_world.h"
#include "tests/support/random.h"
#include "tests/support/store_files.h"
#include "tests/support/warnings.h"

namespace embank::test {
namespace {

using Heats = std::vector<uint32_t>;  // of keys 0, 1, ...

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSlower = 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSlower = 4;
#else
constexpr uint64_t kSlower = 1;
#endif

constexpr uint64_t kMillion = uint64_t{1} << 20;  // positions of the shortest epoch

Heats HeatsOf(Table* table, uint64_t keys) {
  Heats heats(keys);
  const absl::Status status = GetHeat(table, KeysFrom(0, keys), heats, {});
  EXPECT_TRUE(status.ok()) << status;
  return heats;
}

std::string HeatPath(int checkpoint) { return "log/HEAT-0000000" + std::to_string(checkpoint); }

bool Has(const SimulatedDisk& disk, const std::string& path) {
  const std::vector<std::string> files = disk.Files();
  return std::count(files.begin(), files.end(), path) > 0;
}

// Looks rows up, and counts beside it.
class Counted {
 public:
  Counted(Table* table, uint64_t keys) : table_(table), exact_(keys) {}

  void LookUp(const std::vector<Key>& keys) {
    const uint32_t dim = table_->options().dim;
    std::vector<float> rows(keys.size() * dim);
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kZero, RowsIn(&rows, dim), {}).ok());
    for (const Key key : keys) ++exact_[key];
    Age();
  }
  // Ends an epoch, if it is a million.
  void Pass(uint64_t positions) {
    table_->parts().heat_clock->Count(positions);
    Age();
  }
  const Heats& exact() const { return exact_; }
  Heats told() const { return HeatsOf(table_, exact_.size()); }
  bool IsInLog(Key key) const {
    const Match match = table_->parts().index->Find(table_->IdOf(key, table_->HashOf(key)));
    return match.any() && match.location().tier() == Tier::kSsd;
  }

 private:
  void Age() {
    for (; epochs_ < table_->parts().heat_clock->epochs(); ++epochs_) {
      for (uint32_t& heat : exact_) heat /= 2;
    }
  }

  Table* const table_;
  Heats exact_;
  uint64_t epochs_ = 0;
};

// Twice the rows that memory holds; their records say that they were never looked up.
constexpr Key kKeys = 4000;

Table* MakeCold(SpillWorld* world) {
  Table* const table = world->Create("t", Optimizer::kSgd);
  Put(table, KeysFrom(0, kKeys), 1.0f);
  EXPECT_TRUE((*world)->Checkpoint({}).ok());
  EXPECT_GT(table->rows_in_log(), kKeys / 3);
  return table;
}

std::vector<Key> DrawKeys(Random* random) {
  std::vector<Key> keys(random->Between(1, 300));
  for (Key& key : keys) key = random->Below(random->OneIn(2) ? kKeys : kKeys / 8);
  return keys;
}

TEST(TravellingHeat, IsExactWhileTheSketchHasRoom) {
  SpillWorld world(1);
  Counted counted(MakeCold(&world), kKeys);
  Random random(1);
  for (int batch = 0; batch < 150; ++batch) {
    ASSERT_NO_FATAL_FAILURE(counted.LookUp(DrawKeys(&random)));
    if (batch % 40 == 39) counted.Pass(kMillion);
    if (batch % 30 == 29) {
      ASSERT_EQ(counted.told(), counted.exact()) << batch;
    }
  }
  EXPECT_GT(*std::max_element(counted.exact().begin(), counted.exact().end()), 3u);
  // To ask is to change nothing.
  EXPECT_EQ(counted.told(), counted.exact());
}

// A row that changes leaves with a record that says its heat; so does one that a checkpoint wrote.
TEST(TravellingHeat, IsCountedOnceWhereRecordsSayItToo) {
  SpillWorld world(2);
  Table* const table = MakeCold(&world);
  Counted counted(table, kKeys);
  Random random(2);
  const std::vector<float> steps(300 * kDim, 1.0f);
  for (int batch = 0; batch < 120; ++batch) {
    ASSERT_NO_FATAL_FAILURE(counted.LookUp(DrawKeys(&random)));
    std::vector<Key> changed = DrawKeys(&random);
    changed.resize(changed.size() / 4);
    ASSERT_TRUE(ApplyGradients(table, changed, RowsOf(steps, kDim), {}).ok());
    if (batch % 25 == 24) {
      ASSERT_TRUE(world->Checkpoint({}).ok());
    }
    if (batch % 20 == 19) {
      ASSERT_EQ(counted.told(), counted.exact()) << batch;
    }
  }
}

TEST(TravellingHeat, SaturatesWhereItsRowsAre) {
  SpillWorld world(3);
  Table* const table = MakeCold(&world);
  constexpr uint64_t kHot = 7;
  const std::vector<Key> hot(1 << 14, kHot);
  std::vector<float> rows(hot.size() * kDim);
  table->parts().heat_clock->AddRows(1 << 20);  // no epoch ends meanwhile
  for (int i = 0; i < 64; ++i) {
    ASSERT_TRUE(Lookup(table, hot, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  }
  Counted counted(table, kKeys);
  for (int round = 0; round < 3; ++round) {
    EXPECT_EQ(counted.told()[kHot], kHeatMax);
    // Its turn to leave comes twice.
    for (Key i = 0; i < 12'000; i += 500) counted.LookUp(KeysFrom(1000 + i % 3000, 500));
    ASSERT_TRUE(counted.IsInLog(kHot));
    EXPECT_EQ(counted.told()[kHot], kHeatMax);
    counted.LookUp({kHot});
  }
}

// Rows that come late to a store whose memory is others' are looked up in the log.
TEST(TravellingHeat, IsCountedOfRowsThatCannotComeUp) {
  SpillWorld world(4);
  MakeCold(&world);
  Table* const late = world.Create("late", Optimizer::kNone, 8);
  const std::vector<float> rows(uint64_t{300} * 8, 1.0f);
  ASSERT_TRUE(Upsert(late, KeysFrom(0, 300), RowsOf(rows, 8), {}).ok());
  ASSERT_EQ(late->rows_in_log(), 300u);
  Counted counted(late, 300);
  for (const size_t n : {300, 100, 200, 50}) {
    ASSERT_NO_FATAL_FAILURE(counted.LookUp(KeysFrom(0, n)));
    ASSERT_EQ(counted.told(), counted.exact());
  }
  ASSERT_EQ(late->rows_in_log(), 300u);
}

// ---- rows that are more than the sketch has entries for ----

// Keys by Zipf, the hottest being scattered.
class ZipfKeys {
 public:
  ZipfKeys(uint64_t keys, double exponent) : ends_(keys) {
    double sum = 0;
    for (uint64_t i = 0; i < keys; ++i) {
      sum += std::pow(static_cast<double>(i + 1), -exponent);
      ends_[i] = sum;
    }
  }
  Key Draw(Random* random) const {
    const double drawn = static_cast<double>(random->Bits() >> 11) * 0x1p-53 * ends_.back();
    const auto rank = std::lower_bound(ends_.begin(), ends_.end(), drawn) - ends_.begin();
    return static_cast<uint64_t>(rank) * 7919 % ends_.size();
  }

 private:
  std::vector<double> ends_;
};

void ExpectCloseOnZipf(double exponent) {
  SpillWorld world(5);
  constexpr uint32_t kSmallDim = 64;
  Table* const table = world.Create("t", Optimizer::kNone, kSmallDim);
  const std::vector<float> ones(uint64_t{1000} * kSmallDim, 1.0f);
  while (table->rows() < 4 * table->mover()->rows_in_memory() || table->rows_in_log() == 0) {
    ASSERT_TRUE(Upsert(table, KeysFrom(table->rows(), 1000), RowsOf(ones, kSmallDim), {}).ok());
  }
  ASSERT_TRUE(world->Checkpoint({}).ok());
  const uint64_t keys = table->rows();
  const ZipfKeys zipf(keys, exponent);
  Counted counted(table, keys);
  Random random(5);
  const uint64_t batches = 16 * keys / 1024 / std::min(kSlower, uint64_t{4});
  for (uint64_t batch = 0; batch < batches; ++batch) {
    std::vector<Key> drawn(1024);
    for (Key& key : drawn) key = zipf.Draw(&random);
    ASSERT_NO_FATAL_FAILURE(counted.LookUp(drawn));
  }
  const Heats told = counted.told();
  uint64_t rows = 0;
  uint64_t hotter = 0;
  double heat = 0;
  double error = 0;
  for (Key key = 0; key < keys; ++key) {
    if (told[key] > counted.exact()[key]) ++hotter;
    if (!counted.IsInLog(key)) continue;
    ++rows;
    heat += counted.exact()[key];
    error += std::abs(static_cast<double>(told[key]) - counted.exact()[key]);
  }
  std::printf(
      "Zipf %.2f: %llu rows, %llu of them in the log; mean heat %.3f, error %.3f; "
      "%llu too hot\n",
      exponent, static_cast<unsigned long long>(keys), static_cast<unsigned long long>(rows),
      heat / static_cast<double>(rows), error / static_cast<double>(rows),
      static_cast<unsigned long long>(hotter));
  EXPECT_GT(rows, keys / 2);
  EXPECT_GT(heat, 0.1 * static_cast<double>(rows));
  // Those that had another's print at one of their returns, of which one in 100,000 has it.
  EXPECT_LE(hotter, keys / 10000);
  // Without the sketch the error would be the heat.
  EXPECT_LT(error, heat / 8);
}

TEST(TravellingHeat, IsCloseAndNeverMoreWithFourTimesTheRowsOfMemory) { ExpectCloseOnZipf(0.99); }
TEST(TravellingHeat, IsCloseAndNeverMoreOnSteeperTraffic) { ExpectCloseOnZipf(1.05); }

// ---- what is kept ----

class KeptHeat : public testing::Test {
 protected:
  // Checkpoint 1 has no heat; 2 and 3 have.
  KeptHeat() : world_(11), counted_(MakeCold(&world_), kKeys) {
    EXPECT_FALSE(Has(disk(), HeatPath(1))) << "no row was looked up";
    for (Heats* const kept : {&second_, &third_}) {
      for (int batch = 0; batch < 30; ++batch) counted_.LookUp(DrawKeys(&random_));
      *kept = counted_.exact();
      EXPECT_TRUE(world_->Checkpoint({}).ok());
    }
    for (int batch = 0; batch < 10; ++batch) counted_.LookUp(DrawKeys(&random_));
  }

  SimulatedDisk& disk() { return world_.disk(); }
  Heats Told() { return HeatsOf(*world_->OpenTable("t"), kKeys); }
  // That rows are whole, and what their records say is their heat.
  void ExpectRowsWithoutHeat() {
    EXPECT_EQ(Told(), Heats(kKeys));
    Rows expected;
    for (Key key = 0; key < kKeys; ++key) expected[key] = static_cast<float>(key);
    ExpectIs(world_.get(), {{"t", expected}});
  }
  // Opens it damaged, with one warning.
  void OpenWarned(const std::string& what) {
    const Warnings warnings;
    const absl::Status opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
    ASSERT_EQ(warnings.lines().size(), 1u);
    EXPECT_NE(warnings.lines()[0].find(HeatPath(3)), std::string::npos) << warnings.lines()[0];
    EXPECT_NE(warnings.lines()[0].find(what), std::string::npos) << warnings.lines()[0];
  }
  absl::StatusOr<VerifyReport> Verify() {
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
  EXPECT_LT(disk().Contents(HeatPath(3)).size(), HeatSketch::BytesFor(kDramBytes, 0))
      << "blocks without entries are left out";
  // It goes on from there, and is kept again.
  ASSERT_TRUE(world_->Checkpoint({}).ok());
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
}

TEST_F(KeptHeat, OfThePreviousCheckpointIsKeptToo) {
  EXPECT_TRUE(Has(disk(), HeatPath(2)) && Has(disk(), HeatPath(3)));
  ASSERT_TRUE(world_.Open(/*previous=*/true).ok());
  EXPECT_EQ(Told(), second_);
  ASSERT_TRUE(world_->Checkpoint({}).ok());
  EXPECT_FALSE(Has(disk(), HeatPath(3))) << "its manifest is gone";
  EXPECT_TRUE(Has(disk(), HeatPath(2)) && Has(disk(), HeatPath(4)));
  ASSERT_TRUE(world_->Checkpoint({}).ok());
  EXPECT_FALSE(Has(disk(), HeatPath(2)));
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), second_);
}

// Epochs begin anew, ageing goes on.
TEST_F(KeptHeat, IsAsOldAsItWas) {
  counted_.Pass(kMillion);
  counted_.Pass(kMillion);
  const Heats aged = counted_.exact();
  ASSERT_TRUE(world_->Checkpoint({}).ok());
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), aged);
  Table* const table = *world_->OpenTable("t");
  table->parts().heat_clock->Count(kMillion);
  const Heats told = Told();
  for (Key key = 0; key < kKeys; ++key) ASSERT_EQ(told[key], aged[key] / 2);
}

TEST_F(KeptHeat, ComesToASketchOfAnotherSize) {
  for (const uint64_t dram_bytes : {kDramBytes + (uint64_t{5} << 20), uint64_t{0}, kDramBytes}) {
    world_.options().dram_bytes = dram_bytes;
    ASSERT_TRUE(world_.Open().ok());
    ASSERT_EQ(Told(), third_);
    ASSERT_TRUE(world_->Checkpoint({}).ok());
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

TEST_F(KeptHeat, OfNoCheckpointIsAnOrphan) {
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
    const absl::Status exported = world_->Export(path, [&](uint64_t, uint64_t) {
      for (int i = 0; first && i < 2; ++i) EXPECT_TRUE(world_->Checkpoint({}).ok());
      first = false;
      return true;
    });
    ASSERT_TRUE(exported.ok()) << exported;
    const auto copy = OpenAt(&world_, path);
    ASSERT_TRUE(copy.ok()) << copy.status();
    EXPECT_EQ(HeatsOf(*(*copy)->OpenTable("t"), kKeys), links ? third_ : counted_.exact());
  }
  // What was kept for exports is not kept any more.
  disk().SetFaults(nullptr);
  ASSERT_TRUE(world_->Checkpoint({}).ok());
  EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 2u);
}

TEST_F(KeptHeat, IsToldAndLeftByThoseWhoOnlyRead) {
  world_.Close();
  // Of no checkpoint; not theirs to remove.
  const auto other = disk().Open(HeatPath(9), FileAccess::kCreate, FileCaching::kCached);
  ASSERT_TRUE((*other)->Write(0, disk().Contents(HeatPath(2))).ok());
  world_.options().read_only = true;
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
  Counted counted(*world_->OpenTable("t"), kKeys);
  for (int batch = 0; batch < 30; ++batch) counted.LookUp(DrawKeys(&random_));
  Heats sum = counted.exact();
  for (Key key = 0; key < kKeys; ++key) sum[key] += third_[key];
  EXPECT_EQ(Told(), sum);
  const absl::Status exported = world_->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 3u);
  world_.Close();
  world_.options().read_only = false;
}

TEST_F(KeptHeat, MissingIsNoMatterOfAnExport) {
  ASSERT_TRUE(disk().Remove(HeatPath(3)).ok());
  const Warnings warnings;
  const absl::Status exported = world_->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  EXPECT_EQ(warnings.lines().size(), 1u);
  const auto copy = OpenAt(&world_, "copy");
  ASSERT_TRUE(copy.ok()) << copy.status();
  EXPECT_EQ(warnings.lines().size(), 1u) << "the copy's manifest names none";
  EXPECT_EQ(HeatsOf(*(*copy)->OpenTable("t"), kKeys), Heats(kKeys));
}

TEST_F(KeptHeat, OfASizeThatNoneHasIsDamaged) {
  FailingMemory memory;
  MemoryBudget budget(0);
  const auto sketch = HeatSketch::Create(&memory, &budget, HeatSketch::kGrainBytes);
  ASSERT_TRUE(sketch.ok());
  const uint64_t bytes = disk().Contents(HeatPath(3)).size();
  const uint64_t grain = HeatSketch::kGrainBytes;
  for (const HeatFile& file : {HeatFile{.bytes = bytes, .sketch_bytes = 0},
                               {.bytes = bytes, .sketch_bytes = grain + 64},
                               {.bytes = 3 * grain, .sketch_bytes = grain},
                               {.bytes = grain + 64, .sketch_bytes = grain},
                               {.bytes = bytes + grain, .sketch_bytes = bytes}}) {
    EXPECT_TRUE(absl::IsDataLoss(LoadHeat(&disk(), HeatPath(3), file, sketch->get())));
  }
}

// Small rows of which memory holds more than a file has room for.
TEST(TravellingHeat, IsKeptOfTheHottestRows) {
  SpillWorld world(7);
  constexpr Key kRows = 50'000;
  constexpr Key kHot = 9'000;
  constexpr uint32_t kSmallDim = 4;
  Table* const table = world.Create("t", Optimizer::kNone, kSmallDim);
  const std::vector<float> ones(kRows * kSmallDim, 1.0f);
  ASSERT_TRUE(Upsert(table, KeysFrom(0, kRows), RowsOf(ones, kSmallDim), {}).ok());
  ASSERT_TRUE(world->Checkpoint({}).ok());
  ASSERT_EQ(table->rows_in_log(), 0u);
  Counted counted(table, kRows);
  counted.LookUp(KeysFrom(0, kRows));
  for (int i = 0; i < 4; ++i) counted.LookUp(KeysFrom(0, kHot));
  ASSERT_TRUE(world->Checkpoint({}).ok());
  Heats hot = counted.exact();
  std::fill(hot.begin() + kHot, hot.end(), 0);
  ASSERT_TRUE(world.Open().ok());
  EXPECT_EQ(HeatsOf(*world->OpenTable("t"), kRows), hot);
}

TEST_F(KeptHeat, IsLeftOutWhereItCannotBeWritten) {
  disk().SetFaults([&](const DiskCall& call) {
    const bool fails = call.kind == DiskCall::Kind::kWrite && call.path == HeatPath(4);
    return fails ? absl::ResourceExhaustedError("no room") : absl::OkStatus();
  });
  {
    const Warnings warnings;
    const auto checkpoint = world_->Checkpoint({});
    ASSERT_TRUE(checkpoint.ok()) << checkpoint.status();
    ASSERT_EQ(warnings.lines().size(), 1u);
    EXPECT_NE(warnings.lines()[0].find("no room"), std::string::npos) << warnings.lines()[0];
  }
  disk().SetFaults(nullptr);
  EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 1u) << "of checkpoint 3";
  ASSERT_TRUE(world_.Open().ok());
  ExpectRowsWithoutHeat();
}

TEST_F(KeptHeat, OfACheckpointThatFailedIsRemoved) {
  disk().SetFaults([&](const DiskCall& call) {
    const bool fails =
        call.kind == DiskCall::Kind::kOpen && call.path.find("MANIFEST-") != std::string::npos;
    return fails ? absl::ResourceExhaustedError("no room") : absl::OkStatus();
  });
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(absl::IsResourceExhausted(world_->Checkpoint({}).status()));
    EXPECT_EQ(FilesWith(disk(), "log/HEAT-").size(), 2u);
  }
  disk().SetFaults(nullptr);
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
}

TEST_F(KeptHeat, OfTheNewestStaysThoughThePreviousIsOpenedAndExported) {
  ASSERT_TRUE(world_.Open(/*previous=*/true).ok());
  const absl::Status exported = world_->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  ASSERT_TRUE(world_.Open().ok());
  EXPECT_EQ(Told(), third_);
}

TEST(TravellingHeat, IsKeptOfAllRowsWhereMemoryHasNoLimit) {
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
    ASSERT_TRUE(world->Checkpoint({}).ok());
    Counted counted(table, kRows);
    counted.LookUp(KeysFrom(100, kRows - 100));
    counted.LookUp(KeysFrom(0, 5000));
    ASSERT_TRUE(world->Checkpoint({}).ok());
    ASSERT_TRUE(world.Open().ok());
    // But for a few in blocks of more than twelve.
    const Heats told = HeatsOf(*world->OpenTable("t"), kRows);
    Key colder = 0;
    for (Key key = 0; key < kRows; ++key) {
      EXPECT_LE(told[key], counted.exact()[key]);
      if (told[key] < counted.exact()[key]) ++colder;
    }
    EXPECT_LE(colder, kRows / 500);
  }
}

// ---- threads ----

TEST(TravellingHeat, IsCountedWhileRowsTravelAndCheckpointsAreMade) {
  SpillWorld world(6, MakeThreadPool(2));
  Table* const table = MakeCold(&world);
  constexpr int kThreads = 3;
  const uint64_t batches = 120 / kSlower;
  std::atomic<uint64_t> lookups{0};
  std::atomic<int> running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(static_cast<uint64_t>(thread));
      for (uint64_t batch = 0; batch < batches; ++batch) {
        const std::vector<Key> keys = DrawKeys(&random);
        std::vector<float> rows(keys.size() * kDim);
        EXPECT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
        lookups += keys.size();
        std::vector<uint32_t> heats(keys.size());
        EXPECT_TRUE(GetHeat(table, keys, heats, {}).ok());
      }
      --running;
    });
  }
  while (running > 0) {
    EXPECT_TRUE(world->Checkpoint({}).ok());
    std::this_thread::yield();
  }
  for (std::thread& thread : threads) thread.join();
  uint64_t told = 0;
  for (const uint32_t heat : HeatsOf(table, kKeys)) told += heat;
  EXPECT_LE(told, lookups);
  // A lookup whose row leaves between its copy and its count is not counted: few, but where threads
  // are held up there. Without the sketch most would not be.
  EXPECT_GE(told, lookups / 2);
}

}  // namespace
}  // namespace embank::test
