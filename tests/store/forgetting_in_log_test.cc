// Tables of a store with a log that forget: the rows that are forgotten, for which rows, and the
// rows that never are.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/metrics.h"
#include "tests/store/forgetting_rows.h"
#include "tests/support/policies.h"

namespace embank::test::forgetting_in_log_test {
namespace {

#if defined(__SANITIZE_ADDRESS__)
constexpr int kEffort = 1;
#else
constexpr int kEffort = 6;
#endif

class ForgettingInLog : public testing::TestWithParam<EvictionPolicy> {};
INSTANTIATE_TEST_SUITE_P(Policies, ForgettingInLog, PoliciesOfSuite(EvictionPolicy::kClock));

// New rows without an end, and no checkpoint: none is refused, the oldest go, and are counted.
TEST_P(ForgettingInLog, KeepsTheNewestInItsPartOfTheLog) {
  SpillWorld store(1, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  constexpr Key kRows = 24'000;
  for (Key key = 0; key < kRows; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(table->rows() + Forgotten(table), key + kBatch);
    ASSERT_LE(BytesOfRows(&store), kSsdBytes / 2);
  }
  // None too many went.
  EXPECT_EQ(table->rows(), kRowsOfPart);
  EXPECT_EQ(Present(table, KeysFrom(0, kRows)).size(), table->rows());
  EXPECT_EQ(Present(table, KeysFrom(kRows - 6000, 6000)).size(), 6000u);
  EXPECT_EQ(Present(table, KeysFrom(0, 12'000)).size(), 0u);
  ExpectOwnValues(table, KeysFrom(kRows - 8000, 8000));
  EXPECT_NE(
      FormatMetrics(*store.get())
          .find("embank_rows_forgotten_total{table=\"t\"} " + std::to_string(Forgotten(table))),
      std::string::npos);
}

// The log alone limits what a batch does at once: memory has no limit, or space for all rows.
TEST_P(ForgettingInLog, OneBatchForgetsAsItGoes) {
  for (const uint64_t dram_bytes : {uint64_t{0}, uint64_t{1} << 30}) {
    SpillWorld store(12, nullptr, kSsdBytes);
    store.options().dram_bytes = dram_bytes;
    ASSERT_TRUE(store.Open().ok());
    Table* const table = Create(&store, "t", Forgets(GetParam()));
    constexpr Key kRows = 20'000;
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(0, kRows)));
    EXPECT_EQ(table->rows() + Forgotten(table), kRows);
    EXPECT_LE(BytesOfRows(&store), kSsdBytes / 2);
    ExpectOwnValues(table, KeysFrom(0, kRows));
  }
}

// Checkpoints keep forgotten rows for a while, and there is space for them, too.
TEST_P(ForgettingInLog, BesideCheckpointsNothingIsRefused) {
  SpillWorld store(2, nullptr, kSsdBytes);
  Table* table = Create(&store, "t", Forgets(GetParam()));
  constexpr Key kRows = 24'000;
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, kRows, kRowsOfPart / 10 / kBatch * kBatch));
  EXPECT_GT(Forgotten(table), kRows / 2);
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  const std::set<Key> before = Present(table, KeysFrom(0, kRows));
  EXPECT_EQ(before.size(), table->rows());

  ASSERT_TRUE(store.Open().ok());
  table = *store->catalog().Open("t");
  EXPECT_EQ(table->options().on_full, OnFull::kForget);
  EXPECT_EQ(Present(table, KeysFrom(0, kRows)), before);
  ExpectOwnValues(table, KeysFrom(kRows - 8000, 8000));
  // It goes on where it was.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, kRows, kRows + 4000, 800));
  EXPECT_EQ(table->rows() + Forgotten(table), before.size() + 4000);
  EXPECT_LE(BytesOfRows(&store), kSsdBytes / 2);
}

// Rows that are used again and again stay, however long ago they were written.
TEST_P(ForgettingInLog, RowsInUseStay) {
  SpillWorld store(3, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  const std::vector<Key> hot = KeysFrom(0, 300);
  ASSERT_NO_FATAL_FAILURE(Write(table, hot));
  for (Key key = 1000; key < 25'000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(ValuesOf(table, hot).size(), hot.size()) << "behind " << key;
  }
  EXPECT_EQ(Present(table, KeysFrom(1000, 8000)).size(), 0u);
  ExpectOwnValues(table, hot);
}

// A row that was looked up since it was written is spared once: it went back to the log clean.
TEST(ForgettingInLog, RowsLookedUpSinceTheyWereWrittenAreSparedOnce) {
  SpillWorld store(4, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 7000));
  const std::vector<Key> looked_up = KeysFrom(0, 300);
  ASSERT_EQ(ValuesOf(table, looked_up).size(), looked_up.size());
  // Others take their places in memory.
  for (Key key = 2000; key < 6000; key += kBatch) ValuesOf(table, KeysFrom(key, kBatch));
  const auto in_memory = table->rows() - table->rows_in_log();
  ASSERT_LT(in_memory, 2100u);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 10'000, 12'400));
  EXPECT_EQ(Present(table, looked_up).size(), looked_up.size());
  EXPECT_LT(Present(table, KeysFrom(300, 1000)).size(), 100u);
  // They are forgotten after all rows of that time.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 20'000, 32'000));
  EXPECT_EQ(Present(table, looked_up).size(), 0u);
}

