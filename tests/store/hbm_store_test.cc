// HBM rows where other parts of the store deal with them: tables that forget, exports, verify.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <set>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "store/inspect/verify.h"
#include "store/payload/payload_rows.h"
#include "store/payload/topk_flush.h"
#include "tests/store/forgetting_rows.h"
#include "tests/support/export_world.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_world.h"

namespace embank::test::hbm_store_test {
namespace {

constexpr uint64_t kHbmBytes = uint64_t{1} << 20;
constexpr uint64_t kHbmRowsMax = kHbmBytes / (kDim * sizeof(float));

void Flush(Store* store) {
  const Status flushed = store->topk_flush()->FlushNow();
  ASSERT_TRUE(flushed.ok()) << flushed;
}

// Looks the keys up so often that they are the hottest, and renews the HBM rows.
void Heat(Store* store, Table* table, const std::vector<Key>& keys, int lookups = 10) {
  for (int i = 0; i < lookups; ++i) LookUp(table, keys);
  Flush(store);
}

std::vector<Key> KeysWithDevicePayloads(Table* table, const std::vector<Key>& keys) {
  std::vector<Key> hot;
  for (const Key key : keys) {
    const Match match = table->store().index->Find(table->IdOf(key, table->HashOf(key)));
    if (match.any() && match.location().tier() == Tier::kHbm) hot.push_back(key);
  }
  return hot;
}

// Keys 1 to 100 were written anew.
void ExpectValues(Table* table, const std::vector<Key>& keys) {
  for (const auto& [key, value] : ValuesOf(table, keys)) {
    ASSERT_EQ(value, static_cast<float>(key) * (key <= 100 ? 3.0f : 1.0f)) << "key " << key;
  }
}

uint64_t KeptOf(Table* table, const std::vector<Key>& keys) { return Present(table, keys).size(); }

// Rows in device memory are in no eviction order: new rows take the places of rows in DRAM.
TEST(HbmStore, InMemoryForgetsRowsBelowDeviceMemory) {
  StoreWorld world({.dram_bytes = uint64_t{24} << 20,
                    .hbm_bytes = kHbmBytes,
                    .flush_iters = TopkFlushOptions::kNever});
  Table* const table = world.Create("t", [] {
    TableOptions options = Forgets();
    options.optimizer = Optimizer::kNone;
    return options;
  }());
  const std::vector<Key> hot = KeysFrom(1, kHbmRowsMax);
  Put(table, hot, 1.0f);
  ASSERT_NO_FATAL_FAILURE(Heat(&*world, table, hot));
  ASSERT_EQ(table->rows_in(Tier::kHbm), hot.size());
  Put(table, KeysFrom(1, 100), 3.0f);  // dirty ones
  constexpr Key kNew = 12'000;
  for (Key key = 1001; key < 1001 + kNew; key += kBatch) {
    Put(table, KeysFrom(key, kBatch), 1.0f);
    ASSERT_EQ(table->rows() + Forgotten(table), hot.size() + key - 1001 + kBatch);
  }
  EXPECT_GT(Forgotten(table), kNew / 2);
  EXPECT_EQ(KeptOf(table, hot), hot.size());
  EXPECT_EQ(table->rows_in(Tier::kHbm), hot.size());
  // They leave for rows that are hotter now, and are then forgotten like others.
  const std::vector<Key> hotter = KeysFrom(1001 + kNew - kHbmRowsMax, kHbmRowsMax);
  ASSERT_NO_FATAL_FAILURE(Heat(&*world, table, hotter, 40));
  EXPECT_EQ(KeysWithDevicePayloads(table, hotter).size(), hotter.size());
  EXPECT_EQ(KeysWithDevicePayloads(table, hot).size(), 0u);
  ASSERT_NO_FATAL_FAILURE(ExpectValues(table, hot));
  const uint64_t before = KeptOf(table, hot);
  EXPECT_GT(before, 0u);
  for (Key key = 50'001; key < 50'001 + kNew; key += kBatch) {
    Put(table, KeysFrom(key, kBatch), 1.0f);
  }
  EXPECT_LT(KeptOf(table, hot), before / 2);
  EXPECT_EQ(KeptOf(table, hotter), hotter.size());
  EXPECT_EQ(Present(table, KeysFrom(1, 70'000)).size(), table->rows());
}

uint64_t HotLookups(Store* store) { return store->payloads()->counters().answered.load(); }

// Neither tier has a free slot. Rows change places, and none is refused for that.
TEST(HbmStore, InMemoryThatIsFullAndRefusesRenewsItsHbmRows) {
  StoreWorld world({.dram_bytes = uint64_t{24} << 20,
                    .hbm_bytes = kHbmBytes,
                    .flush_iters = TopkFlushOptions::kNever});
  Table* const table = world.Create("t", OptionsOf(kDim));
  Put(table, KeysFrom(1, kHbmRowsMax), 1.0f);
  ASSERT_NO_FATAL_FAILURE(Heat(&*world, table, KeysFrom(1, kHbmRowsMax)));
  Key end = kHbmRowsMax + 1;
  for (;; ++end) {
    const Status put =
        Upsert(table, KeysFrom(end, 1), RowsOf(RowsOfKeys(KeysFrom(end, 1), 1.0f), kDim), {});
    if (!put.ok()) {
      ASSERT_EQ(put.code(), StatusCode::kResourceExhausted) << put;
      break;
    }
  }
  Rows expected;
  for (Key key = 1; key < end; ++key) expected[key] = static_cast<float>(key);
  const std::vector<Key> all = KeysFrom(1, end - 1);
  ASSERT_EQ(table->rows_in(Tier::kHbm), kHbmRowsMax);
  ASSERT_GT(all.size(), 8 * kHbmRowsMax);
  std::atomic<int64_t> absent = 0;
  std::jthread reader([&](const std::stop_token& stop) {
    std::vector<uint8_t> outcomes(all.size());
    while (!stop.stop_requested()) {
      if (!Contains(table, all, outcomes).ok()) ++absent;
      absent +=
          std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kAbsent));
    }
  });
  int lookups = 20;
  for (Key first : {Key{1001}, Key{601}, Key{end - kHbmRowsMax}, Key{801}}) {
    const std::vector<Key> hot = KeysFrom(first, kHbmRowsMax);
    ASSERT_NO_FATAL_FAILURE(Heat(&*world, table, hot, lookups));
    lookups *= 2;
    EXPECT_EQ(KeysWithDevicePayloads(table, hot).size(), hot.size());
    EXPECT_EQ(table->rows_in(Tier::kHbm), kHbmRowsMax);
    const uint64_t before = HotLookups(&*world);
    LookUp(table, hot);
    EXPECT_EQ(HotLookups(&*world) - before, hot.size());
    // Half of the HBM rows, and others in DRAM.
    const float factor = static_cast<float>(lookups);
    Put(table, KeysFrom(first - 128, 256), factor);
    for (const Key key : KeysFrom(first - 128, 256))
      expected[key] = factor * static_cast<float>(key);
    const StatusOr<Rows> rows = ReadAll(table);
    ASSERT_TRUE(rows.ok()) << rows.status();
    ASSERT_EQ(*rows, expected);
    for (const auto& [key, value] : ValuesOf(table, all)) ASSERT_EQ(value, expected[key]) << key;
  }
  reader.request_stop();
  reader.join();
  EXPECT_EQ(absent.load(), 0) << "rows that change places exist all the while";
  EXPECT_FALSE(
      Upsert(table, KeysFrom(end, 1), RowsOf(RowsOfKeys(KeysFrom(end, 1), 1.0f), kDim), {}).ok());
  EXPECT_EQ(table->rows(), all.size());
}

// Rows take all of DRAM before the first one gets hot, and what is free the index or the log wants.
// Headers of HBM rows get a page of other rows.
TEST(HbmStore, OnDiskTakesRowsOfADramThatIsFullAlready) {
  SpillWorld world(1);
  world.AddHbmOptions(kHbmBytes);
  ASSERT_TRUE(world.Open().ok());
  Table* const table = world.Create("t", Optimizer::kNone);
  constexpr Key kRows = 8'000;
  for (Key key = 1; key <= kRows; key += kBatch) Put(table, KeysFrom(key, kBatch), 1.0f);
  const std::vector<Key> hot = KeysFrom(kRows - 255, 256);
  for (int i = 0; i < 10; ++i) LookUp(table, hot);
  for (int flushes = 0; flushes < 2; ++flushes) {
    // Rows that were in the page have moved to other slots since the plan: the second flush finds
    // them.
    table->store().tier->pool()->KeepFree(world.options().dram_bytes);
    ASSERT_NO_FATAL_FAILURE(Flush(world.get()));
  }
  EXPECT_EQ(KeysWithDevicePayloads(table, hot).size(), hot.size());
  EXPECT_GT(world->pages()->given_pages(), 0u) << "the headers have a page of other rows";
  for (const auto& [key, value] : ValuesOf(table, KeysFrom(1, kRows))) {
    ASSERT_EQ(value, static_cast<float>(key)) << "key " << key;
  }
}

// HBM rows keep their records in the log, or none: those are not forgotten either.
TEST(HbmStore, OnDiskForgetsRowsBelowDeviceMemory) {
  SpillWorld world(1, nullptr, kSsdBytes);
  world.AddHbmOptions(kHbmBytes);
  ASSERT_TRUE(world.Open().ok());
  Table* table = Create(&world, "t", Forgets());
  const std::vector<Key> hot = KeysFrom(1, kHbmRowsMax);
  ASSERT_NO_FATAL_FAILURE(Write(table, hot));
  ASSERT_NO_FATAL_FAILURE(Heat(world.get(), table, hot));
  const std::vector<Key> in_device = KeysWithDevicePayloads(table, hot);
  ASSERT_GT(in_device.size(), hot.size() / 2);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(1, 100), 3.0f));  // dirty ones
  constexpr Key kNew = 20'000;
  ASSERT_NO_FATAL_FAILURE(WriteRange(&world, table, 1001, 1001 + kNew, 800));
  EXPECT_GT(Forgotten(table), kNew / 3);
  EXPECT_EQ(table->rows() + Forgotten(table), hot.size() + kNew);
  EXPECT_EQ(KeptOf(table, in_device), in_device.size());
  EXPECT_EQ(KeysWithDevicePayloads(table, in_device).size(), in_device.size());
  ASSERT_NO_FATAL_FAILURE(ExpectValues(table, in_device));
  // They leave for rows that are hotter now, and DRAM for new ones: their records are where their
  // notes say, wherever compaction has written them meanwhile.
  const std::vector<Key> hotter = KeysFrom(1001 + kNew - kHbmRowsMax, kHbmRowsMax);
  ASSERT_NO_FATAL_FAILURE(Heat(world.get(), table, hotter, 60));
  EXPECT_LT(KeysWithDevicePayloads(table, in_device).size(), in_device.size() / 4);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&world, table, 50'001, 53'001, 800));
  EXPECT_EQ(KeptOf(table, in_device), in_device.size());
  ASSERT_NO_FATAL_FAILURE(ExpectValues(table, in_device));
  // All that there is comes back.
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const std::set<Key> before = Present(table, KeysFrom(1, 60'000));
  EXPECT_EQ(before.size(), table->rows());
  ASSERT_TRUE(world.Open().ok());
  table = *world->catalog().Open("t");
  EXPECT_EQ(Present(table, KeysFrom(1, 60'000)), before);
  ASSERT_NO_FATAL_FAILURE(ExpectValues(table, in_device));
}

// The last checkpoint has HBM rows as they were at its barrier; later changes are in device memory.
TEST(HbmStore, IsExportedAndVerifiedAsOfItsCheckpoint) {
  SpillWorld world(kExportSeed);
  world.AddHbmOptions(kHbmBytes);
  ASSERT_TRUE(world.Open().ok());
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(1, 600), 1.0f);
  ASSERT_NO_FATAL_FAILURE(Heat(world.get(), table, KeysFrom(1, 256)));
  Put(table, KeysFrom(1, 400), 2.0f);
  ASSERT_EQ(KeysWithDevicePayloads(table, KeysFrom(1, 256)).size(), 256u);
  ASSERT_TRUE(world->checkpoints()->Make(BlobOf(kExportBlob)).ok());
  const Tables last = *ReadAll(world.get());
  Put(table, KeysFrom(100, 300), 3.0f);
  ASSERT_TRUE(Erase(table, KeysFrom(1, 20), {}).ok());
  const Tables now = *ReadAll(world.get());
  const Status exported = world->checkpoints()->Export("copy", GoOn);
  ASSERT_TRUE(exported.ok()) << exported;
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), now));
  // A store of the export has a device of its own, and HBM rows.
  {
    const auto copy = OpenAt(&world, "copy");
    ASSERT_TRUE(copy.ok()) << copy.status();
    ASSERT_NO_FATAL_FAILURE(ExpectIs(copy->get(), last));
    Table* const copied = *(*copy)->catalog().Open("t");
    ASSERT_NO_FATAL_FAILURE(Heat(copy->get(), copied, KeysFrom(1, 256)));
    EXPECT_EQ(KeysWithDevicePayloads(copied, KeysFrom(1, 256)).size(), 256u);
    ASSERT_NO_FATAL_FAILURE(ExpectIs(copy->get(), last));
  }
  world.Close();
  for (const char* const path : {"log", "copy"}) {
    const auto report = VerifyStore(&world.disk(), path, GoOn);
    ASSERT_TRUE(report.ok()) << path << ": " << report.status();
    EXPECT_TRUE(report->clean()) << path << ": " << FormatVerifyReport(*report);
    ASSERT_FALSE(report->checkpoints.empty());
    EXPECT_EQ(report->checkpoints[0].rows, last.at("t").size());
  }
  ASSERT_TRUE(world.Open().ok());
  ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), last));
}

}  // namespace
}  // namespace embank::test::hbm_store_test
