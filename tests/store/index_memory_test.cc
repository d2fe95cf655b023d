// The index and its memory: when it grows, how it works without memory, when it shrinks, and how
// much it frees.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/mutex.h"
#include "store/index/index_sizes.h"
#include "store/index/key_index.h"
#include "tests/support/index_world.h"
#include "tests/support/random.h"

namespace embank::test::index_memory_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kReadyRows = 300'000;
constexpr uint64_t kRandomRows = 100'000;
#else
constexpr uint64_t kReadyRows = 3'000'000;
constexpr uint64_t kRandomRows = 400'000;
#endif

constexpr uint32_t kShard = 5;
constexpr uint64_t kFirstRowsMax = 2828;  // four fifths of the 505 * 7 entries of a first array

// Rows with hashes spread over one shard.
std::vector<RowId> SpreadRows(TableId table, uint32_t shard, uint32_t count) {
  std::vector<RowId> ids;
  for (uint32_t i = 0; i < count; ++i) {
    ids.push_back(IndexWorld::IdWithHash(table, HashAt(shard, i * 0x9E3779B9u, i)));
  }
  return ids;
}

void InsertAll(IndexWorld* index, const std::vector<RowId>& ids) {
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index->Insert(id));
}

TEST(IndexMemory, KeepsAllRowsThroughSeveralGrowths) {
  IndexWorld index;
  const uint64_t empty_bytes = index->memory()->bytes();
  EXPECT_EQ(empty_bytes, IndexBytesMax(0));
  EXPECT_EQ(empty_bytes, kHugePageBytes);
  const std::vector<RowId> ids = SpreadRows(0, kShard, 5 * kFirstRowsMax + 1);
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(ids[i]));
    if (i > kFirstRowsMax) continue;
    EXPECT_EQ(index->memory()->bytes(), (i < kFirstRowsMax ? 1 : 2) * kHugePageBytes);
  }
  // 14,141 rows fill four fifths of 2,525 buckets, which are more than 5 * 512 - 7 - 32; grown by a
  // quarter, in whole pages.
  EXPECT_EQ(index->memory()->bytes(), IndexBytesMax(14'141 * 64 - 64 * 640));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(IndexMemory, AFailedGrowthLeavesAllAsItWasAndTheArrayFillsUp) {
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, 7 * kFirstBuckets);
  size_t inserted = 0;
  for (; inserted < kFirstRowsMax; ++inserted) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(ids[inserted]));
  }
  // Slots for all further rows are there; memory for the index is not.
  index.memory()->FailEveryCall(true);
  while (inserted < ids.size() && index.TryInsert(ids[inserted]).ok()) ++inserted;
  EXPECT_EQ(inserted, 83 * 7 * kFirstBuckets / 100) << "83 hundredths of all entries";
  const RowId one_more = IndexWorld::IdWithHash(1, HashAt(kShard, 0));
  for (int attempt = 0; attempt < 2; ++attempt) {
    EXPECT_EQ(index.TryInsert(one_more).code(), StatusCode::kResourceExhausted);
  }
  EXPECT_EQ(index->memory()->bytes(), kHugePageBytes);
  EXPECT_EQ(index->shard(kShard)->high_buckets, kFirstBuckets);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  ASSERT_NO_FATAL_FAILURE(index.ExpectFindsRight(one_more));
  // Erased rows make space without any memory.
  ASSERT_NO_FATAL_FAILURE(index.Erase(ids[7]));
  ASSERT_NO_FATAL_FAILURE(index.Insert(ids[7]));
  index.memory()->FailEveryCall(false);
  ASSERT_NO_FATAL_FAILURE(index.Insert(one_more));
  EXPECT_GT(index->memory()->bytes(), kHugePageBytes);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(IndexMemory, GrowsWithTheBudgetOfEmptyPages) {
  // The budget covers the index before the growth, and two pages of rows.
  uint64_t limit_bytes = 0;
  {
    IndexWorld measured;
    limit_bytes = measured.budget()->used_bytes() + 2 * kHugePageBytes;
  }
  IndexWorld index(limit_bytes);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, SpreadRows(0, kShard, kFirstRowsMax)));
  const SlotClass wide = index.tier()->AddClass(kHugePageBytes);
  Location slot;
  ASSERT_EQ(index.tier()->Allocate(wide, {&slot, 1}), 1u);
  EXPECT_EQ(index.budget()->used_bytes(), limit_bytes);
  ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdWithHash(1, HashAt(kShard, 1))));
  EXPECT_EQ(index->memory()->bytes(), kHugePageBytes) << "the page is in use";
  index.tier()->Free(wide, {&slot, 1});
  EXPECT_EQ(index.budget()->used_bytes(), limit_bytes);
  ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdWithHash(1, HashAt(kShard, 2))));
  EXPECT_EQ(index->memory()->bytes(), 2 * kHugePageBytes);
  EXPECT_EQ(index.budget()->used_bytes(), limit_bytes);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(IndexMemory, FailsToOpenWithoutTrace) {
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    FailingMemory memory;
    MemoryBudget budget(0);
    EpochTable epochs;
    auto tier = DramTier::Create(&memory, &budget, &epochs, kHugePageBytes);
    ASSERT_TRUE(tier.ok());
    const uint64_t tier_bytes = budget.used_bytes();
    const uint64_t tier_mappings = memory.outstanding();
    memory.FailCall(call);
    const auto index = KeyIndex::Create(&memory, &budget, &epochs, tier->get());
    if (index.ok()) break;
    ++failed;
    EXPECT_EQ(index.status().code(), StatusCode::kResourceExhausted);
    EXPECT_EQ(budget.used_bytes(), tier_bytes) << "call " << call;
    EXPECT_EQ(memory.outstanding(), tier_mappings) << "call " << call;
  }
  EXPECT_EQ(failed, 2u) << "the addresses, and the first page";
}