// Under LFU it is not age that counts.
TEST(ForgettingInLog, UnderLfuHotRowsOutliveNewerOnes) {
  SpillWorld store(5, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(EvictionPolicy::kLfu));
  const std::vector<Key> hot = KeysFrom(0, 1000);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 1000));
  for (int i = 0; i < 40; ++i) ValuesOf(table, hot);
  // Rows of a little heat. Hot ones leave memory after 16 rounds without a use; then most of them
  // are spared in the log for their heat.
  for (Key key = 1000; key < 16'000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ValuesOf(table, KeysFrom(key, kBatch));
  }
  ASSERT_GT(Forgotten(table), 6000u);
  EXPECT_GT(Present(table, hot).size(), hot.size() * 9 / 10);
  EXPECT_LT(Present(table, KeysFrom(1000, 3000)).size(), 1000u);
}

// The same of rows that are all in the log, with the heat that their records have.
TEST(ForgettingInLog, UnderLfuHotRowsOfTheLogOutliveOthersOfTheirAge) {
  SpillWorld store(11, nullptr, kSsdBytes);
  Table* table = Create(&store, "t", Forgets(EvictionPolicy::kLfu));
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 7000));
  std::vector<Key> hot;
  for (Key key = 0; key < 4000; key += 4) hot.push_back(key);
  for (int i = 0; i < 40; ++i) ValuesOf(table, hot);
  ASSERT_NO_FATAL_FAILURE(Write(table, hot));
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store.Open().ok());
  table = *store->catalog().Open("t");
  ASSERT_EQ(table->rows_in_log(), 7000u);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 10'000, 15'000, 1000));
  EXPECT_EQ(Present(table, hot).size(), hot.size());
  // All others that were as old went.
  EXPECT_EQ(Present(table, KeysFrom(0, 2000)).size(), 500u);
  // The rows that were written last have no heat; the others would be next without theirs.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 20'000, 26'000, 1000));
  EXPECT_GT(Present(table, hot).size(), hot.size() * 9 / 10);
  EXPECT_LT(Present(table, KeysFrom(10'000, 3000)).size(), 1000u);
}

// Where the log's part is less than memory, there is nothing in the log alone.
TEST_P(ForgettingInLog, ASmallLogForgetsTheColdestRowsInMemory) {
  constexpr uint64_t kSmallBytes = uint64_t{16} << 20;
  SpillWorld store(6, nullptr, kSmallBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  for (Key key = 0; key < 8000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(table->rows() + Forgotten(table), key + kBatch);
    ASSERT_LE(BytesOfRows(&store), kSmallBytes / 2);
    if (key % 200 == 0) {
      ASSERT_TRUE(store->checkpoints()->Make({}).ok());
    }
  }
  EXPECT_LT(table->rows_in_log(), 300u);
  EXPECT_EQ(Present(table, KeysFrom(7000, 1000)).size(), 1000u);
  // The coldest rows of each shard are forgotten, and 31 stay. Rows that have just left memory,
  // whose records were written anew meanwhile, may outlive some.
  EXPECT_LT(Present(table, KeysFrom(0, 4000)).size(), 120u);
  ExpectOwnValues(table, KeysFrom(0, 8000));
}

// A row for which one has to go costs a look at one record, or few, also where that is in memory.
TEST(ForgettingInLog, SingleRowsLookAtFewRecords) {
  SpillWorld store(15, nullptr, uint64_t{16} << 20);
  Table* const table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 3000, 200));
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  const uint64_t forgotten = Forgotten(table);
  const uint64_t calls = store.disk().calls();
  constexpr Key kRows = 100;
  for (Key key = 3000; key < 3000 + kRows; ++key) ASSERT_NO_FATAL_FAILURE(Write(table, {key}));
  EXPECT_EQ(Forgotten(table), forgotten + kRows);
  EXPECT_LT(store.disk().calls() - calls, 4 * kRows);
}

// Without a limit of the log it is the index that is full.
TEST(ForgettingInLog, WhereTheIndexIsFullRowsGoForNewOnes) {
  SpillWorld store(7);
  Table* const table = Create(&store, "t", Forgets(EvictionPolicy::kClock, 1));
  constexpr size_t kKeys = 8192;
  uint64_t made = 0;
  uint64_t refused = 0;
  const auto make = [&] {
    std::vector<uint8_t> outcomes(kKeys);
    std::vector<float> rows(kKeys, 1.0f);
    ASSERT_TRUE(Upsert(table, KeysFrom(made, kKeys), RowsOf(rows, 1), outcomes).ok());
    const auto created =
        std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kCreated));
    // But for those whose own place in a full index is full.
    ASSERT_GE(created, static_cast<ptrdiff_t>(kKeys) - 4)
        << made << " rows: " << table->mover()->logs().lowest().space().RefusalReason();
    refused += kKeys - static_cast<uint64_t>(created);
    made += kKeys;
  };
  while (Forgotten(table) == 0 && made < 4'000'000) ASSERT_NO_FATAL_FAILURE(make());
  ASSERT_GT(Forgotten(table), 0u);
  const uint64_t rows = table->rows();
  for (int i = 0; i < 12 * kEffort; ++i) ASSERT_NO_FATAL_FAILURE(make());
  EXPECT_EQ(table->rows() + Forgotten(table) + refused, made);
  // Neither fewer and fewer nor more and more; not all shards were full when the first was.
  EXPECT_GT(table->rows(), rows - rows / 20);
  EXPECT_LT(table->rows(), rows + rows / 8);
  EXPECT_GE(Present(table, KeysFrom(made - 4 * kKeys, 4 * kKeys)).size(), 4 * kKeys - 16);
}

