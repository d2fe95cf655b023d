// Rows with their states and heats: embank_scan_next_full and embank_upsert_full.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/embank.h"
#include "bindings/c/handles.h"
#include "tests/support/c_api.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"
#include "tests/support/scratch_directory.h"
#include "tests/support/small_log.h"

namespace embank::test::whole_rows_test {
namespace {

constexpr uint32_t kDim = 5;
constexpr uint64_t kKeys = 3000;

embank_table_options AdamOptions(uint32_t dim) {
  embank_table_options options = TableOptions(dim, EMBANK_OPT_ADAM);
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_b = 1.0f;
  return options;
}

// A store on disk whose memory holds half of `rows` rows of 4 KiB.
StorePtr OpenLargerThanMemory(const std::string& path) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = uint64_t{16} << 20;
  options.worker_threads = 2;
  StoreEnvironment environment;
  environment.log = SmallLog();
  embank_store* opened = nullptr;
  const Status status = OpenStoreIn(&options, std::move(environment), &opened);
  EXPECT_TRUE(status.ok()) << status;
  return StorePtr(opened);
}

std::vector<uint32_t> HeatsOf(embank_table* table, const std::vector<uint64_t>& keys) {
  std::vector<uint32_t> heats(keys.size());
  EXPECT_EQ(embank_get_heat(table, keys.data(), keys.size(), heats.data(), nullptr), EMBANK_OK)
      << embank_last_error();
  return heats;
}

// Copies a table by scans and upserts of whole rows.
void CopyTable(embank_table* from, embank_table* to, uint64_t row_bytes, uint64_t state_floats,
               uint64_t cap) {
  const ScanPtr scan = OpenScan(from);
  std::vector<uint64_t> keys(cap);
  std::vector<uint32_t> heats(cap);
  RowBuffer rows(cap, row_bytes);
  RowBuffer states(cap, state_floats * sizeof(float));
  for (uint64_t n = 1; n > 0;) {
    ASSERT_EQ(embank_scan_next_full(scan.get(), keys.data(), rows.data(), 0, states.floats(), 0,
                                    heats.data(), cap, &n),
              EMBANK_OK)
        << embank_last_error();
    ASSERT_EQ(embank_upsert_full(to, keys.data(), n, rows.data(), 0, states.floats(), 0,
                                 heats.data(), nullptr),
              EMBANK_OK)
        << embank_last_error();
  }
}

TEST(WholeRows, MoveATableWithStatesAndHeats) {
  const embank_store_options options = StoreOptions();
  const StorePtr from = OpenStore(options);
  const StorePtr to = OpenStore(options);
  Twin twin = CreateTwin(from.get(), options.seed, "t", AdamOptions(kDim));
  Random random(1);
  for (int round = 0; round < 5; ++round) {
    std::vector<uint64_t> keys(kKeys);
    for (uint64_t& key : keys) key = random.Below(kKeys);
    TrainTwin(&twin, keys, kDim, &random);
  }
  embank_table* const copy = CreateTable(to.get(), "t", AdamOptions(kDim));
  ASSERT_NO_FATAL_FAILURE(
      CopyTable(twin.table, copy, kDim * sizeof(float), twin.oracle.state_floats(), 700));
  EXPECT_EQ(Difference(copy, twin.oracle), "");
  EXPECT_EQ(Difference(twin.table, twin.oracle), "") << "the scan changed something";
}

// On disk the heat of a row out of memory is approximate, but both calls tell the same.
TEST(WholeRows, MoveATableThatIsLargerThanMemory) {
  const ScratchDirectory scratch;
  constexpr uint32_t kWideDim = 400;
  constexpr uint64_t kWideRows = 5000;
  const StorePtr from = OpenLargerThanMemory(scratch.path() + "/from");
  const StorePtr to = OpenLargerThanMemory(scratch.path() + "/to");
  const embank_table_options options = AdamOptions(kWideDim);
  Twin twin = CreateTwin(from.get(), StoreOptions().seed, "t", options);
  Random random(2);
  for (uint64_t first = 0; first < kWideRows; first += 500) {
    TrainTwin(&twin, KeyRange(first, 500), kWideDim, &random);
    TrainTwin(&twin, KeyRange(0, 100), kWideDim, &random);
  }
  embank_table_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(embank_table_get_info(twin.table, &info), EMBANK_OK);
  ASSERT_GT(info.rows_ssd, kWideRows / 4);
  embank_table* const copy = CreateTable(to.get(), "t", options);
  const std::vector<uint64_t> keys = KeyRange(0, kWideRows);
  const std::vector<uint32_t> heats = HeatsOf(twin.table, keys);
  EXPECT_GE(*std::max_element(heats.begin(), heats.end()), 10u);
  for (const uint64_t cap : {100, 4000}) {
    ASSERT_NO_FATAL_FAILURE(
        CopyTable(twin.table, copy, kWideDim * sizeof(float), twin.oracle.state_floats(), cap));
    EXPECT_EQ(DifferenceButHeat(copy, twin.oracle), "") << "cap " << cap;
    EXPECT_EQ(HeatsOf(copy, keys), heats) << "cap " << cap;
  }
}

class UpsertFull : public testing::Test {
 protected:
  void Put(float value, const float* state, const uint32_t* heat) {
    const std::vector<float> row(kDim, value);
    ASSERT_EQ(embank_upsert_full(twin_.table, &key_, 1, row.data(), 0, state, 0, heat, nullptr),
              EMBANK_OK)
        << embank_last_error();
    twin_.oracle.UpsertFull(&key_, 1, row.data(), 0, state, 0, heat, nullptr);
    EXPECT_EQ(Difference(twin_.table, twin_.oracle), "");
  }
  void LookUp() {
    std::vector<float> row(kDim);
    EXPECT_EQ(embank_lookup(twin_.table, &key_, 1, EMBANK_MISSING_ZERO, row.data(), 0, nullptr),
              EMBANK_OK);
    twin_.oracle.Lookup(&key_, 1, EMBANK_MISSING_ZERO, row.data(), 0, nullptr);
  }
  uint32_t Heat() { return HeatsOf(twin_.table, {key_})[0]; }

