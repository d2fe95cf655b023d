// Device memory through the C API, on the host twin.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/handles.h"
#include "store/placement/heat_clock.h"
#include "tests/support/c_api.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::hbm_c_api_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr uint32_t kHotDim = 64;
constexpr uint64_t kKeys = 2000;

embank_store_options HotOptions() {
  embank_store_options options = StoreOptions();
  options.hbm_bytes = uint64_t{128} << 10;  // 512 rows of 256 bytes
  options.warmup_iters = 2;
  options.flush_iters = UINT32_MAX;
  return options;
}

// The HBM rows are renewed in the background, and on one thread epochs end where they do each time.
embank_store_options OptionsOfFlushes(uint32_t flush_iters) {
  embank_store_options options = HotOptions();
  options.flush_iters = flush_iters;
  options.worker_threads = 1;
  return options;
}

std::vector<uint64_t> Keys(uint64_t first, uint64_t n) {
  std::vector<uint64_t> keys(n);
  for (uint64_t i = 0; i < n; ++i) keys[i] = first + i;
  return keys;
}

uint64_t RowsInHbm(embank_table* table) {
  embank_table_info info = {};
  info.struct_size = sizeof info;
  EXPECT_EQ(embank_table_get_info(table, &info), EMBANK_OK);
  EXPECT_EQ(info.rows, info.rows_hbm + info.rows_dram + info.rows_pmem + info.rows_ssd);
  return info.rows_hbm;
}

// The counts of HBM rows in the memory report of a store that has flushed once.
void ExpectReport(embank_store* store) {
  uint64_t needed = 0;
  std::string json(4096, '\0');
  ASSERT_EQ(embank_memory_report(store, json.data(), json.size(), &needed), EMBANK_OK);
  EXPECT_THAT(json, HasSubstr("\"hbm\": {\"budget\": 131072, \"rows\": 131072, \"device\": "
                              "\"twin\", \"lookups\": 512, "));
  EXPECT_THAT(json, HasSubstr("\"arrived\": 512, \"left\": 0, \"written_back\": 0, "
                              "\"flushes\": 1, \"early_epochs\": 0, \"flush_seconds\": "));
}

void LookUpAll(embank_table* table, const std::vector<uint64_t>& keys) {
  std::vector<float> rows(keys.size() * kHotDim);
  ASSERT_EQ(embank_lookup(table, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows.data(), 0,
                          nullptr),
            EMBANK_OK)
      << embank_last_error();
}

TEST(HbmCApi, AFlushFillsDeviceMemoryWithTheHottestRows) {
  const StorePtr store = OpenStore(HotOptions());
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kHotDim));
  LookUpAll(table, Keys(1, kKeys));
  EXPECT_EQ(RowsInHbm(table), 0u);
  for (int i = 0; i < 4; ++i) LookUpAll(table, Keys(501, 512));
  ASSERT_EQ(embank_flush_hot(store.get()), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(RowsInHbm(table), 512u);
  LookUpAll(table, Keys(501, 512));
  LookUpAll(table, Keys(1, 100));
  const std::string metrics = Metrics(store.get());
  EXPECT_THAT(metrics, HasSubstr("embank_device_info{device=\"twin\"} 1"));
  EXPECT_THAT(metrics, HasSubstr("embank_hot_lookups_total{table=\"t\"} 512"));
  EXPECT_THAT(metrics, HasSubstr("embank_hot_arrived_rows_total 512"));
  EXPECT_THAT(metrics, HasSubstr("embank_hot_flushes_total 1"));
  EXPECT_THAT(metrics, HasSubstr("tier=\"hbm\",kind=\"rows\"} 131072"));
  EXPECT_THAT(metrics, HasSubstr("embank_hot_flush_seconds_total "));
  EXPECT_THAT(metrics, HasSubstr("embank_heat_epochs_total 0"));
  ExpectReport(store.get());
  embank_table_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(embank_table_get_info(table, &info), EMBANK_OK);
  EXPECT_EQ(info.lookups_hbm, 512u);
  EXPECT_THAT(metrics, HasSubstr(StrCat("op=\"lookup\",outcome=\"found\"} ",
                                        4 * 512 + info.lookups_hbm + 100)));
}

