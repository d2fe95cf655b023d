// PMem whose directory is removed while a store works: its rows go to the SSD beside batches.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "base/threads/executor.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "tests/store/pmem_rows.h"
#include "tests/support/random.h"
#include "tests/support/row_values.h"
#include "tests/support/threads.h"

namespace embank::test::evacuation_threads_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kBatchesMin = 6;
#else
constexpr uint64_t kBatchesMin = 30;
#endif

constexpr Key kKeysOfWriter = 1000;
constexpr uint64_t kWriters = 2;
constexpr Key kKeys = 3000;  // those behind the writers' are never written again

using EvacuationThreads = PmemTier;

TEST_F(EvacuationThreads, LoseNoRowWhenTheDirectoryIsRemoved) {
  world_.AddPmemOptions(kLargePmem);
  ASSERT_TRUE(world_.Open(false, MakeThreadPool(2)).ok());
  table_ = world_.Create("t", Optimizer::kNone);
  Fill(kKeys);
  Checkpoint();
  ASSERT_GT(pmem_rows(), 500u);
  std::atomic<bool> is_over{false};
  std::vector<float> factors(kWriters, 1.0f);
  OnThreads(kWriters + 2, [&](uint64_t thread) {
    Random random(thread);
    if (thread < kWriters) {
      for (uint64_t batch = 2; batch < kBatchesMin || !is_over; ++batch) {
        factors[thread] = static_cast<float>(batch);
        Fill(kKeysOfWriter, factors[thread], thread * kKeysOfWriter);
      }
    } else if (thread == kWriters) {
      std::vector<float> rows(100 * kDim);
      while (!is_over) {
        const std::vector<Key> keys = KeysFrom(random.Below(kKeys - 100), 100);
        ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {}).ok());
        for (size_t i = 0; i < keys.size(); ++i) {
          ASSERT_TRUE(IsWholeRow(rows, i, kDim)) << "a torn row of key " << keys[i];
        }
      }
    } else {
      const std::vector<std::string> names = *world_.disk().List("/pmem");
      for (const std::string& name : names) {
        EXPECT_TRUE(world_.disk().Remove("/pmem/" + name).ok());
      }
      for (int i = 0; i < 3; ++i) Checkpoint();
      is_over = true;
    }
  });
  Checkpoint();
  EXPECT_EQ(pmem_rows(), 0u);
  EXPECT_EQ(world_->checkpoints()->Report().rows_lost, 0u);
  // A crash: only what the checkpoint made durable.
  world_.SetDisk(world_.disk().AfterCrash(world_.disk().changes(), Persistence::kNone, 1));
  ASSERT_NO_FATAL_FAILURE(Reopen());
  ASSERT_EQ(table_->rows(), kKeys);
  std::vector<float> rows(kKeys * kDim);
  const std::vector<Key> keys = KeysFrom(0, kKeys);
  ASSERT_TRUE(Lookup(table_, keys, MissingRule::kSkip, RowsIn(&rows, kDim), {}).ok());
  for (const Key key : keys) {
    const uint64_t writer = key / kKeysOfWriter;
    const float factor = writer < kWriters ? factors[writer] : 1.0f;
    ASSERT_EQ(rows[key * kDim], factor * static_cast<float>(key)) << "key " << key;
  }
}

}  // namespace
}  // namespace embank::test::evacuation_threads_test
