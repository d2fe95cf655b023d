// Steps of forgetting in a log for which something is in the way: rows that are pinned, records
// that cannot be read now, rows in memory and other work in between.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/prefetch.h"
#include "store/table/pins.h"
#include "tests/store/forgetting_rows.h"
#include "tests/support/policies.h"
#include "tests/support/random.h"
#include "tests/support/store_contents.h"

namespace embank::test::forgetting_steps_in_log_test {
namespace {

// Rows that the log alone has, and keys of those that are made beside them.
constexpr Key kOldRows = 7000;
constexpr Key kNew = 10'000;
constexpr Key kNewRows = kRowsOfPart - kOldRows;
constexpr size_t kRecordsOfSegment = 60;

// A table of old rows, none of them in memory; the same with all rows that it may have.
Table* MakeOld(SpillWorld* store) {
  Table* table = Create(store, "t", Forgets());
  WriteRange(store, table, 0, kOldRows);
  EXPECT_TRUE((*store)->checkpoints()->Make({}).ok());
  EXPECT_TRUE(store->Open().ok());
  table = *(*store)->catalog().Open("t");
  EXPECT_EQ(table->rows_in_log(), kOldRows);
  return table;
}
Table* MakeFull(SpillWorld* store) {
  Table* const table = MakeOld(store);
  WriteRange(store, table, kNew, kNew + kNewRows);
  EXPECT_EQ(Forgotten(table), 0u);
  return table;
}

Location LocationOf(Table* table, Key key) {
  return table->store().index->Find(table->IdOf(key, table->HashOf(key))).location();
}
uint64_t SegmentOf(Table* table, Key key) {
  return table->mover()->logs().lowest().segments().Hold(LocationOf(table, key))->header.segment_id;
}

// Keys of rows that the log alone has, in the order of their records.
std::vector<Key> InOrderOfTheLog(Table* table, std::vector<Key> keys) {
  std::sort(keys.begin(), keys.end(), [&](Key a, Key b) {
    return std::pair(SegmentOf(table, a), LocationOf(table, a).units) <
           std::pair(SegmentOf(table, b), LocationOf(table, b).units);
  });
  return keys;
}

std::vector<Key> Part(const std::vector<Key>& keys, size_t begin, size_t end) {
  return {keys.begin() + static_cast<ptrdiff_t>(begin), keys.begin() + static_cast<ptrdiff_t>(end)};
}

// ---- rows that are pinned ----

class PinnedRowsInLog : public testing::TestWithParam<EvictionPolicy> {
 protected:
  static constexpr uint32_t kShard = 7;