// Keys that were refused where nothing could be forgotten are not made up for later.
TEST(ForgettingInLog, KeysThatWereRefusedAreNotMadeUpForLater) {
  SpillWorld store(16);
  TableOptions refuses = Forgets(EvictionPolicy::kClock, 1);
  refuses.on_full = OnFull::kRefuse;
  Table* const others = Create(&store, "others", refuses);
  Table* const table = Create(&store, "t", Forgets(EvictionPolicy::kClock, 1));
  constexpr size_t kKeys = 8192;
  const std::vector<float> rows(kKeys, 1.0f);
  std::vector<uint8_t> outcomes(kKeys);
  const auto refused = [&] {
    return std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kRefused));
  };
  uint64_t made = 0;
  for (; refused() < 4000 && made < 4'000'000; made += kKeys) {
    ASSERT_TRUE(Upsert(others, KeysFrom(made, kKeys), RowsOf(rows, 1), outcomes).ok());
  }
  ASSERT_GE(refused(), 4000);
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Upsert(table, KeysFrom(0, kKeys), RowsOf(rows, 1), outcomes).ok());
    ASSERT_GT(refused(), 1000) << "the index has no place for them";
  }
  const uint64_t forgotten = Forgotten(table);
  ASSERT_TRUE(store->DropTable("others").ok());
  ASSERT_TRUE(Upsert(table, KeysFrom(0, kKeys), RowsOf(rows, 1), outcomes).ok());
  EXPECT_EQ(refused(), 0);
  ASSERT_TRUE(Upsert(table, KeysFrom(kKeys, kKeys), RowsOf(rows, 1), outcomes).ok());
  EXPECT_EQ(table->rows(), 2 * kKeys);
  EXPECT_EQ(Forgotten(table), forgotten);
}