  const uint64_t key_ = ~uint64_t{0};
  const StorePtr store_ = OpenStore();
  Twin twin_ = CreateTwin(store_.get(), StoreOptions().seed, "t", AdamOptions(kDim));
};

TEST_F(UpsertFull, KeepsHeatAndResetsStateWithoutThem) {
  std::vector<float> state(2 * kDim + 1, 3.0f);
  const uint32_t heat = 41;
  Put(1.0f, state.data(), &heat);
  EXPECT_EQ(Heat(), 41u);
  Put(2.0f, nullptr, nullptr);
  EXPECT_EQ(Heat(), 41u);
  LookUp();
  EXPECT_EQ(Heat(), 42u);
  const uint32_t none = 0;
  Put(3.0f, state.data(), &none);
  EXPECT_EQ(Heat(), 0u);
  const uint32_t most = 1048575;
  Put(4.0f, nullptr, &most);
  LookUp();
  EXPECT_EQ(Heat(), most);
}

TEST_F(UpsertFull, WithoutThemMakesANewRowCold) {
  Put(1.0f, nullptr, nullptr);
  EXPECT_EQ(Heat(), 0u);
}

TEST_F(UpsertFull, TheLastPositionOfAKeyWinsAsAWhole) {
  const uint64_t keys[3] = {7, 8, 7};
  const std::vector<float> rows = {1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 3, 3, 3, 3, 3};
  std::vector<float> states(3 * (2 * kDim + 1));
  for (size_t i = 0; i < states.size(); ++i) states[i] = static_cast<float>(i / (2 * kDim + 1));
  const uint32_t heats[3] = {10, 20, 30};
  uint8_t outcomes[3];
  uint8_t expected[3];
  ASSERT_EQ(
      embank_upsert_full(twin_.table, keys, 3, rows.data(), 0, states.data(), 0, heats, outcomes),
      EMBANK_OK);
  twin_.oracle.UpsertFull(keys, 3, rows.data(), 0, states.data(), 0, heats, expected);
  EXPECT_TRUE(std::equal(outcomes, outcomes + 3, expected));
  EXPECT_EQ(Difference(twin_.table, twin_.oracle), "");
  EXPECT_EQ(HeatsOf(twin_.table, {7, 8}), (std::vector<uint32_t>{30, 20}));
}

// The heat that a row had in the log, and that of an erased row, do not come back.
TEST(WholeRows, AGivenHeatReplacesThatOfTheLog) {
  const ScratchDirectory scratch;
  constexpr uint32_t kWideDim = 1000;
  constexpr uint64_t kWideRows = 6000;
  const StorePtr store = OpenLargerThanMemory(scratch.path() + "/store");
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kWideDim));
  const std::vector<float> rows(500 * kWideDim, 1.0f);
  const std::vector<uint64_t> keys = KeyRange(0, kWideRows);
  for (const uint32_t given : {1000u, 3u, 0u}) {
    for (uint64_t first = 0; first < kWideRows; first += 500) {
      if (given == 0) {
        ASSERT_EQ(embank_erase(table, keys.data() + first, 500, nullptr), EMBANK_OK);
      }
      const std::vector<uint32_t> heats(500, given);
      ASSERT_EQ(embank_upsert_full(table, keys.data() + first, 500, rows.data(), 0, nullptr, 0,
                                   heats.data(), nullptr),
                EMBANK_OK)
          << embank_last_error();
    }
    for (const uint32_t heat : HeatsOf(table, keys)) ASSERT_EQ(heat, given);
    // Lookups promote rows, which leave again.
    std::vector<float> row(kWideDim);
    for (uint64_t key = 0; key < kWideRows; key += 3) {
      ASSERT_EQ(embank_lookup(table, &key, 1, EMBANK_MISSING_ZERO, row.data(), 0, nullptr),
                EMBANK_OK);
    }
  }
}