  static std::vector<Key> KeysOfShard(Table* table, size_t count) {
    std::vector<Key> keys;
    for (Key key = 0; keys.size() < count; ++key) {
      if (KeyIndex::ShardOf(table->HashOf(key)) == kShard) keys.push_back(key);
    }
    return keys;
  }
  static void Pin(Table* table, const std::vector<Key>& keys) {
    KeyIndex::Shard* const shard = table->store().index->shard(kShard);
    MutexLock lock(&shard->mutex);
    for (const Key key : keys) table->mover()->rows().pins().Pin(LocationOf(table, key));
  }
  static bool ForgetColdest(Table* table) {
    KeyIndex::Shard* const shard = table->store().index->shard(kShard);
    const BatchGate::WriteGuard write_guard(table->store().gate);
    MutexLock lock(&shard->mutex);
    return table->mover()->compacted().ForgetColdest(shard);
  }
};
INSTANTIATE_TEST_SUITE_P(Policies, PinnedRowsInLog, PoliciesOfSuite(EvictionPolicy::kLfu));

// The coldest eight are pinned: under LFU they stay the coldest, whatever goes.
TEST_P(PinnedRowsInLog, StayWhileOthersOfTheirShardGo) {
  SpillWorld store(1, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  const std::vector<Key> keys = KeysOfShard(table, 20);
  const std::vector<Key> pinned = Part(keys, 0, 8);
  const std::vector<Key> others = Part(keys, 8, 20);
  ASSERT_NO_FATAL_FAILURE(Write(table, keys));
  LookUp(table, others);
  ASSERT_NO_FATAL_FAILURE(Pin(table, pinned));
  for (size_t gone = 1; gone <= others.size(); ++gone) {
    ASSERT_TRUE(ForgetColdest(table));
    ASSERT_EQ(table->rows(), keys.size() - gone);
    ASSERT_EQ(Present(table, pinned).size(), pinned.size()) << gone << " rows went";
  }
  EXPECT_FALSE(ForgetColdest(table));
  EXPECT_EQ(Forgotten(table), others.size());
  ExpectOwnValues(table, pinned);
  // Their pins lapse.
  for (uint32_t batch = 0; batch < Pins::kBatches; ++batch) LookUp(table, {others[0]});
  for (size_t gone = 1; gone <= pinned.size(); ++gone) {
    ASSERT_TRUE(ForgetColdest(table));
    EXPECT_EQ(Present(table, pinned).size(), pinned.size() - gone);
  }
  EXPECT_FALSE(ForgetColdest(table));
}

// More than it looks at are pinned: none goes, and none is out of the order for it.
TEST_P(PinnedRowsInLog, WhereOnlyTheyAreNextNoneGoes) {
  SpillWorld store(2, nullptr, kSsdBytes);
  Table* const table = Create(&store, "t", Forgets(GetParam()));
  const std::vector<Key> keys = KeysOfShard(table, 24);
  const std::vector<Key> others = Part(keys, 9, 24);
  ASSERT_NO_FATAL_FAILURE(Write(table, keys));
  LookUp(table, others);
  ASSERT_NO_FATAL_FAILURE(Pin(table, Part(keys, 0, 9)));
  EXPECT_FALSE(ForgetColdest(table));
  EXPECT_EQ(table->rows(), keys.size());
  for (uint32_t batch = 0; batch < Pins::kBatches; ++batch) LookUp(table, {kNew});
  for (size_t gone = 1; gone <= keys.size(); ++gone) ASSERT_TRUE(ForgetColdest(table));
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_EQ(BytesOfRows(&store), 0u);
}

// A store has all rows in memory: as many rows are forgotten as come. In so few segments, half of
// them living, a batch now and then finds no unreserved space until the next checkpoint.
TEST_P(PinnedRowsInLog, OthersGoForNewOnes) {
  constexpr uint64_t kSmallBytes = uint64_t{16} << 20;
  constexpr size_t kPinned = 100;
  constexpr uint64_t kRows = kSmallBytes / 2 / kRecordBytes;
  constexpr Key kFew = 100;
  uint64_t refused_batches = 0;
  for (const uint64_t seed : {1, 2, 3}) {
    SpillWorld store(seed, nullptr, kSmallBytes);
    Table* const table = Create(&store, "t", Forgets(GetParam()));
    ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, 0, 3000, 200));
    ASSERT_TRUE(store->checkpoints()->Make({}).ok());
    std::vector<Key> keys;
    for (const Key key : Present(table, KeysFrom(0, 3000))) keys.push_back(key);
    ASSERT_EQ(keys.size(), kRows);
    const std::vector<Key> pinned = Part(keys, 0, kPinned);
    LookUp(table, Part(keys, kPinned, keys.size()));
    ASSERT_TRUE(Prefetch(table, pinned).ok());
    ASSERT_EQ(table->store().pins->used_bytes(), pinned.size() * table->layout().row_bytes);
    for (Key key = kNew; key < kNew + 8000; key += kFew) {
      const std::vector<Key> few = KeysFrom(key, kFew);
      if (!Upsert(table, few, RowsOf(RowsOfKeys(few, 1.0f), kDim), {}).ok()) {
        ++refused_batches;
        ASSERT_TRUE(store->checkpoints()->Make({}).ok());
        ASSERT_NO_FATAL_FAILURE(Write(table, few));
      }
      ASSERT_TRUE(store->checkpoints()->Make({}).ok());
      ASSERT_EQ(Present(table, pinned).size(), pinned.size()) << "at " << key;
      ASSERT_EQ(table->rows(), kRows) << "at " << key;
    }
    ExpectOwnValues(table, pinned);
  }
  EXPECT_LE(refused_batches, 2u) << "of 240";
}

// ---- records that cannot be read now ----

// While one lives, reads of files fail whose paths have this part. Not without an end: endless
// attempts are noticed.
class Unreadable {
 public:
  static constexpr uint64_t kReadsMax = 50'000;

  Unreadable(SimulatedDisk* disk, std::string part, uint64_t one_in = 1) : disk_(disk) {
    disk->SetFaults([this, part = std::move(part), one_in](const DiskCall& call) {
      const bool is_meant =
          call.kind == DiskCall::Kind::kRead && call.path.find(part) != std::string::npos;
      reads_ += is_meant ? 1 : 0;
      const bool fails = is_meant && reads_ < kReadsMax && random_.OneIn(one_in);
      return fails ? UnavailableError("input/output error (EIO)") : OkStatus();
    });
  }
  ~Unreadable() { disk_->SetFaults(nullptr); }
  Unreadable(const Unreadable&) = delete;
  Unreadable& operator=(const Unreadable&) = delete;

  uint64_t reads() const { return reads_; }