// Behind a log that has stopped nothing frees space: readable rows stay.
TEST(ForgettingInLog, BehindALogThatHasStoppedNothingIsForgotten) {
  SpillWorld store(17, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, kRowsOfPart));
  store.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kWrite ? UnavailableError("broken") : OkStatus();
  });
  EXPECT_FALSE(store->checkpoints()->Make({}).ok());
  ASSERT_EQ(Forgotten(table), 0u);
  // Rows that are in memory change, and there are more than there may be.
  std::vector<uint8_t> outcomes(kBatch);
  for (Key key = 20'000; key < 21'000; key += kBatch) {
    const std::vector<Key> keys = KeysFrom(key, kBatch);
    ASSERT_TRUE(Upsert(table, keys, RowsOf(RowsOfKeys(keys, 1.0f), kDim), outcomes).ok());
  }
  EXPECT_EQ(Forgotten(table), 0u);
  store.disk().SetFaults(nullptr);
}

// The rows of other tables count, but are not touched.
TEST(ForgettingInLog, RowsOfTablesThatRefuseStay) {
  SpillWorld store(8, nullptr, kSsdBytes);
  Table* const refuses = store.Create("refuses", Optimizer::kSgd);
  Table* const table = Create(&store, "forgets", Forgets());
  EXPECT_NE(refuses->mover(), table->mover());
  for (Key key = 0; key < 12'000; key += kBatch) {
    if (key < 4000) {
      ASSERT_NO_FATAL_FAILURE(Write(refuses, KeysFrom(key, kBatch)));
    }
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
  }
  EXPECT_EQ(Forgotten(refuses), 0u);
  EXPECT_EQ(Present(refuses, KeysFrom(0, 4000)).size(), 4000u);
  ExpectOwnValues(refuses, KeysFrom(0, 4000));
  EXPECT_LE(BytesOfRows(&store), kSsdBytes / 2);
  EXPECT_EQ(Present(table, KeysFrom(9500, 2500)).size(), 2500u);
  EXPECT_EQ(FormatMetrics(*store.get()).find("embank_rows_forgotten_total{table=\"refuses\"}"),
            std::string::npos);
}

// Changes of rows that are there make none, so that none has to go.
TEST(ForgettingInLog, ChangesForgetNothing) {
  SpillWorld store(9, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets());
  constexpr Key kRows = kRowsOfPart;
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, kRows));
  ASSERT_EQ(Forgotten(table), 0u);
  for (float factor = 2.0f; factor < 4.0f; ++factor) {
    for (Key key = 0; key < kRows; key += kBatch) {
      ASSERT_NO_FATAL_FAILURE(
          Write(table, KeysFrom(key, std::min<Key>(kBatch, kRows - key)), factor));
    }
  }
  // Also those of a batch of more keys than there are rows.
  std::vector<Key> keys(2 * kRows);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i % 100;
  const std::vector<float> gradients(keys.size() * kDim);
  ASSERT_TRUE(ApplyGradients(table, keys, RowsOf(gradients, kDim), {}).ok());
  EXPECT_EQ(Forgotten(table), 0u);
  EXPECT_EQ(table->rows(), kRows);
}