// ---- beside threads that change the rows ----

// Rows whose values, state and heat are all one number. `has_heat`: nothing else changes heat.
void ScanBesideWriters(embank_store* store, embank_table* table, uint32_t dim, uint64_t rows,
                       uint64_t rounds, bool has_heat) {
  std::atomic<bool> ends{true};  // until the first writer has made all rows
  const auto write = [&](uint64_t seed) {
    Random random(seed);
    constexpr uint64_t kBatch = 64;
    std::vector<uint64_t> keys(kBatch);
    std::vector<uint32_t> heats(kBatch);
    std::vector<float> values(kBatch * dim);
    for (bool is_first = true; is_first || !ends.load();) {
      for (uint64_t first = 0; first < rows && (is_first || !ends.load()); first += kBatch) {
        for (uint64_t i = 0; i < kBatch; ++i) {
          keys[i] = is_first ? (first + i) % rows : random.Below(rows);
          heats[i] = static_cast<uint32_t>(random.Below(1 << 20));
          std::fill_n(values.begin() + static_cast<int64_t>(i * dim), dim,
                      static_cast<float>(heats[i]));
        }
        if (embank_upsert_full(table, keys.data(), kBatch, values.data(), 0, values.data(), 0,
                               heats.data(), nullptr) != EMBANK_OK) {
          ADD_FAILURE() << embank_last_error();
          return;
        }
      }
      is_first = false;
    }
  };
  write(99);
  if (testing::Test::HasFailure()) return;
  ends = false;
  std::thread first([&] { write(1); });
  std::thread second([&] { write(2); });
  std::vector<uint64_t> keys(rows);
  std::vector<uint32_t> heats(rows);
  std::vector<float> values(rows * dim);
  std::vector<float> states(rows * dim);
  uint64_t torn = 0;
  for (uint64_t round = 0; round < rounds; ++round) {
    const ScanPtr scan = OpenScan(table);
    const uint64_t cap = round % 2 == 0 ? rows : 50;
    uint64_t shown = 0;
    for (uint64_t n = 1; n > 0; shown += n) {
      ASSERT_EQ(embank_scan_next_full(scan.get(), keys.data(), values.data(), 0, states.data(), 0,
                                      has_heat ? heats.data() : nullptr, cap, &n),
                EMBANK_OK)
          << embank_last_error();
      for (uint64_t i = 0; i < n; ++i) {
        const float value = values[i * dim];
        const auto is_other = [&](float other) { return other != value; };
        torn += std::any_of(&values[i * dim], &values[i * dim] + dim, is_other) ? 1 : 0;
        torn += std::any_of(&states[i * dim], &states[i * dim] + dim, is_other) ? 1 : 0;
        torn += has_heat && is_other(static_cast<float>(heats[i])) ? 1 : 0;
      }
    }
    EXPECT_EQ(shown, rows);
    if (!has_heat) {
      EXPECT_EQ(embank_flush_hot(store), EMBANK_OK);
    }
  }
  ends = true;
  first.join();
  second.join();
  EXPECT_EQ(torn, 0u);
}