 private:
  SimulatedDisk* const disk_;
  Random random_{1};
  uint64_t reads_ = 0;
};

// It tries one step for each batch, and gives up for then.
TEST(ForgettingStepsInLog, RowsThatTheDeviceDoesNotReadAreForgottenLater) {
  SpillWorld store(4, nullptr, kSsdBytes);
  Table* const table = MakeFull(&store);
  Key next = kNew + kNewRows;
  {
    const Unreadable device(&store.disk(), "segment-");
    for (int batch = 0; batch < 5; ++batch, next += kBatch) {
      const uint64_t reads = device.reads();
      ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(next, kBatch)));
      EXPECT_GT(device.reads(), reads);
      EXPECT_LT(device.reads(), reads + 2 * kRecordsOfSegment);
    }
    EXPECT_EQ(Forgotten(table), 0u);
    EXPECT_EQ(table->rows(), kRowsOfPart + 5 * kBatch);
    // A lookup of such a row reports its loss.
    std::vector<float> row(kDim);
    EXPECT_TRUE(
        IsDataLoss(Lookup(table, std::vector<Key>{0}, MissingRule::kZero, RowsIn(&row, kDim), {})));
  }
  ASSERT_EQ(Present(table, KeysFrom(0, next)).size(), table->rows());
  LookUp(table, {next});
  EXPECT_LT(table->rows(), kRowsOfPart + 5 * kBatch) << "it goes on";
  ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(next, kBatch)));
  next += kBatch;
  EXPECT_EQ(table->rows(), kRowsOfPart);
  EXPECT_EQ(Forgotten(table), 6 * kBatch);
  // A row that could not be read then is forgotten when half of the log behind it has been.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, next, next + 5000, 800));
  next += 5000;
  EXPECT_EQ(Present(table, KeysFrom(0, 3000)).size(), 0u);
  EXPECT_EQ(Present(table, KeysFrom(next - 5000, 5000)).size(), 5000u);
  ExpectOwnValues(table, KeysFrom(0, next));
}

// Until there is no space; then rows are refused, and it says so, and none is lost.
TEST(ForgettingStepsInLog, RowsAreRefusedWhereALogRunsFullMeanwhile) {
  SpillWorld store(5, nullptr, kSsdBytes);
  Table* const table = MakeFull(&store);
  Key next = kNew + kNewRows;
  {
    const Unreadable device(&store.disk(), "segment-");
    Status status;
    for (int batch = 0; batch < 100 && status.ok(); ++batch, next += kBatch) {
      const std::vector<Key> keys = KeysFrom(next, kBatch);
      status = Upsert(table, keys, RowsOf(RowsOfKeys(keys, 1.0f), kDim), {});
    }
    EXPECT_TRUE(IsResourceExhausted(status)) << status;
    EXPECT_LT(device.reads(), Unreadable::kReadsMax);
    EXPECT_EQ(Forgotten(table), 0u);
    EXPECT_TRUE(store->checkpoints()->Make({}).ok());
  }
  const uint64_t next_segment = table->mover()->logs().lowest().segments().next_segment_id();
  const uint64_t made = table->rows();
  EXPECT_GT(made, kRowsOfPart + 1000);
  EXPECT_EQ(Present(table, KeysFrom(0, next)).size(), made);
  // Batches that change nothing forget, too.
  for (int batch = 0; batch < 100 && table->rows() > kRowsOfPart; ++batch) {
    const uint64_t before = Forgotten(table);
    LookUp(table, {next});
    ASSERT_GT(Forgotten(table), before);
  }
  EXPECT_EQ(table->rows(), kRowsOfPart);
  EXPECT_EQ(Forgotten(table), made - kRowsOfPart);
  // The two that are kept have more.
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  // Nothing is left behind for it.
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, next, next + 12'000, 800));
  EXPECT_EQ(table->rows(), kRowsOfPart);
  for (const Key key : Present(table, KeysFrom(0, kNew))) {
    EXPECT_GE(SegmentOf(table, key), next_segment) << "it was not written anew meanwhile";
  }
  ExpectOwnValues(table, KeysFrom(0, next + 12'000));
}

// A file of the log that cannot be read stays; others' rows go.
TEST(ForgettingStepsInLog, OneUnreadableSegmentDoesNotStopIt) {
  SpillWorld store(6, nullptr, kSsdBytes);
  Table* const table = MakeFull(&store);
  const std::vector<Key> order = InOrderOfTheLog(table, KeysFrom(0, kOldRows));
  const uint64_t oldest = SegmentOf(table, order[0]);
  const std::vector<Key> unread = Part(order, 0, kRecordsOfSegment);
  ASSERT_EQ(SegmentOf(table, unread.back()), oldest);
  ASSERT_NE(SegmentOf(table, order[kRecordsOfSegment]), oldest);
  Key next = kNew + kNewRows;
  uint64_t reads = 0;
  {
    const Unreadable file(&store.disk(), SegmentName(oldest));
    ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, next, next + 12'000, 800));
    reads = file.reads();
  }
  next += 12'000;
  EXPECT_EQ(table->rows(), kRowsOfPart);
  EXPECT_EQ(Present(table, unread).size(), unread.size());
  EXPECT_EQ(Present(table, Part(order, unread.size(), order.size())).size(), 0u);
  EXPECT_GT(reads, 2 * kRecordsOfSegment) << "it is tried again";
  EXPECT_LT(reads, 8 * kRecordsOfSegment) << "now and then";
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, next, next + 6000, 800));
  EXPECT_EQ(Present(table, unread).size(), 0u) << "it can be read again";
  EXPECT_EQ(table->rows(), kRowsOfPart);
}