// Rows of two sizes: bytes are too many, and age chooses, whichever table makes rows.
TEST(ForgettingInLog, TheOldestGoOfWhateverTable) {
  SpillWorld store(13, nullptr, kSsdBytes);
  constexpr uint32_t kSmallDim = 64;
  Table* small = Create(&store, "small", Forgets(EvictionPolicy::kClock, kSmallDim));
  const std::vector<Key> old_keys = KeysFrom(0, 90'000);
  const std::vector<float> old_rows(old_keys.size() * kSmallDim, 3.0f);
  ASSERT_TRUE(Upsert(small, old_keys, RowsOf(old_rows, kSmallDim), {}).ok());
  ASSERT_EQ(Forgotten(small), 0u);
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store.Open().ok());
  small = *store->catalog().Open("small");
  // Young rows in memory, all others in the log.
  Table* const table = Create(&store, "t", Forgets());
  for (Key key = 0; key < 6000; key += kBatch) {
    ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(key, kBatch)));
    ASSERT_EQ(Forgotten(table), 0u) << "at " << key;
    ASSERT_LE(BytesOfRows(&store), kSsdBytes / 2);
    if (key % 800 == 0) {
      ASSERT_TRUE(store->checkpoints()->Make({}).ok());
    }
  }
  EXPECT_GT(Forgotten(small), 40'000u);
  EXPECT_GT(small->rows(), 10'000u);
  EXPECT_GE(BytesOfRows(&store), kSsdBytes / 2 - kRecordBytes);
}

// A surplus from before shrinks step by step, whatever the batches are.
TEST(ForgettingInLog, ALogThatIsSmallerNowForgetsWithTheNextBatches) {
  SpillWorld store(14, nullptr, 2 * kSsdBytes);
  Table* table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 14'000));
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  store.options().ssd_bytes = kSsdBytes;
  ASSERT_TRUE(store.Open().ok());
  table = *store->catalog().Open("t");
  uint64_t batches = 0;
  for (; BytesOfRows(&store) > kSsdBytes / 2 && batches < 100; ++batches) {
    const uint64_t before = Forgotten(table);
    // Calls that change no rows do their part, too; there may be no space for changes.
    ValuesOf(table, {13'000});
    ASSERT_GT(Forgotten(table), before);
    ASSERT_LE(Forgotten(table), before + 2 * 256);
  }
  EXPECT_EQ(table->rows(), kRowsOfPart);
  EXPECT_EQ(Present(table, KeysFrom(14'000 - 5000, 5000)).size(), 5000u);
}

// Rows of a segment that cannot be read are left where they are; others go.
TEST(ForgettingInLog, DamagedRowsAreNotForgotten) {
  SpillWorld store(10, nullptr, kSsdBytes);
  Table* table = Create(&store, "t", Forgets());
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 7000));
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  store.Close();
  const std::string oldest = "log/" + SegmentName(1);
  const std::vector<std::byte> wrong(64, std::byte{0x5A});
  store.disk().Corrupt(oldest, kBlockBytes + 2 * kRecordBytes + 500, wrong);
  ASSERT_TRUE(store.Open().ok());
  table = *store->catalog().Open("t");
  const uint64_t rows = table->rows();
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 10'000, 16'000, 800));
  EXPECT_EQ(table->rows() + Forgotten(table), rows + 6000);
  EXPECT_EQ(Present(table, KeysFrom(14'000, 2000)).size(), 2000u);
  std::vector<Key> keys = KeysFrom(0, 7000);
  std::vector<float> values(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kDefault, RowsIn(&values, kDim), outcomes).ok());
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kDataLoss)),
            1);
}

}  // namespace
}  // namespace embank::test::forgetting_in_log_test