TEST(WholeRowsBesideWriters, AreOfOneMomentInMemory) {
  embank_store_options options = StoreOptions();
  options.worker_threads = 2;
  const StorePtr store = OpenStore(options);
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(256, EMBANK_OPT_ADAGRAD));
  ScanBesideWriters(store.get(), table, 256, 64, 300, true);
}

TEST(WholeRowsBesideWriters, AreOfOneMomentOnDisk) {
  const ScratchDirectory scratch;
  const StorePtr store = OpenLargerThanMemory(scratch.path() + "/store");
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(400, EMBANK_OPT_ADAGRAD));
  ScanBesideWriters(store.get(), table, 400, 5120, 8, true);
}

TEST(WholeRowsBesideWriters, HaveStatesOfTheirMomentInDeviceMemory) {
  embank_store_options options = StoreOptions();
  options.worker_threads = 2;
  options.hbm_bytes = uint64_t{1} << 20;
  options.flush_iters = UINT32_MAX;
  const StorePtr store = OpenStore(options);
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(64, EMBANK_OPT_ADAGRAD));
  ScanBesideWriters(store.get(), table, 64, 4096, 8, false);
  embank_table_info info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(embank_table_get_info(table, &info), EMBANK_OK);
  EXPECT_GT(info.rows_hbm, 100u);
}

// ---- what a scan may want ----

TEST(ScanFull, CountsRowsWithoutAnyOutput) {
  const StorePtr store = OpenStore();
  Twin twin = CreateTwin(store.get(), StoreOptions().seed, "t", AdamOptions(kDim));
  Random random(3);
  TrainTwin(&twin, KeyRange(0, kKeys), kDim, &random);
  const ScanPtr scan = OpenScan(twin.table);
  uint64_t rows = 0;
  for (uint64_t n = 1; n > 0; rows += n) {
    ASSERT_EQ(
        embank_scan_next_full(scan.get(), nullptr, nullptr, 0, nullptr, 0, nullptr, UINT32_MAX, &n),
        EMBANK_OK)
        << embank_last_error();
  }
  EXPECT_EQ(rows, kKeys);
}

// A piece that was read for vectors alone has no states: the rest of it is looked up.
TEST(ScanFull, MayFollowAndPrecedePlainCallsOnDisk) {
  const ScratchDirectory scratch;
  constexpr uint32_t kWideDim = 500;
  constexpr uint64_t kWideRows = 5000;
  const StorePtr store = OpenLargerThanMemory(scratch.path() + "/store");
  Twin twin = CreateTwin(store.get(), StoreOptions().seed, "t", AdamOptions(kWideDim));
  Random random(4);
  for (uint64_t first = 0; first < kWideRows; first += 500) {
    TrainTwin(&twin, KeyRange(first, 500), kWideDim, &random);
  }
  constexpr uint64_t kCap = 37;
  const uint64_t floats = twin.oracle.state_floats();
  std::vector<uint64_t> keys(kCap);
  std::vector<uint32_t> heats(kCap);
  RowBuffer rows(kCap, kWideDim * sizeof(float));
  RowBuffer states(kCap, floats * sizeof(float));
  std::vector<bool> seen(kWideRows);
  const ScanPtr scan = OpenScan(twin.table);
  uint64_t call = 0;
  for (uint64_t n = 1; n > 0; ++call) {
    const bool is_full = call % 3 == 2;
    ASSERT_EQ(is_full ? embank_scan_next_full(scan.get(), keys.data(), rows.data(), 0,
                                              states.floats(), 0, heats.data(), kCap, &n)
                      : embank_scan_next(scan.get(), keys.data(), rows.data(), 0, kCap, &n),
              EMBANK_OK)
        << embank_last_error();
    for (uint64_t i = 0; i < n; ++i) {
      ASSERT_FALSE(seen[keys[i]]) << keys[i];
      seen[keys[i]] = true;
      const oracle::Row& row = *twin.oracle.Find(keys[i]);
      ASSERT_TRUE(SameValues(rows.row(i), row.values.data(), kWideDim, EMBANK_F32)) << keys[i];
      if (!is_full) continue;
      const auto* const state = reinterpret_cast<const uint8_t*>(row.state.data());
      ASSERT_TRUE(SameValues(states.row(i), state, floats, EMBANK_F32)) << keys[i];
    }
  }
  EXPECT_GT(call, kWideRows / kCap);
  EXPECT_EQ(std::count(seen.begin(), seen.end(), true), static_cast<int64_t>(kWideRows));
}

}  // namespace
}  // namespace embank::test::whole_rows_test
