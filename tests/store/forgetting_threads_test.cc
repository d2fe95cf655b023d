// Several threads on tables that forget.
#include <gtest/gtest.h>

#include <atomic>
#include <vector>

#include "base/threads/executor.h"
#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/scan/scan.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"
#include "tests/support/threads.h"

namespace embank::test::forgetting_threads_test {
namespace {

#if defined(__SANITIZE_THREAD__)
constexpr int kBatches = 12;
#elif defined(__SANITIZE_ADDRESS__)
constexpr int kBatches = 40;
#else
constexpr int kBatches = 150;
#endif

constexpr uint32_t kDim = 256;
constexpr Key kKeys = 40'000;  // some three times what fits

TableOptions Forgets(EvictionPolicy eviction) {
  TableOptions options = OptionsOf(kDim, Optimizer::kSgd);
  options.rule.learning_rate = 1.0f;
  options.initializer = {InitializerKind::kConstant, 7.0f, 0};
  options.eviction = eviction;
  options.on_full = OnFull::kForget;
  return options;
}

// Whole rows, all of whose values are the same.
void ExpectWhole(const std::vector<float>& rows, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    for (size_t j = 1; j < kDim; ++j) ASSERT_EQ(rows[i * kDim + j], rows[i * kDim]) << "torn";
  }
}

class ForgettingThreads : public testing::TestWithParam<EvictionPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, ForgettingThreads,
                         testing::Values(EvictionPolicy::kLru, EvictionPolicy::kClock,
                                         EvictionPolicy::kLfu));

TEST_P(ForgettingThreads, RowsStayWholeAndAreCountedOnce) {
  StoreWorld store({.dram_bytes = uint64_t{16} << 20}, MakeThreadPool(2));
  Table* const table = store.Create("t", Forgets(GetParam()));
  std::atomic<uint64_t> made{0};
  std::atomic<uint64_t> erased{0};
  std::atomic<uint64_t> refused{0};
  OnThreads(4, [&](uint64_t thread) {
    Random random(thread);
    std::vector<Key> keys(1500);
    std::vector<float> rows(keys.size() * kDim);
    std::vector<uint8_t> outcomes(keys.size());
    for (int batch = 0; batch < kBatches; ++batch) {
      for (Key& key : keys) key = random.Below(random.OneIn(3) ? kKeys : kKeys / 10);
      const uint64_t verb = random.Below(8);
      Status status;
      if (verb == 0) {
        status = Erase(table, keys, outcomes);
      } else if (verb == 1) {
        rows.assign(rows.size(), static_cast<float>(batch));
        status = Upsert(table, keys, RowsOf(rows, kDim), outcomes);
      } else if (verb == 2) {
        rows.assign(rows.size(), 1.0f);
        status = ApplyGradients(table, keys, RowsOf(rows, kDim), outcomes);
      } else {
        status = Lookup(table, keys, verb == 3 ? MissingRule::kDefault : MissingRule::kCreate,
                        RowsIn(&rows, kDim), outcomes);
        ExpectWhole(rows, keys.size());
      }
      ASSERT_TRUE(status.ok()) << status;
      for (const uint8_t outcome : outcomes) {
        made += outcome == static_cast<uint8_t>(Outcome::kCreated) ? 1 : 0;
        refused += outcome == static_cast<uint8_t>(Outcome::kRefused) ? 1 : 0;
        erased += verb == 0 && outcome == static_cast<uint8_t>(Outcome::kFound) ? 1 : 0;
      }
    }
  });
  const uint64_t forgotten = table->counters().forgotten_rows.load();
  EXPECT_GT(forgotten, 1000u);
  EXPECT_EQ(refused, 0u);
  EXPECT_EQ(table->rows(), made - erased - forgotten);
  uint64_t seen = 0;
  Scan scan(table);
  std::vector<Key> keys(1000);
  std::vector<float> rows(keys.size() * kDim);
  for (;;) {
    const StatusOr<uint64_t> count = scan.Next(keys, RowsIn(&rows, kDim));
    ASSERT_TRUE(count.ok()) << count.status();
    if (*count == 0) break;
    ExpectWhole(rows, *count);
    seen += *count;
  }
  EXPECT_EQ(seen, table->rows());
  const MemoryReport report = ReportMemory(*store);
  EXPECT_LE(report.used_bytes, report.budget_bytes);
}

// One large batch, shared among threads, with keys of which every second is there.
TEST_P(ForgettingThreads, ALargeBatchIsSharedAmongThreads) {
  StoreWorld store({.dram_bytes = uint64_t{16} << 20}, MakeThreadPool(4));
  Table* const table = store.Create("t", Forgets(GetParam()));
  std::vector<Key> keys = KeysFrom(0, 9000);
  std::vector<float> rows(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  for (Key first = 0; first < 36'000; first += 4'500) {
    keys = KeysFrom(first, keys.size());
    ASSERT_TRUE(Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes).ok());
    ExpectWhole(rows, keys.size());
    for (const float value : rows) ASSERT_EQ(value, 7.0f);
    EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kRefused)),
              0);
  }
  // The last batch fits, with the rows before it: it is there, except rows of shards that found all
  // others locked.
  ASSERT_TRUE(Contains(table, keys, outcomes).ok());
  EXPECT_GE(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kFound)),
            static_cast<ptrdiff_t>(keys.size() * 99 / 100));
}

}  // namespace
}  // namespace embank::test::forgetting_threads_test
