// Heat of rows that leave memory clean and come back: as a plain counter has it, or close to it,
// hardly ever more.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/crc32c.h"
#include "store/batch/gradients.h"
#include "store/batch/write.h"
#include "store/checkpoint/heat_file.h"
#include "tests/store/counted_heat.h"
#include "tests/support/files_by_path.h"

namespace embank::test::travelling_heat_test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr uint64_t kSlower = 8;
#elif defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kSlower = 4;
#else
constexpr uint64_t kSlower = 1;
#endif

TEST(TravellingHeat, IsExactWhileTheSketchHasSpace) {
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
      ASSERT_TRUE(world->checkpoints()->Make({}).ok());
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
  table->store().store_rows->Add(1 << 20);  // no epoch ends meanwhile
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
TEST(TravellingHeat, IsCountedForRowsThatCannotBePromoted) {
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
  while (table->rows() < 4 * table->mover()->rows().rows_in_memory() || table->rows_in_log() == 0) {
    ASSERT_TRUE(Upsert(table, KeysFrom(table->rows(), 1000), RowsOf(ones, kSmallDim), {}).ok());
  }
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
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
  // Rows that had another row's fingerprint at one of their returns: one in 100,000 has it.
  EXPECT_LE(hotter, keys / 10000);
  // Without the sketch the error would be the heat.
  EXPECT_LT(error, heat / 8);
}

TEST(TravellingHeat, IsCloseAndNeverMoreWithFourTimesTheRowsOfMemory) { ExpectCloseOnZipf(0.99); }
TEST(TravellingHeat, IsCloseAndNeverMoreOnSteeperTraffic) { ExpectCloseOnZipf(1.05); }

// ---- threads ----

// Checks that the file of a checkpoint has at least these heats. The records of the rows have none.
void ExpectFileHas(SpillWorld* world, Table* table, uint32_t checkpoint, const Heats& heats) {
  const std::string name = HeatName(checkpoint);
  const std::vector<std::byte> bytes = world->disk().Contents("log/" + name);
  const HeatFile file = {.bytes = bytes.size(),
                         .sketch_bytes = table->store().heat_sketch->bytes(),
                         .crc = ExtendCrc32c(0, bytes)};
  MemoryBudget budget(0);
  const auto sketch = HeatSketch::Create(SystemMemorySource(), &budget, file.sketch_bytes);
  ASSERT_TRUE(sketch.ok()) << sketch.status();
  const auto log = OpenedDirectory(&world->disk(), "log");
  const Status loaded = LoadHeat(log.get(), name, file, sketch->get());
  ASSERT_TRUE(loaded.ok()) << loaded;
  for (Key key = 0; key < heats.size(); ++key) {
    EXPECT_GE((*sketch)->Get(table->HashOf(key), 0), heats[key]) << key;
  }
}

TEST(TravellingHeat, IsCountedWhileRowsTravelAndCheckpointsAreMade) {
  SpillWorld world(6, MakeThreadPool(2));
  Table* const table = MakeCold(&world);
  constexpr int kThreads = 3;
  table->store().store_rows->Add(1 << 30);  // no epoch ends meanwhile
  // Enough that in most runs a row leaves between any two steps of one of them.
  const uint64_t checkpoints = 200 / kSlower;
  std::atomic<uint64_t> lookups{0};
  std::atomic<bool> ends{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      Random random(static_cast<uint64_t>(thread));
      while (!ends) {
        const std::vector<Key> keys = DrawKeys(&random);
        std::vector<float> rows(keys.size() * kDim);
        EXPECT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
        lookups += keys.size();
        std::vector<uint32_t> heats(keys.size());
        EXPECT_TRUE(GetHeat(table, keys, heats, {}).ok());
      }
    });
  }
  while (lookups == 0) std::this_thread::yield();
  for (uint64_t made = 0; made < checkpoints; ++made) {
    // Rows leave memory and return while their heat is written. None loses it.
    const Heats before = HeatsOf(table, kKeys);
    const auto checkpoint = world->checkpoints()->Make({});
    EXPECT_TRUE(checkpoint.ok()) << checkpoint.status();
    if (!checkpoint.ok()) break;
    ExpectFileHas(&world, table, *checkpoint, before);
  }
  ends = true;
  for (std::thread& thread : threads) thread.join();
  uint64_t told = 0;
  for (const uint32_t heat : HeatsOf(table, kKeys)) told += heat;
  EXPECT_LE(told, lookups);
  // A lookup whose row leaves between its copy and its count is not counted: few, but where threads
  // are held up there. Without the sketch most would not be.
  EXPECT_GE(told, lookups / 2);
}

}  // namespace
}  // namespace embank::test::travelling_heat_test
