// Prefetches beside everything that moves rows: changes, lookups, evictions, compaction,
// checkpoints.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/write.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/row_values.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/threads.h"

namespace embank::test::prefetch_threads_test {
namespace {

constexpr Key kKeys = 3600;
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kBatches = 40;
#else
constexpr int kBatches = 200;
#endif
// Compaction runs beside the trainers, and on a busy machine it may come late.
constexpr int kBatchesMax = 50 * kBatches;
constexpr size_t kBatch = 50;

std::vector<Key> SomeKeys(Random* random) {
  std::vector<Key> keys(kBatch);
  for (Key& key : keys) key = random->Below(random->OneIn(3) ? 200 : kKeys);
  return keys;
}

const RowLogCounters& LogCountersOf(const Table& table) {
  return table.mover()->logs().lowest().counters();
}

// Batches as a trainer makes them, each asked for before; each step takes one from a row.
uint64_t Train(Table* table, uint64_t seed, std::vector<std::atomic<uint32_t>>* steps) {
  Random random(seed);
  const std::vector<float> ones(kBatch * kDim, 1.0f);
  std::vector<float> seen(kBatch * kDim);
  uint64_t wrong = 0;
  std::vector<Key> next = SomeKeys(&random);
  const auto is_enough = [&](int batches) {
    return batches >= kBatchesMax ||
           (batches >= kBatches && LogCountersOf(*table).compacted_rows > 0);
  };
  for (int i = 0; !is_enough(i); ++i) {
    const std::vector<Key> keys = std::exchange(next, SomeKeys(&random));
    wrong += Prefetch(table, next).ok() ? 0 : 1;
    wrong += Lookup(table, keys, MissingRule::kZero, RowsIn(&seen, kDim), {}).ok() ? 0 : 1;
    for (size_t k = 0; k < kBatch; ++k) {
      wrong += IsWholeRow(seen, k, kDim) ? 0 : 1;
    }
    wrong += ApplyGradients(table, keys, RowsOf(ones, kDim), {}).ok() ? 0 : 1;
    for (const Key key : keys) ++(*steps)[key];
  }
  return wrong;
}

TEST(PrefetchThreads, LoseNoStepBesideEvictionsCompactionAndCheckpoints) {
  SpillWorld store(31, MakeThreadPool(2));
  Table* const table = store.Create("t", Optimizer::kSgd);
  Put(table, KeysFrom(0, kKeys), 0.0f);
  std::vector<std::atomic<uint32_t>> steps(kKeys);
  std::atomic<uint64_t> wrong{0};
  std::atomic<int> trainers{2};
  OnThreads(4, [&](uint64_t thread) {
    Random random(100 + thread);
    if (thread < 2) {
      wrong += Train(table, thread, &steps);
      --trainers;
    } else if (thread == 2) {
      // More than memory has slots, and keys without rows.
      do {
        const Key first = random.Below(kKeys);
        wrong += Prefetch(table, KeysFrom(first, random.Between(1, 2500))).ok() ? 0 : 1;
      } while (trainers > 0);
    } else {
      do {
        wrong += store->checkpoints()->Make({}).ok() ? 0 : 1;
      } while (trainers > 0);
    }
  });
  EXPECT_EQ(wrong, 0u);
  Rows expected;
  for (Key key = 0; key < kKeys; ++key) expected[key] = -static_cast<float>(steps[key]);
  ASSERT_NO_FATAL_FAILURE(ExpectIs(store.get(), {{"t", expected}}));
  EXPECT_LE(table->store().pins->used_bytes(), kDramBytes / 4);
  Events events;
  for (const char* const name : {"prefetched", "compacted", "checkpoints"}) events.Expect(name);
  events.Count("prefetched", table->counters().prefetched_rows);
  events.Count("compacted", LogCountersOf(*table).compacted_rows);
  events.Count("checkpoints", store->checkpoints()->Report().checkpoints);
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store.Open().ok());
  ExpectIs(store.get(), {{"t", expected}});
}

}  // namespace
}  // namespace embank::test::prefetch_threads_test