TEST(HbmCApi, TheHbmRowsAreRenewedEveryFewBatches) {
  const StorePtr store = OpenStore(OptionsOfFlushes(3));
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kHotDim));
  // The flush is work in the background: it comes some time after the batch that is its turn.
  LookUpAll(table, Keys(1, kKeys));
  for (int i = 0; i < 10'000 && RowsInHbm(table) == 0; ++i) LookUpAll(table, Keys(1, 100));
  EXPECT_GT(RowsInHbm(table), 0u);
}

std::vector<uint32_t> HeatOf(embank_table* table, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> heat(keys.size());
  EXPECT_EQ(embank_get_heat(table, keys.data(), keys.size(), heat.data(), nullptr), EMBANK_OK);
  return heat;
}

uint64_t HotLookups(embank_table* table) {
  return TableOfHandle(table)->counters().payload_lookups;
}

// As in the warm-up of the printed algorithm: each id counts, and none is in HBM.
TEST(HbmCApi, AWarmUpHasNoHitsAndCountsEachLookup) {
  constexpr uint32_t kWarmUp = 25;
  embank_store_options options = OptionsOfFlushes(1);
  options.warmup_iters = kWarmUp;
  const StorePtr store = OpenStore(options);
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kHotDim));
  const std::vector<uint64_t> all = Keys(1, kKeys);
  std::vector<uint32_t> expected(kKeys);
  Random random(7);
  // The creating lookup of a row counts like each later one.
  const auto look_up_some = [&] {
    std::vector<uint64_t> keys(1 + random.Below(500));
    for (uint64_t& key : keys) {
      key = 1 + random.Below(1 + random.Below(kKeys));
      ++expected[key - 1];
    }
    LookUpAll(table, keys);
  };
  look_up_some();
  for (uint32_t batch = 1; batch < kWarmUp; ++batch) {
    EXPECT_EQ(RowsInHbm(table), 0u) << "before batch " << batch;
    look_up_some();
    EXPECT_EQ(HotLookups(table), 0u) << "in batch " << batch;
    EXPECT_EQ(HeatOf(table, all), expected) << "behind batch " << batch;
  }
  // The flush is work in the background, and changes no heat.
  for (int i = 0; i < 10'000 && HotLookups(table) == 0; ++i) look_up_some();
  EXPECT_GT(HotLookups(table), 0u);
  if (TableOfHandle(table)->store().heat_clock->epochs() == 0) {
    EXPECT_EQ(HeatOf(table, all), expected);
  }
}

