// The hard budget: a store fills it until it refuses, never passes it, and erased rows free it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle.h"
#include "tests/support/row_buffer.h"

namespace embank::test::budget_test {
namespace {

constexpr uint64_t kMiB = 1 << 20;
constexpr uint64_t kBudgetBytesMin = 16 * kMiB;
constexpr uint64_t kBatch = 512;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kResidentMemoryIsOurs = false;  // shadow memory is resident too
#else
constexpr bool kResidentMemoryIsOurs = true;
#endif

uint64_t ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  unsigned long long size = 0;
  unsigned long long resident = 0;
  EXPECT_EQ(std::fscanf(file, "%llu %llu", &size, &resident), 2);
  std::fclose(file);
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

struct Bytes {
  double budget, used, fixed, index, rows, state, slack;
};

Bytes Report(embank_store* store) {
  std::string json = MemoryReport(store);
  return {JsonNumber(json, "budget"), JsonNumber(json, "used"), JsonNumber(json, "fixed"),
          JsonNumber(json, "index"),  JsonNumber(json, "rows"), JsonNumber(json, "state"),
          JsonNumber(json, "slack")};
}

void ExpectWithinBudget(embank_store* store) {
  Bytes bytes = Report(store);
  ASSERT_GT(bytes.used, 0);
  ASSERT_LE(bytes.used, bytes.budget);
  ASSERT_EQ(bytes.used, bytes.fixed + bytes.index + bytes.rows + bytes.state + bytes.slack);
  for (double part : {bytes.fixed, bytes.index, bytes.rows, bytes.state, bytes.slack}) {
    ASSERT_GE(part, 0);
  }
}

StorePtr OpenWithBudget(uint64_t dram_bytes, uint32_t worker_threads = 1) {
  embank_store_options options = StoreOptions();
  options.dram_bytes = dram_bytes;
  options.worker_threads = worker_threads;
  return OpenStore(options);
}

Twin TableOf(embank_store* store, const std::string& name, uint32_t dim, int32_t optimizer) {
  embank_table_options options = TableOptions(dim, optimizer);
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_b = 1.0f;
  options.initial_accumulator = 0.25f;
  return CreateTwin(store, StoreOptions().seed, name, options);
}

// One creating lookup, answer against answer; how many keys were refused.
uint64_t LookUpKeys(Twin* twin, const std::vector<uint64_t>& keys) {
  RowBuffer actual(keys.size(), twin->oracle.row_bytes());
  RowBuffer expected = actual;
  std::vector<uint8_t> outcomes(keys.size());
  std::vector<uint8_t> right(keys.size());
  EXPECT_EQ(embank_lookup(twin->table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                          actual.data(), 0, outcomes.data()),
            EMBANK_OK);
  twin->oracle.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, expected.data(), 0,
                      right.data(), outcomes.data());
  EXPECT_EQ(outcomes, right);
  EXPECT_TRUE(actual == expected) << "a found or refused key answered with other values";
  return static_cast<uint64_t>(std::count(outcomes.begin(), outcomes.end(), EMBANK_ROW_REFUSED));
}

// Creates keys from `first` on until a whole batch is refused; the first key that was not tried.
uint64_t FillUntilRefused(embank_store* store, Twin* twin, uint64_t first) {
  for (uint64_t key = first;; key += kBatch) {
    uint64_t refused = LookUpKeys(twin, KeyRange(key, kBatch));
    ExpectWithinBudget(store);
    if (refused == kBatch || testing::Test::HasFailure()) return key + kBatch;
  }
}

void EraseAll(Twin* twin) {
  std::vector<uint64_t> keys;
  for (const auto& [key, row] : twin->oracle.rows()) keys.push_back(key);
  EXPECT_EQ(embank_erase(twin->table, keys.data(), keys.size(), nullptr), EMBANK_OK);
  twin->oracle.Erase(keys.data(), keys.size(), nullptr);
}

struct Shape {
  uint64_t budget_bytes;
  uint32_t dim;
  int32_t optimizer;
  double share_min;  // of the budget that rows and states must reach
};

class FillTest : public testing::TestWithParam<Shape> {};

// Small rows pay for their index (up to 16 bytes at the working load, more after a growth) and at
// 16 MiB the fixed part and the last page weigh most.
INSTANTIATE_TEST_SUITE_P(Of, FillTest,
                         testing::Values(Shape{kBudgetBytesMin, 1, EMBANK_OPT_NONE, 0.30},
                                         Shape{kBudgetBytesMin, 64, EMBANK_OPT_ADAGRAD, 0.70},
                                         Shape{kBudgetBytesMin, 4096, EMBANK_OPT_ADAM, 0.70},
                                         Shape{kBudgetBytesMin + 12345, 17, EMBANK_OPT_FTRL, 0.6},
                                         Shape{64 * kMiB, 128, EMBANK_OPT_SGD, 0.85},
                                         Shape{64 * kMiB, 1000, EMBANK_OPT_ROWWISE_ADAGRAD, 0.9}));

TEST_P(FillTest, RefusedKeysAreAbsentAndAllOthersExact) {
  const Shape& shape = GetParam();
  StorePtr store = OpenWithBudget(shape.budget_bytes);
  Twin twin = TableOf(store.get(), "t", shape.dim, shape.optimizer);
  uint64_t end = FillUntilRefused(store.get(), &twin, 0);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  Bytes bytes = Report(store.get());
  std::printf("  dim %u: %zu rows, rows and states %.3f, index %.3f of the budget\n", shape.dim,
              twin.oracle.rows().size(), (bytes.rows + bytes.state) / bytes.budget,
              bytes.index / bytes.budget);
  EXPECT_GE((bytes.rows + bytes.state) / bytes.budget, shape.share_min);

  std::vector<uint64_t> keys = KeyRange(0, end);
  std::vector<uint8_t> outcomes(end);
  EXPECT_EQ(embank_contains(twin.table, keys.data(), end, outcomes.data()), EMBANK_OK);
  for (uint64_t key = 0; key < end; ++key) {
    ASSERT_EQ(outcomes[key] == EMBANK_ROW_FOUND, twin.oracle.Find(key) != nullptr) << key;
  }

  size_t rows_before = twin.oracle.rows().size();
  EraseAll(&twin);
  ExpectWithinBudget(store.get());
  EXPECT_EQ(Report(store.get()).index, 2 * kMiB) << "an index without rows has one page";
  FillUntilRefused(store.get(), &twin, end);
  EXPECT_GE(twin.oracle.rows().size(), rows_before * 95 / 100)
      << "the space of erased rows did not come back";
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

TEST(Budget, TheProcessStaysWithinIt) {
  if (!kResidentMemoryIsOurs) GTEST_SKIP() << "a sanitizer's shadow is resident memory too";
  constexpr uint64_t kBudget = 128 * kMiB;
  uint64_t before = ResidentBytes();
  StorePtr store = OpenWithBudget(kBudget, 2);
  embank_table* table = CreateTable(store.get(), "t", TableOptions(60, EMBANK_OPT_ADAM));
  std::vector<float> rows(kBatch * 60, 1.0f);
  uint64_t growth_bytes_max = 0;
  for (uint64_t key = 0;; key += kBatch) {
    std::vector<uint64_t> keys = KeyRange(key, kBatch);
    embank_status status = embank_upsert(table, keys.data(), kBatch, rows.data(), 0, nullptr);
    growth_bytes_max = std::max(growth_bytes_max, ResidentBytes() - before);
    if (status == EMBANK_RESOURCE_EXHAUSTED) break;
    ASSERT_EQ(status, EMBANK_OK);
  }
  // Stacks of workers, the allocator's own, and this test's batch.
  constexpr uint64_t kSlackBytes = 6 * kMiB;
  std::printf("  %.1f MiB resident of %llu MiB\n", static_cast<double>(growth_bytes_max) / kMiB,
              static_cast<unsigned long long>(kBudget / kMiB));
  EXPECT_LE(growth_bytes_max, kBudget + kSlackBytes);
  EXPECT_GE(growth_bytes_max, kBudget * 8 / 10) << "the budget was not used";
}

TEST(Budget, WithoutOutcomesARefusalIsTheStatusAndTheRestIsDone) {
  StorePtr store = OpenWithBudget(kBudgetBytesMin);
  Twin twin = TableOf(store.get(), "t", 500, EMBANK_OPT_ADAGRAD);
  uint64_t end = FillUntilRefused(store.get(), &twin, 0);
  std::vector<uint64_t> keys = {0, end + 1, 1, end + 2};
  std::vector<uint8_t> refusals = {0, EMBANK_ROW_REFUSED, 0, EMBANK_ROW_REFUSED};
  RowBuffer actual(4, twin.oracle.row_bytes());
  RowBuffer expected = actual;
  EXPECT_EQ(
      embank_lookup(twin.table, keys.data(), 4, EMBANK_MISSING_CREATE, actual.data(), 0, nullptr),
      EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_THAT(embank_last_error(), testing::HasSubstr("dram_bytes"));
  twin.oracle.Lookup(keys.data(), 4, EMBANK_MISSING_CREATE, expected.data(), 0, nullptr,
                     refusals.data());
  EXPECT_TRUE(actual == expected);

  RowBuffer rows(4, twin.oracle.row_bytes());
  for (uint64_t i = 0; i < 4; ++i) rows.SetFloat(i, 7, static_cast<float>(i));
  EXPECT_EQ(embank_upsert(twin.table, keys.data(), 4, rows.data(), 0, nullptr),
            EMBANK_RESOURCE_EXHAUSTED);
  twin.oracle.Upsert(keys.data(), 4, rows.data(), 0, nullptr, refusals.data());
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

TEST(Budget, AnErasedRowClassLeavesItsSpaceToAnother) {
  StorePtr store = OpenWithBudget(64 * kMiB);
  Twin first = TableOf(store.get(), "first", 500, EMBANK_OPT_NONE);
  FillUntilRefused(store.get(), &first, 0);
  EraseAll(&first);
  Twin second = TableOf(store.get(), "second", 1500, EMBANK_OPT_SGD);
  FillUntilRefused(store.get(), &second, 0);
  EXPECT_EQ(Difference(second.table, second.oracle), "");
  Bytes bytes = Report(store.get());
  EXPECT_GE(bytes.rows + bytes.state, 0.9 * bytes.budget);
}

TEST(Budget, ADroppedTableLeavesItsSpaceToAnother) {
  StorePtr store = OpenWithBudget(64 * kMiB);
  for (int i = 0; i < 6; ++i) {
    std::string name = StrCat("t", i);
    Twin twin =
        TableOf(store.get(), name, 400 + 177 * static_cast<uint32_t>(i), EMBANK_OPT_ADAGRAD);
    FillUntilRefused(store.get(), &twin, 0);
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
    Bytes bytes = Report(store.get());
    EXPECT_GE(bytes.rows + bytes.state, 0.88 * bytes.budget) << name;
    EXPECT_EQ(embank_table_drop(store.get(), name.c_str()), EMBANK_OK);
    bytes = Report(store.get());
    EXPECT_EQ(bytes.rows + bytes.state, 0) << name;
  }
}

// A class whose pages are half empty takes its own holes again.
TEST(Budget, HolesAreFilledAgain) {
  StorePtr store = OpenWithBudget(32 * kMiB);
  Twin twin = TableOf(store.get(), "t", 200, EMBANK_OPT_ADAM);
  uint64_t end = FillUntilRefused(store.get(), &twin, 0);
  size_t rows = twin.oracle.rows().size();
  std::vector<uint64_t> every_second;
  for (uint64_t key = 0; key < end; key += 2) {
    if (twin.oracle.Find(key) != nullptr) every_second.push_back(key);
  }
  size_t erased = every_second.size();
  EXPECT_EQ(embank_erase(twin.table, every_second.data(), erased, nullptr), EMBANK_OK);
  twin.oracle.Erase(every_second.data(), erased, nullptr);
  FillUntilRefused(store.get(), &twin, end);
  EXPECT_GE(twin.oracle.rows().size(), rows - rows / 100);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

TEST(Budget, TheMinimumHoldsRowsWhateverTheThreads) {
  for (uint32_t threads : {0u, 1u, 64u}) {
    StorePtr store = OpenWithBudget(kBudgetBytesMin, threads);
    ASSERT_NE(store, nullptr);
    Twin twin = TableOf(store.get(), "t", 32, EMBANK_OPT_ADAGRAD);
    EXPECT_EQ(LookUpKeys(&twin, KeyRange(0, 20'000)), 0u);
    ExpectWithinBudget(store.get());
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  }
}

// Threads that create at once pass neither the budget nor each other's rows.
TEST(Budget, ManyThreadsStayWithinIt) {
  constexpr uint64_t kThreads = 4;
  StorePtr store = OpenWithBudget(24 * kMiB, 2);
  Twin twin = TableOf(store.get(), "t", 100, EMBANK_OPT_ADAGRAD);
  std::atomic<uint64_t> created = 0;
  std::atomic<uint64_t> refused = 0;
  std::atomic<uint64_t> running = kThreads;
  std::vector<std::thread> threads;
  for (uint64_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      std::vector<float> rows(kBatch * 100);
      std::vector<uint8_t> outcomes(kBatch);
      for (uint64_t batch = 0; batch < 25; ++batch) {
        std::vector<uint64_t> keys = KeyRange((batch * kThreads + t) * kBatch, kBatch);
        EXPECT_EQ(embank_lookup(twin.table, keys.data(), kBatch, EMBANK_MISSING_CREATE, rows.data(),
                                0, outcomes.data()),
                  EMBANK_OK);
        for (uint8_t outcome : outcomes) {
          created += outcome == EMBANK_ROW_CREATED ? 1 : 0;
          refused += outcome == EMBANK_ROW_REFUSED ? 1 : 0;
        }
      }
      --running;
    });
  }
  while (running > 0) {
    Bytes bytes = Report(store.get());
    EXPECT_LE(bytes.used, bytes.budget);
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(refused, 0u);
  EXPECT_EQ(RowCount(twin.table), created);
  EXPECT_EQ(ScanAll(twin.table, 400, 1000).keys.size(), created);
  ExpectWithinBudget(store.get());
  Bytes bytes = Report(store.get());
  EXPECT_GE(bytes.rows + bytes.state, 0.75 * bytes.budget);
}

TEST(Budget, TablesCountToo) {
  StorePtr store = OpenWithBudget(kBudgetBytesMin);
  embank_table_options options = TableOptions(4096, EMBANK_OPT_ADAM);
  Twin twin = TableOf(store.get(), "full", 64, EMBANK_OPT_NONE);
  FillUntilRefused(store.get(), &twin, 0);
  embank_status status = EMBANK_OK;
  int tables = 0;
  // Less than a page of 2 MiB is left, and a table takes 12 KiB.
  for (; status == EMBANK_OK && tables < 1024; ++tables) {
    embank_table* table = nullptr;
    std::string name = StrCat("t", tables);
    status = embank_table_create(store.get(), name.c_str(), &options, &table);
    if (status != EMBANK_OK) {
      EXPECT_EQ(table, nullptr);
    }
    ExpectWithinBudget(store.get());
  }
  EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_THAT(embank_last_error(), testing::HasSubstr("dram_bytes"));
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

// ---- the estimate ----

struct Wish {
  uint32_t dim;
  int32_t optimizer;
  uint64_t rows;
};

std::string EstimateOf(const embank_store_options& options, const std::vector<Wish>& wishes) {
  std::vector<embank_table_options> tables;
  std::vector<uint64_t> rows;
  for (const Wish& wish : wishes) {
    tables.push_back(TableOptions(wish.dim, wish.optimizer));
    rows.push_back(wish.rows);
  }
  char json[1024] = "";
  uint64_t needed = 0;
  EXPECT_EQ(embank_estimate(&options, tables.data(), rows.data(),
                            static_cast<uint32_t>(tables.size()), json, sizeof json, &needed),
            EMBANK_OK)
      << embank_last_error();
  return json;
}

TEST(Estimate, SaysWhenItDoesNotFit) {
  embank_store_options options = StoreOptions();
  options.dram_bytes = 64 * kMiB;
  std::string json = EstimateOf(options, {{256, EMBANK_OPT_ADAM, 1'000'000}});
  EXPECT_THAT(json, testing::HasSubstr("false")) << json;
  EXPECT_GE(JsonNumber(json, "slab_bytes"), 1e6 * 256 * 12);
}

TEST(Estimate, HugeRowCountsDoNotWrapAround) {
  embank_store_options options = StoreOptions();
  embank_table_options table = TableOptions(4096, EMBANK_OPT_ADAM);
  char json[1024] = "";
  uint64_t needed = 0;
  uint64_t rows = uint64_t{1} << 36;
  ASSERT_EQ(embank_estimate(&options, &table, &rows, 1, json, sizeof json, &needed), EMBANK_OK);
  EXPECT_GE(JsonNumber(json, "dram_bytes"), static_cast<double>(rows) * 4096 * 12) << json;
  // More than a store can hold, whatever its options.
  for (uint64_t more : {uint64_t{1} << 50, ~uint64_t{0}}) {
    EXPECT_EQ(embank_estimate(&options, &table, &more, 1, json, sizeof json, &needed),
              EMBANK_INVALID_ARGUMENT);
    EXPECT_THAT(embank_last_error(), testing::StartsWith("rows[0]"));
  }
}

}  // namespace
}  // namespace embank::test::budget_test