TEST(IndexMemory, TakesNoMoreThanItsEstimate) {
  IndexWorld index;
  Random random(1);
  constexpr uint64_t kRows = kRandomRows;
  for (uint64_t rows = 1; rows <= kRows; ++rows) {
    ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdOf(0, random.Bits())));
    if (rows % 997 != 0) continue;
    ASSERT_LE(index->memory()->bytes(), IndexBytesMax(rows)) << rows << " rows";
  }
  EXPECT_GE(index->memory()->bytes() * 5 / 4 + kHugePageBytes, IndexBytesMax(kRows));
  EXPECT_LE(index->memory()->bytes(), 16 * kRows + kHugePageBytes);
}

// A log gives rows back by hash: an array that grows meanwhile has no place where they all come.
TEST(IndexMemory, MadeReadyTakesRowsInTheOrderOfTheirHashes) {
  IndexWorld world;
  ASSERT_TRUE(world->capacity()->ReserveRows(kReadyRows).ok());
  const uint64_t bytes = world->memory()->bytes();
  EXPECT_LE(bytes, IndexBytesMax(kReadyRows));
  for (uint64_t i = 0; i < kReadyRows; ++i) {
    const KeyHash hash = i * (~uint64_t{0} / kReadyRows);
    KeyIndex::Shard* const shard = world->shard(KeyIndex::ShardOf(hash));
    MutexLock lock(&shard->mutex);
    ASSERT_TRUE(world->capacity()->ReserveOne(shard, hash).ok()) << "row " << i;
    world->Insert(shard, hash, LocationIn(Tier::kSsd, i));
  }
  EXPECT_EQ(world->memory()->bytes(), bytes);
}