// Some records of a step can be read, and some cannot.
TEST(ForgettingStepsInLog, BehindADeviceThatFailsNowAndThenRowsAreCountedOnce) {
  SpillWorld store(7, nullptr, kSsdBytes);
  Table* const table = MakeFull(&store);
  Key next = kNew + kNewRows;
  uint64_t rows_max = 0;
  {
    const Unreadable device(&store.disk(), "segment-", 4);
    for (int batch = 1; batch <= 60; ++batch, next += kBatch) {
      ASSERT_NO_FATAL_FAILURE(Write(table, KeysFrom(next, kBatch)));
      ASSERT_EQ(table->rows() + Forgotten(table), kOldRows + next + kBatch - kNew);
      rows_max = std::max(rows_max, table->rows());
      if (batch % 4 == 0) {
        ASSERT_TRUE(store->checkpoints()->Make({}).ok());
      }
    }
    EXPECT_LT(device.reads(), Unreadable::kReadsMax);
  }
  EXPECT_GT(rows_max, kRowsOfPart) << "nothing failed";
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, next, next + 8000, 800));
  EXPECT_EQ(table->rows(), kRowsOfPart);
  EXPECT_EQ(Present(table, KeysFrom(0, next + 8000)).size(), table->rows());
  ExpectOwnValues(table, KeysFrom(0, next + 8000));
}

// ---- other work in between ----

// After each row comes a checkpoint, which looks for space elsewhere: the next step goes on with
// the record behind the last one.
TEST(ForgettingStepsInLog, GoesOnWhereItWasBehindOtherWork) {
  SpillWorld store(8, nullptr, kSsdBytes);
  Table* const table = MakeFull(&store);
  const std::vector<Key> order = InOrderOfTheLog(table, KeysFrom(0, kOldRows));
  for (size_t gone = 1; gone <= 150; ++gone) {
    ASSERT_NO_FATAL_FAILURE(Write(table, {kNew + 5000 + gone}));
    ASSERT_TRUE(store->checkpoints()->Make({}).ok());
    ASSERT_EQ(Forgotten(table), gone);
    ASSERT_EQ(Present(table, Part(order, 0, gone)).size(), 0u);
  }
}

// Rows in memory stay, and their records too when no more may be written anew: in front of the
// others of their segment. They are looked at once, however often other work comes between.
TEST(ForgettingStepsInLog, DoesNotBeginItsSegmentAnewBehindOtherWork) {
  SpillWorld store(9, nullptr, kSsdBytes);
  Table* const table = MakeOld(&store);
  const std::vector<Key> order = InOrderOfTheLog(table, KeysFrom(0, kOldRows));
  // Ten segments, and half of the next, are in memory, too: more than are written anew.
  constexpr size_t kSegments = 10;
  const size_t half = kSegments * kRecordsOfSegment + kRecordsOfSegment / 2;
  ASSERT_TRUE(Prefetch(table, Part(order, 0, half)).ok());
  ASSERT_EQ(table->rows_in_log(), kOldRows - half);
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, kNew, kNew + kNewRows));
  Key next = kNew + kNewRows;
  ASSERT_NO_FATAL_FAILURE(WriteRange(&store, table, next, next + kSegments * kBatch));
  next += kSegments * kBatch;
  ASSERT_EQ(Forgotten(table), kSegments * kBatch) << "of memory";
  ASSERT_EQ(Present(table, order).size(), order.size());
  for (size_t i = 0; i < kRecordsOfSegment - 10; ++i) {
    ASSERT_NO_FATAL_FAILURE(Write(table, {next++}));
    ASSERT_TRUE(store->checkpoints()->Make({}).ok());
  }
  EXPECT_EQ(table->rows(), kRowsOfPart);
  const size_t gone = kRecordsOfSegment - 10 - kRecordsOfSegment / 2;
  EXPECT_EQ(Present(table, Part(order, half, half + gone)).size(), 0u);
  EXPECT_EQ(Present(table, order).size(), order.size() - gone);
}

}  // namespace
}  // namespace embank::test::forgetting_steps_in_log_test
