#include "store/inspect/estimate.h"
#include "store/inspect/memory_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "store/batch/lookup.h"
#include "store/placement/memory_plan.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::estimate_test {
namespace {

TableRows TableOf(uint32_t dim, ValueType type, Optimizer optimizer, uint64_t rows) {
  TableRows table = {.options = OptionsOf(dim, optimizer), .rows = rows};
  table.options.value_type = type;
  return table;
}

struct Mix {
  const char* name;
  std::vector<TableRows> tables;
};

const Mix kMixes[] = {
    {"nothing", {}},
    {"a table without rows", {TableOf(8, ValueType::kF32, Optimizer::kNone, 0)}},
    {"a handful", {TableOf(64, ValueType::kF32, Optimizer::kAdam, 10)}},
    {"many narrow rows", {TableOf(8, ValueType::kF32, Optimizer::kAdagrad, 300'000)}},
    {"the narrowest rows", {TableOf(1, ValueType::kF16, Optimizer::kNone, 400'000)}},
    {"wide rows", {TableOf(4096, ValueType::kF32, Optimizer::kAdam, 1000)}},
    {"shards about to grow", {TableOf(16, ValueType::kBf16, Optimizer::kFtrl, 2828 * 64)}},
    {"three classes",
     {TableOf(64, ValueType::kF32, Optimizer::kRowwiseAdagrad, 30'000),
      TableOf(16, ValueType::kBf16, Optimizer::kAdam, 70'000),
      TableOf(3, ValueType::kF32, Optimizer::kSgd, 50'000)}},
    {"five tables of one class",
     {TableOf(16, ValueType::kF32, Optimizer::kNone, 20'000),
      TableOf(16, ValueType::kF32, Optimizer::kSgd, 20'001),
      TableOf(16, ValueType::kF32, Optimizer::kNone, 1),
      TableOf(16, ValueType::kF32, Optimizer::kSgd, 25'000),
      TableOf(16, ValueType::kF32, Optimizer::kNone, 30'000)}},
};

// Creates `count` new rows; false: some were refused.
bool CreateRows(Table* table, Random* random, uint64_t count) {
  std::vector<Key> keys(count);
  for (Key& key : keys) key = random->Bits();
  std::vector<std::byte> rows(count * table->layout().vector_bytes);
  const Status status =
      Lookup(table, keys, MissingRule::kCreate, {rows.data(), table->layout().vector_bytes}, {});
  EXPECT_TRUE(status.ok()) << status;
  return status.ok();
}

// Fills the tables by turns, so that classes and index compete for the budget.
void Fill(StoreWorld* store, const Mix& mix) {
  std::vector<Table*> tables;
  uint64_t left = 0;
  for (size_t i = 0; i < mix.tables.size(); ++i) {
    tables.push_back(store->Create("table " + std::to_string(i), mix.tables[i].options));
    ASSERT_NE(tables.back(), nullptr);
    left += mix.tables[i].rows;
  }
  Random random(mix.tables.size());
  while (left > 0) {
    const size_t i = random.Below(tables.size());
    const uint64_t missing = mix.tables[i].rows - tables[i]->rows();
    const uint64_t count = std::min(missing, random.Between(1, 3000));
    ASSERT_TRUE(CreateRows(tables[i], &random, count)) << tables[i]->rows() << " rows are there";
    left -= count;
  }
}

TEST(Estimate, IsEnoughForTheRowsInEachPartAndNotMuchMore) {
  for (const Mix& mix : kMixes) {
    const Estimate estimate = EstimateMemory({.worker_threads = 2}, mix.tables);
    StoreWorld store({.dram_bytes = estimate.dram_bytes, .worker_threads = 2});
    ASSERT_NO_FATAL_FAILURE(Fill(&store, mix)) << mix.name;
    const MemoryReport report = ReportMemory(*store);
    EXPECT_LE(report.index_bytes, estimate.index_bytes) << mix.name;
    EXPECT_LE(report.fixed_bytes, estimate.fixed_bytes) << mix.name;
    EXPECT_LE(report.rows_bytes + report.state_bytes + report.slack_bytes, estimate.slab_bytes)
        << mix.name;
    EXPECT_LE(report.used_bytes, estimate.dram_bytes) << mix.name;
    // The budget cannot be below its minimum.
    const auto used = static_cast<double>(std::max(report.used_bytes, kDramBytesMin));
    EXPECT_LE(static_cast<double>(estimate.dram_bytes), used * 1.15 + (4 << 20)) << mix.name;
  }
}

TEST(Estimate, LeavesSpaceForTheLastShardToGrow) {
  // 2,790 rows a shard, where the first arrays grow at 2,828: some do, and the last of them so late
  // that all the pages of rows are there (65,536 rows each).
  const Mix mix = {"", {TableOf(1, ValueType::kF32, Optimizer::kNone, 64 * 2790)}};
  const StoreOptions options = {.dram_bytes = 32 << 20, .worker_threads = 1};
  const Estimate estimate = EstimateMemory(options, mix.tables);
  StoreWorld store({.dram_bytes = std::max(kDramBytesMin, estimate.dram_bytes)});
  ASSERT_NO_FATAL_FAILURE(Fill(&store, mix));
  EXPECT_EQ(ReportMemory(*store).index_bytes, estimate.index_bytes);
  EXPECT_EQ(estimate.index_bytes, 2 * kHugePageBytes);
}

TEST(Estimate, AddsUpAndGrowsWithRowsAndThreads) {
  uint64_t before = 0;
  for (const uint64_t rows : {uint64_t{0}, uint64_t{1}, uint64_t{100'000}, uint64_t{1} << 30}) {
    const TableRows table = TableOf(32, ValueType::kF32, Optimizer::kAdam, rows);
    const Estimate estimate = EstimateMemory({.worker_threads = 1}, {&table, 1});
    EXPECT_GE(estimate.dram_bytes,
              estimate.fixed_bytes + estimate.index_bytes + estimate.slab_bytes);
    EXPECT_GE(estimate.dram_bytes, std::max(before, kDramBytesMin));
    before = estimate.dram_bytes;
    const Estimate more_threads = EstimateMemory({.worker_threads = 64}, {&table, 1});
    EXPECT_GE(more_threads.dram_bytes, estimate.dram_bytes);
  }
  // 2^30 rows of 16 + 128 + 260 bytes, in slots of 448 (44 of 448 bytes are cheap).
  const TableRows table = TableOf(32, ValueType::kF32, Optimizer::kAdam, uint64_t{1} << 30);
  const uint64_t slots = (2 << 20) / 448;
  EXPECT_EQ(EstimateMemory({}, {&table, 1}).slab_bytes,
            ((uint64_t{1} << 30) + slots - 1) / slots * (2 << 20));
}

TEST(Estimate, RowsOfOneClassShareTheirPages) {
  const TableRows two[] = {TableOf(16, ValueType::kF32, Optimizer::kNone, 1),
                           TableOf(16, ValueType::kF32, Optimizer::kSgd, 1)};
  EXPECT_EQ(EstimateMemory({}, two).slab_bytes, kHugePageBytes);
  const TableRows apart[] = {TableOf(16, ValueType::kF32, Optimizer::kNone, 1),
                             TableOf(64, ValueType::kF32, Optimizer::kSgd, 1)};
  EXPECT_EQ(EstimateMemory({}, apart).slab_bytes, 2 * kHugePageBytes);
}

TEST(Estimate, TheSmallestBudgetOpensWhateverTheThreads) {
  for (const uint32_t threads : {1u, 64u, 1024u}) {
    StoreWorld store({.dram_bytes = kDramBytesMin, .worker_threads = threads});
    Table* const table = store.Create("t", OptionsOf(4096, Optimizer::kAdam));
    ASSERT_NE(table, nullptr);
    Random random(1);
    EXPECT_TRUE(CreateRows(table, &random, 10));
  }
}

TEST(RowAddressBytes, FollowsTheBudgetOrTheMachine) {
  EXPECT_EQ(RowAddressBytes({.dram_bytes = 100 << 20}), uint64_t{100} << 20);
  EXPECT_EQ(RowAddressBytes({}), std::min(2 * PhysicalMemoryBytes(), DramTier::kAddressBytesMax));
}

TEST(WorkerThreads, IsWhatWasAskedForOrTheCores) {
  EXPECT_EQ(WorkerThreads({.worker_threads = 7}), 7u);
  EXPECT_GE(WorkerThreads({}), 1u);
  EXPECT_LE(WorkerThreads({}), kWorkerThreadsMax);
}

}  // namespace
}  // namespace embank::test::estimate_test
