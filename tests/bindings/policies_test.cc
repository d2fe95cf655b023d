// Eviction and on_full through the C API, and through embank.hpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/embank.hpp"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::policies_test {
namespace {

using testing::Each;

constexpr uint64_t kDramBytes = uint64_t{16} << 20;
constexpr uint32_t kDim = 1024;

embank_table_options OptionsBy(int32_t eviction, int32_t on_full) {
  embank_table_options options = TableOptions(kDim);
  options.eviction = eviction;
  options.on_full = on_full;
  return options;
}

double NumberBehind(const std::string& text, const std::string& begin) {
  const size_t at = text.find(begin);
  EXPECT_NE(at, std::string::npos) << begin << " in\n" << text;
  return at == std::string::npos ? -1 : std::stod(text.substr(at + begin.size()));
}

TEST(Policies, AreAllTakenInMemory) {
  const StorePtr store = OpenStore();
  for (const int32_t eviction : {EMBANK_EVICT_LRU, EMBANK_EVICT_CLOCK, EMBANK_EVICT_LFU}) {
    for (const int32_t on_full : {EMBANK_FULL_REFUSE, EMBANK_FULL_FORGET}) {
      const std::string name = std::to_string(eviction) + " " + std::to_string(on_full);
      CreateTable(store.get(), name, OptionsBy(eviction, on_full));
    }
  }
}

// Twenty times as many rows as there is memory for.
TEST(Policies, ATableThatForgetsIsBounded) {
  embank_store_options store_options = StoreOptions();
  store_options.dram_bytes = kDramBytes;
  const StorePtr store = OpenStore(store_options);
  embank_table* const table =
      CreateTable(store.get(), "t", OptionsBy(EMBANK_EVICT_LRU, EMBANK_FULL_FORGET));
  // A shard has, out of 3,000 rows, 30 to 60, and so has three batches at all times.
  constexpr uint64_t kBatch = 250;
  constexpr uint64_t kKeys = 60'000;
  std::vector<float> rows(kBatch * kDim);
  std::vector<uint8_t> outcomes(kBatch);
  for (uint64_t first = 0; first < kKeys; first += kBatch) {
    const std::vector<uint64_t> keys = KeyRange(first, kBatch);
    std::fill(rows.begin(), rows.end(), static_cast<float>(first));
    ASSERT_EQ(embank_upsert(table, keys.data(), kBatch, rows.data(), 0, outcomes.data()),
              EMBANK_OK);
    ASSERT_THAT(outcomes, Each(EMBANK_ROW_CREATED));
    const std::string report = MemoryReport(store.get());
    ASSERT_LE(JsonNumber(report, "used"), JsonNumber(report, "budget"));
    // The batch is there, the last one too.
    for (const uint64_t back : {uint64_t{0}, kBatch}) {
      if (back > first) continue;
      const std::vector<uint64_t> known = KeyRange(first - back, kBatch);
      ASSERT_EQ(embank_lookup(table, known.data(), kBatch, EMBANK_MISSING_ZERO, rows.data(), 0,
                              outcomes.data()),
                EMBANK_OK);
      ASSERT_THAT(outcomes, Each(EMBANK_ROW_FOUND));
      ASSERT_EQ(rows.front(), static_cast<float>(first - back));
      ASSERT_EQ(rows.back(), static_cast<float>(first - back));
    }
  }
  const uint64_t rows_left = RowCount(table);
  EXPECT_GT(rows_left, 2500u);
  EXPECT_LT(rows_left, 3500u);
  EXPECT_EQ(NumberBehind(Metrics(store.get()), "embank_rows_forgotten_total{table=\"t\"} "),
            static_cast<double>(kKeys - rows_left));
  // The rows are like new ones: they were forgotten.
  const uint64_t gone = 0;
  EXPECT_EQ(embank_lookup(table, &gone, 1, EMBANK_MISSING_CREATE, rows.data(), 0, outcomes.data()),
            EMBANK_OK);
  EXPECT_EQ(outcomes[0], EMBANK_ROW_CREATED);
  EXPECT_EQ(RowCount(table), rows_left);
}

TEST(Policies, AnEstimateIsEnoughForATableThatForgets) {
  embank_store_options store_options = StoreOptions();
  store_options.worker_threads = 1;
  const embank_table_options options = OptionsBy(EMBANK_EVICT_LFU, EMBANK_FULL_FORGET);
  const uint64_t rows = 8000;
  char json[512];
  uint64_t needed = 0;
  ASSERT_EQ(embank_estimate(&store_options, &options, &rows, 1, json, sizeof json, &needed),
            EMBANK_OK);
  store_options.dram_bytes = static_cast<uint64_t>(JsonNumber(json, "dram_bytes"));
  const StorePtr store = OpenStore(store_options);
  embank_table* const table = CreateTable(store.get(), "t", options);
  const std::vector<uint64_t> keys = KeyRange(0, rows);
  std::vector<float> values(rows * kDim);
  EXPECT_EQ(
      embank_lookup(table, keys.data(), rows, EMBANK_MISSING_CREATE, values.data(), 0, nullptr),
      EMBANK_OK);
  EXPECT_EQ(RowCount(table), rows);
}

// With a path: all rows together take half of ssd_bytes, the newest ones.
TEST(Policies, ForgettingWithAPathKeepsTheNewestRows) {
  const ScratchDirectory scratch;
  const std::string path = scratch.path() + "/store";
  embank_store_options store_options = StoreOptions();
  store_options.path = path.c_str();
  store_options.flags = EMBANK_OPEN_CREATE;
  store_options.dram_bytes = kDramBytes;
  store_options.ssd_bytes = uint64_t{64} << 20;
  constexpr uint64_t kRows = 20'000;
  uint64_t rows_kept = 0;
  {
    const StorePtr store = OpenStore(store_options);
    embank_table* const table =
        CreateTable(store.get(), "t", OptionsBy(EMBANK_EVICT_LRU, EMBANK_FULL_FORGET));
    for (uint64_t key = 0; key < kRows; key += 500) {
      const std::vector<uint64_t> keys = KeyRange(key, 500);
      const std::vector<float> values(keys.size() * kDim, static_cast<float>(key));
      ASSERT_EQ(embank_upsert(table, keys.data(), keys.size(), values.data(), 0, nullptr),
                EMBANK_OK)
          << embank_last_error();
    }
    rows_kept = RowCount(table);
    EXPECT_LT(rows_kept, kRows);
    EXPECT_EQ(NumberBehind(Metrics(store.get()), "embank_rows_forgotten_total{table=\"t\"} "),
              static_cast<double>(kRows - rows_kept));
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  const StorePtr store = OpenStore(store_options);
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
  EXPECT_EQ(RowCount(table), rows_kept);
  const std::vector<uint64_t> keys = KeyRange(kRows - 500, 500);
  std::vector<float> values(keys.size() * kDim);
  ASSERT_EQ(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_ZERO, values.data(), 0,
                          nullptr),
            EMBANK_OK);
  EXPECT_EQ(values, std::vector<float>(values.size(), static_cast<float>(kRows - 500)));
}

// How many of 400 hot rows must be read from the log after a scan over others.
double HotRowsRead(embank::api::Store* store, embank::api::Table table) {
  constexpr uint64_t kHot = 400;
  const auto read = [&] {
    const std::string text = Metrics(store->get());
    return NumberBehind(text, "\nembank_log_read_rows_total ") +
           NumberBehind(text, "\nembank_log_buffered_reads_total ");
  };
  const std::vector<uint64_t> hot = KeyRange(0, kHot);
  std::vector<float> rows(kHot * kDim);
  for (int round = 0; round < 8; ++round) EXPECT_TRUE(table.Lookup(hot, rows).ok());
  for (uint64_t first = kHot; first < 5000; first += 100) {
    EXPECT_TRUE(table.Lookup(KeyRange(first, 100), rows).ok());
  }
  const double before = read();
  EXPECT_TRUE(table.Lookup(hot, rows).ok());
  return read() - before;
}

TEST(Policies, LfuWithAPathKeepsHotRowsAlsoAfterAReopen) {
  for (const int32_t eviction : {EMBANK_EVICT_LRU, EMBANK_EVICT_CLOCK, EMBANK_EVICT_LFU}) {
    const ScratchDirectory scratch;
    const std::string path = scratch.path() + "/store";
    embank::api::StoreOptions store_options;
    store_options.path = path.c_str();
    store_options.flags = EMBANK_OPEN_CREATE;
    store_options.dram_bytes = kDramBytes;
    for (const bool again : {false, true}) {
      auto store = embank::api::Store::Open(store_options);
      ASSERT_TRUE(store.ok()) << store.status().message;
      embank::api::TableOptions options;
      options.dim = kDim;
      options.eviction = eviction;
      auto table = again ? store->OpenTable("t") : store->CreateTable("t", options);
      ASSERT_TRUE(table.ok()) << table.status().message;
      const double read = HotRowsRead(&*store, *table);
      if (eviction == EMBANK_EVICT_LFU) {
        EXPECT_LT(read, 20) << again;
      } else {
        EXPECT_GT(read, 200) << again;
      }
      ASSERT_TRUE(store->Checkpoint().ok());
    }
  }
}

}  // namespace
}  // namespace embank::test::policies_test
