// Pages of DRAM that move: rows do not change, and the index, the log and other classes get the
// memory.
#include "store/placement/page_mover.h"
#include "store/inspect/memory_report.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/random.h"
#include "tests/support/spill_world.h"
#include "tests/support/threads.h"

namespace embank::test::page_mover_test {
namespace {

std::vector<Key> KeysFromTo(Key first, Key end) {
  std::vector<Key> keys;
  for (Key key = first; key < end; ++key) keys.push_back(key);
  return keys;
}

// Values of rows of any dimension: all are the key times `factor`.
void PutRows(Table* table, const std::vector<Key>& keys, uint32_t dim, float factor) {
  std::vector<float> rows(keys.size() * dim);
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = factor * static_cast<float>(keys[i / dim]);
  const Status status = Upsert(table, keys, RowsOf(rows, dim), {});
  ASSERT_TRUE(status.ok()) << status;
}

void ExpectRows(Table* table, const std::vector<Key>& keys, uint32_t dim, float factor) {
  std::vector<float> rows(keys.size() * dim, -1.0f);
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kSkip, RowsIn(&rows, dim), {}).ok());
  for (size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i], factor * static_cast<float>(keys[i / dim])) << "key " << keys[i / dim];
  }
}

std::vector<uint32_t> HeatOfAll(Table* table, const std::vector<Key>& keys) {
  std::vector<uint32_t> heat(keys.size());
  EXPECT_TRUE(GetHeat(table, keys, heat, {}).ok());
  return heat;
}

TEST(PageMover, RowsOfAnEmptiedPageKeepValuesStateAndHeat) {
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kAdagrad);
  const std::vector<Key> keys = KeysFromTo(1, 900);  // fewer than fit
  ASSERT_NO_FATAL_FAILURE(PutRows(table, keys, kDim, 2.0f));
  Random random(1);
  for (int i = 0; i < 30; ++i) {
    std::vector<Key> some;
    for (int n = 0; n < 40; ++n) some.push_back(random.Between(1, 899));
    ASSERT_NO_FATAL_FAILURE(ExpectRows(table, some, kDim, 2.0f));
  }
  const std::vector<uint32_t> heat = HeatOfAll(table, keys);
  const uint64_t in_memory = table->mover()->rows().rows_in_memory();
  ASSERT_EQ(in_memory, keys.size());
  uint64_t emptied = 0;
  while (world->pages()->EmptyOnePage()) {
    ++emptied;
    EXPECT_EQ(HeatOfAll(table, keys), heat) << "after " << emptied << " pages";
  }
  EXPECT_GE(emptied, 3u);
  EXPECT_EQ(table->mover()->rows().rows_in_memory(), 0u);
  EXPECT_EQ(table->rows_in_log(), keys.size());
  ASSERT_NO_FATAL_FAILURE(ExpectRows(table, keys, kDim, 2.0f));
}

TEST(PageMover, HotRowsMoveToOtherPagesAndColdOnesLeave) {
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(PutRows(table, KeysFromTo(1, 1000), kDim, 1.0f));
  ASSERT_EQ(table->rows_in_log(), 0u);
  // A third of the rows is used, wherever their pages are.
  std::vector<Key> hot;
  for (Key key = 1; key < 1000; key += 3) hot.push_back(key);
  for (int i = 0; i < 3; ++i) ASSERT_NO_FATAL_FAILURE(ExpectRows(table, hot, kDim, 1.0f));
  ASSERT_TRUE(world->pages()->EmptyOnePage());
  const uint64_t left = table->rows_in_log();
  EXPECT_GT(left, 300u);
  EXPECT_LT(left, 600u) << "as many rows as a page has";
  // Nearly all of the hot rows are still in memory: reading them promotes few.
  const uint64_t reads = world->logs()->lowest().counters().read_rows;
  ASSERT_NO_FATAL_FAILURE(ExpectRows(table, hot, kDim, 1.0f));
  EXPECT_LT(world->logs()->lowest().counters().read_rows - reads, hot.size() / 4)
      << "at random it would be half";
}