TEST(IndexMemory, MemoryOfShrunkenShardsGoesBackOnce) {
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, 5 * kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const uint64_t full_bytes = index->memory()->bytes();
  EXPECT_EQ(index->memory()->Release(), 0u) << "all of it is in use";
  for (size_t i = 100; i < ids.size(); ++i) ASSERT_NO_FATAL_FAILURE(index.Erase(ids[i]));
  EXPECT_EQ(index->memory()->bytes(), full_bytes) << "kept until someone asks";
  const uint64_t used_bytes = index.budget()->used_bytes();
  const uint64_t released_bytes = index->memory()->Release();
  EXPECT_GE(released_bytes, full_bytes / 2);
  EXPECT_EQ(index->memory()->bytes(), full_bytes - released_bytes);
  EXPECT_EQ(index.budget()->used_bytes(), used_bytes - released_bytes);
  EXPECT_EQ(index.memory()->committed_bytes(),
            index->memory()->bytes() + index.tier()->pool()->committed_bytes());
  EXPECT_EQ(index->memory()->Release(), 0u);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  for (size_t i = 100; i < ids.size(); ++i) ASSERT_NO_FATAL_FAILURE(index.Insert(ids[i]));
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// Rows are erased until so many are left.
TEST(IndexMemory, ShrinksToAQuarterMoreThanAFreshOneTakes) {
  constexpr uint64_t kRows = kRandomRows;
  IndexWorld index;
  std::vector<RowId> ids;
  Random random(2);
  for (uint64_t i = 0; i < kRows; ++i) ids.push_back(IndexWorld::IdOf(0, random.Bits()));
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  EXPECT_EQ(index->capacity()->Shrink(), 0u) << "all of it is in use";
  for (const uint64_t left :
       {kRows * 4 / 5, kRows * 3 / 8, kRows * 3 / 20, kRows / 64, uint64_t{0}}) {
    while (ids.size() > left) {
      ASSERT_NO_FATAL_FAILURE(index.Erase(ids.back()));
      ids.pop_back();
    }
    const uint64_t bytes = index->memory()->bytes();
    const uint64_t used_bytes = index.budget()->used_bytes();
    const uint64_t given_back = index->capacity()->Shrink();
    EXPECT_EQ(index->memory()->bytes(), bytes - given_back);
    EXPECT_EQ(index.budget()->used_bytes(), used_bytes - given_back);
    IndexWorld fresh;
    ASSERT_NO_FATAL_FAILURE(InsertAll(&fresh, ids));
    EXPECT_LE(index->memory()->bytes() * 4, fresh->memory()->bytes() * 5) << left << " rows";
    EXPECT_EQ(index->capacity()->Shrink(), 0u) << left << " rows";
    ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
  }
  for (uint64_t i = 0; i < 10'000; ++i) {
    ids.push_back(IndexWorld::IdOf(1, random.Bits()));
    ASSERT_NO_FATAL_FAILURE(index.Insert(ids.back()));
  }
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// Neither by single erasures nor where it gives memory back; beyond that size it shrinks as ever.
TEST(IndexMemory, ShrinksNotBelowTheRowsForWhichItHasGrownAhead) {
  IndexWorld index;
  index->capacity()->GrowAhead(400'000, UINT64_MAX);
  const uint64_t ahead_bytes = index->memory()->bytes();
  EXPECT_EQ(ahead_bytes, BytesFor(BucketsAhead(400'000)));
  for (const uint32_t rows : {20'000, 600'000}) {
    for (Key key = 0; key < rows; ++key) {
      ASSERT_NO_FATAL_FAILURE(index.Insert(IndexWorld::IdOf(0, key)));
    }
    EXPECT_EQ(index->memory()->bytes() > ahead_bytes, rows > 400'000);
    for (Key key = 0; key < rows; ++key) {
      ASSERT_NO_FATAL_FAILURE(index.Erase(IndexWorld::IdOf(0, key)));
    }
    EXPECT_GE(index->shard(kShard)->buckets(), BucketsAhead(400'000));
    index->capacity()->Shrink();
    EXPECT_EQ(index->memory()->bytes(), ahead_bytes) << rows << " rows";
  }
  index->capacity()->KeepAhead(200'000);
  index->capacity()->KeepAhead(400'000);
  EXPECT_GT(index->capacity()->Shrink(), 0u);
  EXPECT_EQ(index->memory()->bytes(), BytesFor(BucketsAhead(200'000)));
  index->capacity()->KeepAhead(0);
  EXPECT_GT(index->capacity()->Shrink(), 0u);
  EXPECT_EQ(index->memory()->bytes(), kHugePageBytes);
}

TEST(IndexMemory, KeepsWhatGrowsAheadWhileItShrinks) {
  constexpr uint64_t kAheadRows = 400'000;
  IndexWorld index;
  Mutex mutex;
  uint64_t expected_rows = 0;  // under the lock
  index->capacity()->RenewAheadBy([&] {
    MutexLock lock(&mutex);
    index->capacity()->KeepAhead(expected_rows);
  });
  std::atomic<uint64_t> passes{0};
  std::atomic<bool> ends{false};
  std::thread shrinker([&] {
    for (; !ends; ++passes) index->capacity()->Shrink();
  });
  const auto wait_until = [](auto is_there) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
    while (!is_there() && std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return is_there();
  };
  const auto has_places = [&](KeyIndex::Shard* shard) {
    MutexLock lock(&shard->mutex);
    return shard->high_buckets >= BucketsAhead(kAheadRows);
  };
  for (int round = 0; round < 60; ++round) {
    {
      MutexLock lock(&mutex);
      expected_rows = kAheadRows;
      index->capacity()->GrowAhead(kAheadRows, UINT64_MAX);
    }
    EXPECT_TRUE(wait_until([&, begun = passes + 2] { return passes >= begun; }));
    for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
      EXPECT_TRUE(has_places(index->shard(i))) << "round " << round << ", shard " << i;
    }
    {
      MutexLock lock(&mutex);
      expected_rows = 0;
    }
    if (!wait_until([&] { return !has_places(index->shard(0)); })) {
      ADD_FAILURE() << "the index does not shrink, round " << round;
      break;
    }
  }
  ends = true;
  shrinker.join();
}

TEST(IndexMemory, ShrinksNotBelowWhatIsPromised) {
  IndexWorld index;
  KeyIndex::Shard* const shard = index->shard(kShard);
  const std::vector<RowId> ids = SpreadRows(0, kShard, 4 * kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const uint64_t full_bytes = index->memory()->bytes();
  for (size_t i = 10; i < ids.size(); ++i) ASSERT_NO_FATAL_FAILURE(index.Erase(ids[i]));
  shard->promised_rows = ids.size() - 10;
  EXPECT_EQ(index->capacity()->Shrink(), 0u);
  index.memory()->FailEveryCall(true);
  for (size_t i = 10; i < ids.size(); ++i) ASSERT_NO_FATAL_FAILURE(index.Insert(ids[i]));
  index.memory()->FailEveryCall(false);
  EXPECT_EQ(index->memory()->bytes(), full_bytes);
  for (size_t i = 10; i < ids.size(); ++i) ASSERT_NO_FATAL_FAILURE(index.Erase(ids[i]));
  shard->promised_rows = 0;
  EXPECT_GT(index->capacity()->Shrink(), 0u);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// Erased rows pay for it: an eighth of what the index holds.
TEST(IndexMemory, ShrinksByItselfAfterManyErasuresAndNotAfterFew) {
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, 4 * kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const uint64_t full_bytes = index->memory()->bytes();
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index.Erase(id));
  const uint64_t eighth = full_bytes / 64 * 7 / 8;
  index->capacity()->ShrinkAfterErasing(eighth - 1);
  EXPECT_EQ(index->memory()->bytes(), full_bytes);
  index->capacity()->ShrinkAfterErasing(1);
  EXPECT_EQ(index->memory()->bytes(), kHugePageBytes);
}

TEST(IndexMemory, ThatAnotherShardUsesIsKept) {
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, 5 * kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, SpreadRows(1, kShard + 1, 5 * kFirstRowsMax)));
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index.Erase(id));
  EXPECT_EQ(index->memory()->Release(), 0u);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

TEST(IndexMemory, AnArrayShrinksWhenThreeQuartersAreEmptyAndNotBefore) {
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, 5 * kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const KeyIndex::Shard* const shard = index->shard(kShard);
  while (shard->low_buckets != shard->high_buckets) {
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[0]));
    ASSERT_NO_FATAL_FAILURE(index.Insert(ids[0]));
  }
  const uint32_t buckets = shard->high_buckets;
  size_t erased = 0;
  while (shard->low_buckets == buckets) {
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[erased++]));
  }
  EXPECT_EQ(index.rows(), uint64_t{buckets} * 7 / 4 - 1);
  // From half full on it takes as many rows as it lost before it grows again.
  while (shard->low_buckets != shard->high_buckets) {
    ASSERT_NO_FATAL_FAILURE(index.Erase(ids[erased++]));
  }
  EXPECT_LE(shard->high_buckets, buckets / 2 + 512);
  ASSERT_NO_FATAL_FAILURE(index.ExpectAllFound());
}

// Makes a guess at a row, lets the shard shrink behind it, and gives the memory back.
TEST(IndexMemory, AnOldGuessDoesNotReachIntoMemoryThatWentBack) {
  IndexWorld index;
  const std::vector<RowId> ids = SpreadRows(0, kShard, 5 * kFirstRowsMax);
  ASSERT_NO_FATAL_FAILURE(InsertAll(&index, ids));
  const RowId last = IndexWorld::IdWithHash(1, HashAt(kShard, kQuotients - 1));
  ASSERT_NO_FATAL_FAILURE(index.Insert(last));
  const Match guess = index.Guess(last);
  ASSERT_TRUE(guess.any());
  for (const RowId& id : ids) ASSERT_NO_FATAL_FAILURE(index.Erase(id));
  ASSERT_GT(index->memory()->Release(), 0u);
  KeyIndex::Shard* const shard = index->shard(kShard);
  MutexLock lock(&shard->mutex);
  EXPECT_TRUE(index->Confirm(guess, last).any());
}

}  // namespace
}  // namespace embank::test::index_memory_test