// A table of many batches has gone, and another one has few.
TEST(HbmCApi, TheHbmRowsAreRenewedForTheTableThatIsBusyNow) {
  const StorePtr store = OpenStore(OptionsOfFlushes(3));
  embank_table* const former = CreateTable(store.get(), "former", TableOptions(kHotDim));
  for (int i = 0; i < 30'000; ++i) LookUpAll(former, Keys(1, 1));
  ASSERT_EQ(embank_table_drop(store.get(), "former"), EMBANK_OK) << embank_last_error();
  embank_table* const table = CreateTable(store.get(), "now", TableOptions(kHotDim));
  const auto flushes = [&] { return MetricOf(store.get(), "embank_hot_flushes_total"); };
  // One more may have been due already.
  const double before = flushes() + 1;
  for (int i = 0; i < 10'000 && flushes() <= before; ++i) LookUpAll(table, Keys(1, 100));
  EXPECT_GT(flushes(), before);
}

TEST(HbmCApi, ADriftEndsEpochsEarlyAndTheHbmRowsFollow) {
  const StorePtr store = OpenStore(OptionsOfFlushes(10));
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kHotDim));
  LookUpAll(table, Keys(1, kKeys));
  const auto hits = [&] { return MetricOf(store.get(), "embank_hot_lookups_total{table=\"t\"}"); };
  // Batches of 2,560 positions in which 512 keys are named five times.
  const auto look_up = [&](uint64_t first) {
    std::vector<uint64_t> keys;
    for (int i = 0; i < 5; ++i) {
      for (const uint64_t key : Keys(first, 512)) keys.push_back(key);
    }
    const double before = hits();
    LookUpAll(table, keys);
    return hits() - before;
  };
  for (int i = 0; i < 10'000 && look_up(1) < 2560; ++i) {
  }
  for (int i = 0; i < 200; ++i) EXPECT_EQ(look_up(1), 2560u);
  EXPECT_EQ(MetricOf(store.get(), "embank_hot_early_epochs_total"), 0u);
  look_up(1001);
  EXPECT_EQ(MetricOf(store.get(), "embank_hot_early_epochs_total"), 6u);
  // Without a drift that is seen it would take as many batches as there were before.
  int batches = 0;
  while (batches < 10'000 && look_up(1001) < 2560) ++batches;
  EXPECT_EQ(look_up(1001), 2560u);
  std::vector<uint32_t> heat(1);
  const uint64_t key = 1;
  ASSERT_EQ(embank_get_heat(table, &key, 1, heat.data(), nullptr), EMBANK_OK);
  EXPECT_LT(heat[0], 200u * 5u / 32u) << "the old rows keep a 64th of their heat";
}

TEST(HbmCApi, HitsByUniqueIdsAreCountedInASample) {
  const StorePtr store = OpenStore(HotOptions());
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kHotDim));
  std::vector<uint64_t> keys = Keys(1, 1000);
  LookUpAll(table, keys);  // the first batch is in the sample
  LookUpAll(table, Keys(1, 512));
  ASSERT_EQ(embank_flush_hot(store.get()), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(MetricOf(store.get(), "embank_hot_sampled_keys_total"), 1000u);
  EXPECT_EQ(MetricOf(store.get(), "embank_hot_sampled_hits_total"), 0u);
  keys.insert(keys.end(), keys.begin(), keys.end());
  for (int i = 0; i < 63; ++i) LookUpAll(table, keys);
  EXPECT_EQ(MetricOf(store.get(), "embank_hot_sampled_keys_total"), 2000u);
  EXPECT_EQ(MetricOf(store.get(), "embank_hot_sampled_hits_total"), 512u);
}

// A row that was only in the log is in DRAM afterwards.
TEST(HbmCApi, HitsAreCountedInTheTierWhereTheRowWas) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/store";
  embank_store_options options = HotOptions();
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  {
    const StorePtr store = OpenStore(options);
    LookUpAll(CreateTable(store.get(), "t", TableOptions(kHotDim)), Keys(1, kKeys));
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  const StorePtr store = OpenStore(options);
  embank_table* table = nullptr;
  ASSERT_EQ(embank_table_open(store.get(), "t", &table), EMBANK_OK);
  void* rows = nullptr;
  ASSERT_EQ(embank_device_allocate(store.get(), kKeys * kHotDim * sizeof(float), &rows), EMBANK_OK);
  const auto look_up = [&](const std::vector<uint64_t>& keys, bool to_device) {
    if (!to_device) return LookUpAll(table, keys);
    ASSERT_EQ(embank_lookup_device(table, keys.data(), keys.size(), EMBANK_MISSING_CREATE, rows, 0,
                                   nullptr, nullptr),
              EMBANK_OK);
  };
  const auto expect = [&](double ssd, double dram, double hbm) {
    const auto hits = [&](const std::string& tier) {
      return MetricOf(store.get(), "embank_lookup_hits_total{table=\"t\",tier=\"" + tier + "\"}");
    };
    EXPECT_EQ(hits("ssd"), ssd);
    EXPECT_EQ(hits("dram"), dram);
    EXPECT_EQ(hits("hbm"), hbm);
    EXPECT_EQ(hits("pmem"), 0);
  };
  look_up(Keys(1, 512), false);
  expect(512, 0, 0);
  look_up(Keys(1, 812), true);
  expect(812, 512, 0);
  for (int i = 0; i < 3; ++i) look_up(Keys(1, 512), i == 0);
  expect(812, 4 * 512, 0);
  ASSERT_EQ(embank_flush_hot(store.get()), EMBANK_OK) << embank_last_error();
  ASSERT_EQ(RowsInHbm(table), 512u);
  look_up(Keys(1, 600), false);
  expect(812, 4 * 512 + 88, 512);
  look_up(Keys(500, 1000), true);
  expect(812 + 687, 4 * 512 + 88 + 300, 512 + 13);
}