TEST(PageMover, AClassThatComesLateGetsPagesOfOneThatIsNotUsed) {
  SpillWorld world(1);
  Table* const first = world.Create("first", Optimizer::kNone);
  ASSERT_NO_FATAL_FAILURE(PutRows(first, KeysFromTo(1, 6000), kDim, 1.0f));
  ASSERT_GT(first->rows_in_log(), 0u) << "memory is full";
  constexpr uint32_t kNarrow = 100;
  Table* const second = world.Create("second", Optimizer::kNone, kNarrow);
  const std::vector<Key> keys = KeysFromTo(1, 6000);
  ASSERT_NO_FATAL_FAILURE(PutRows(second, keys, kNarrow, 3.0f));
  for (int round = 0; round < 10; ++round) {
    for (size_t begin = 0; begin < keys.size(); begin += 500) {
      const std::vector<Key> some(
          keys.begin() + static_cast<ptrdiff_t>(begin),
          keys.begin() + static_cast<ptrdiff_t>(std::min(begin + 500, keys.size())));
      ASSERT_NO_FATAL_FAILURE(ExpectRows(second, some, kNarrow, 3.0f));
    }
  }
  EXPECT_GT(world->pages()->given_pages(), 0u);
  EXPECT_EQ(second->rows_in_log(), 0u) << "all of its rows fit into the pages that it was given";
  ASSERT_NO_FATAL_FAILURE(ExpectRows(first, KeysFromTo(1, 6000), kDim, 1.0f));
}

TEST(PageMover, TheIndexGrowsIntoPagesOfRowsWhileOthersReadAndWrite) {
  SpillWorld world(1, MakeThreadPool(2));
  constexpr uint32_t kNarrow = 40;
  constexpr Key kKeysOfThread = 150'000;
  Table* const table = world.Create("t", Optimizer::kSgd, kNarrow);
  const uint64_t index_bytes = ReportMemory(*world).index_bytes;
  std::atomic<Key> written[2] = {1, 1};
  OnThreads(3, [&](uint64_t thread) {
    Random random(thread);
    if (thread < 2) {
      // Keys of its own, odd or even.
      for (Key first = 1; first < kKeysOfThread; first += 2000) {
        std::vector<Key> keys;
        for (Key key = first; key < first + 2000; ++key) keys.push_back(2 * key + thread);
        ASSERT_NO_FATAL_FAILURE(PutRows(table, keys, kNarrow, 1.0f));
        written[thread] = first + 2000;
      }
      return;
    }
    // A writer that has failed writes no more.
    while ((written[0] < kKeysOfThread || written[1] < kKeysOfThread) &&
           !testing::Test::HasFailure()) {
      std::vector<Key> keys;
      for (int i = 0; i < 200; ++i) {
        const uint64_t whose = random.Below(2);
        const Key end = written[whose];
        if (end > 1) keys.push_back(2 * random.Between(1, end - 1) + whose);
      }
      ASSERT_NO_FATAL_FAILURE(ExpectRows(table, keys, kNarrow, 1.0f));
    }
  });
  EXPECT_GT(ReportMemory(*world).index_bytes, index_bytes);
  EXPECT_GT(world->pages()->emptied_pages(), 0u);
  EXPECT_TRUE(world->checkpoints()->Make({}).ok());
  for (uint64_t thread = 0; thread < 2; ++thread) {
    std::vector<Key> keys;
    for (Key key = 1; key < kKeysOfThread; key += 3) keys.push_back(2 * key + thread);
    ASSERT_NO_FATAL_FAILURE(ExpectRows(table, keys, kNarrow, 1.0f));
  }
}

TEST(PageMover, ADeviceThatTakesNoRowsLeavesPagesAsTheyAre) {
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFromTo(1, 900);
  ASSERT_NO_FATAL_FAILURE(PutRows(table, keys, kDim, 1.0f));
  world.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kWrite ? UnavailableError("the device fails") : OkStatus();
  });
  EXPECT_FALSE(world->pages()->EmptyOnePage());
  EXPECT_EQ(table->rows(), keys.size());
  ASSERT_NO_FATAL_FAILURE(ExpectRows(table, keys, kDim, 1.0f));
  world.disk().SetFaults(nullptr);
}

}  // namespace
}  // namespace embank::test::page_mover_test