TEST(HbmCApi, AFlushNeedsDeviceMemory) {
  const StorePtr store = OpenStore(StoreOptions());
  EXPECT_EQ(embank_flush_hot(store.get()), EMBANK_FAILED_PRECONDITION);
  EXPECT_THAT(embank_last_error(), HasSubstr("hbm_bytes"));
  EXPECT_EQ(embank_flush_hot(nullptr), EMBANK_INVALID_ARGUMENT);
}

// This build, or this machine, has no such device.
TEST(HbmCApi, ADeviceThatIsNotThereIsNamed) {
  embank_store_options options = HotOptions();
  options.cuda_device = 99;
  embank_store* store = nullptr;
  const embank_status status = embank_store_open(&options, &store);
  EXPECT_TRUE(status == EMBANK_UNIMPLEMENTED || status == EMBANK_NOT_FOUND ||
              status == EMBANK_UNAVAILABLE)
      << embank_status_name(status);
  EXPECT_EQ(store, nullptr);
  EXPECT_STRNE(embank_last_error(), "");
}

// The message of an open on a device with so much memory, which is too little.
std::string RefusalOf(uint64_t device_bytes) {
  const embank_store_options options = HotOptions();
  StoreEnvironment environment;
  environment.device = MakeTwin({.memory_bytes = device_bytes});
  embank_store* store = nullptr;
  const Status opened = OpenStoreIn(&options, std::move(environment), &store);
  EXPECT_EQ(opened.code(), StatusCode::kResourceExhausted) << opened;
  EXPECT_EQ(store, nullptr);
  return std::string(opened.message());
}

TEST(HbmCApi, ADeviceWithTooLittleMemoryIsToldWithBothNumbers) {
  EXPECT_THAT(RefusalOf(100'000),
              AllOf(HasSubstr("hbm_bytes is 131072"), HasSubstr("has 100000 bytes free")));
  // The rows fit, and the buffer for their way does not.
  EXPECT_THAT(RefusalOf(131'072 + 1000),
              AllOf(HasSubstr("hbm_bytes is 131072"), HasSubstr("has 132072 bytes free")));
}

TEST(HbmCApi, AnEstimateHasItsHostMemory) {
  const embank_table_options table = TableOptions(kHotDim);
  const uint64_t rows = kKeys;
  const auto estimate = [&](uint64_t hbm_bytes) {
    embank_store_options options = StoreOptions();
    options.hbm_bytes = hbm_bytes;
    std::string json(4096, '\0');
    uint64_t needed = 0;
    EXPECT_EQ(embank_estimate(&options, &table, &rows, 1, json.data(), json.size(), &needed),
              EMBANK_OK);
    return std::stoull(json.substr(json.find(": ") + 2));
  };
  EXPECT_GT(estimate(uint64_t{1} << 20), estimate(0) + 3 * (uint64_t{256} << 10));
  embank_store_options options = HotOptions();
  options.dram_bytes = estimate(options.hbm_bytes);
  const StorePtr store = OpenStore(options);
  embank_table* const made = CreateTable(store.get(), "t", table);
  LookUpAll(made, Keys(1, kKeys));
  ASSERT_EQ(embank_flush_hot(store.get()), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(RowsInHbm(made), 512u);
}

}  // namespace
}  // namespace embank::test::hbm_c_api_test
