// Rows in device memory: they are those with the most heat, they change there, and they leave it as
// they are.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gpu/twin.h"
#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/device/device_lookup.h"
#include "store/payload/payload_list.h"
#include "store/payload/payload_rows.h"
#include "store/payload/staged_rows.h"
#include "store/payload/topk_flush.h"
#include "store/placement/heat_clock.h"
#include "store/placement/page_mover.h"
#include "store/placement/row_mover.h"
#include "store/store.h"
#include "tests/support/dirty_rows.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/random.h"
#include "tests/support/row_values.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"
#include "tests/support/store_world.h"

namespace embank::test::hbm_rows_test {
namespace {

constexpr uint32_t kPayloadBytes = kDim * sizeof(float);
constexpr uint64_t kHbmBytes = uint64_t{1} << 20;
constexpr uint64_t kHbmRowsMax = kHbmBytes / kPayloadBytes;

// A store with a path and device memory for 256 rows, which is flushed by hand.
class HbmWorld {
 public:
  HbmWorld() : world_(0) {
    if (!WithHbm()) world_.AddHbmOptions(kHbmBytes);
    Open();
    table_ = world_.Create("t", Optimizer::kNone);
  }

  Store* operator->() { return world_.get(); }
  SpillWorld& world() { return world_; }
  Table* table() { return table_; }

  void Open() {
    const Status opened = world_.Open();
    ASSERT_TRUE(opened.ok()) << opened;
  }
  void Reopen() {
    Open();
    table_ = *world_->catalog().Open("t");
  }
  void Flush() {
    const Status flushed = world_->topk_flush()->FlushNow();
    ASSERT_TRUE(flushed.ok()) << flushed;
  }
  // Makes these rows the hottest.
  void Heat(const std::vector<Key>& keys, int lookups = 10) {
    for (int i = 0; i < lookups; ++i) LookUp(table_, keys);
    Flush();
  }
  bool HasDevicePayload(Key key) const {
    const Match match = table_->store().index->Find(table_->IdOf(key, table_->HashOf(key)));
    return match.any() && match.location().tier() == Tier::kHbm;
  }
  size_t CountPayloads(const std::vector<Key>& keys) const {
    return static_cast<size_t>(
        std::ranges::count_if(keys, [&](Key key) { return HasDevicePayload(key); }));
  }

 private:
  SpillWorld world_;
  Table* table_ = nullptr;
};

float ValueOf(Table* table, Key key) {
  std::vector<float> row(kDim, -1.0f);
  EXPECT_TRUE(Lookup(table, KeySpan(&key, 1), MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
  EXPECT_EQ(std::count(row.begin(), row.end(), row[0]), kDim) << "a torn row of key " << key;
  return row[0];
}

void ExpectFactor(Table* table, const std::vector<Key>& keys, float factor) {
  for (const Key key : keys) {
    ASSERT_EQ(ValueOf(table, key), factor * static_cast<float>(key)) << "key " << key;
  }
}

TEST(HbmRows, AreThoseWithTheMostHeat) {
  HbmWorld world;
  const std::vector<Key> all = KeysFrom(1, 1200);
  const std::vector<Key> hot = KeysFrom(401, 200);
  Put(world.table(), all, 2.0f);
  world.Heat(hot);
  EXPECT_EQ(world.CountPayloads(hot), hot.size());
  EXPECT_EQ(world.table()->rows_in(Tier::kHbm), kHbmRowsMax);
  EXPECT_GE(world->payloads()->memory().slots().taken_bytes(), kHbmBytes * 99 / 100);
  ExpectFactor(world.table(), all, 2.0f);
  EXPECT_EQ(world.table()->rows(), all.size());
}

// A page has a rest for which no row is planned: the row that found no slot could be the hottest.
TEST(HbmRows, AreThoseWithTheMostHeatWherePagesHaveARest) {
  HbmWorld world;
  Table* const table = world.world().Create("rest", Optimizer::kNone, kDim - 16);
  Put(table, KeysFrom(1, 600), 2.0f);
  for (int i = 0; i < 5; ++i) LookUp(table, KeysFrom(1, 600));
  for (int i = 0; i < 20; ++i) LookUp(table, KeysFrom(501, 100));
  world.Flush();
  EXPECT_EQ(table->rows_in(Tier::kHbm), kHbmRowsMax);
  for (const Key key : KeysFrom(501, 100)) {
    const RowId id = table->IdOf(key, table->HashOf(key));
    EXPECT_EQ(table->store().index->Find(id).location().tier(), Tier::kHbm) << "key " << key;
  }
}

TEST(HbmRows, AreReplacedWhenOthersGetHotter) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 1200), 2.0f);
  world.Heat(KeysFrom(1, 256));
  world.Heat(KeysFrom(601, 256), 20);
  EXPECT_EQ(world.CountPayloads(KeysFrom(1, 256)), 0u);
  EXPECT_EQ(world.CountPayloads(KeysFrom(601, 256)), 256u);
  ExpectFactor(world.table(), KeysFrom(1, 1200), 2.0f);
}

TEST(HbmRows, StayWhereOthersAreOnlyALittleHotter) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 600), 2.0f);
  world.Heat(KeysFrom(1, 256), 20);
  world.Heat(KeysFrom(301, 256), 24);
  EXPECT_EQ(world.CountPayloads(KeysFrom(1, 256)), 256u);
  world.Heat(KeysFrom(301, 256), 2);
  EXPECT_EQ(world.CountPayloads(KeysFrom(301, 256)), 256u) << "26 is more than 1.25 times 20";
}

TEST(HbmRows, ThatChangedLeaveAsTheyAre) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 1200), 2.0f);
  world.Heat(KeysFrom(1, 256));
  Put(world.table(), KeysFrom(1, 100), 7.0f);
  ExpectFactor(world.table(), KeysFrom(1, 100), 7.0f);
  ExpectFactor(world.table(), KeysFrom(101, 156), 2.0f);
  world.Heat(KeysFrom(601, 256), 20);
  EXPECT_EQ(world.CountPayloads(KeysFrom(1, 256)), 0u);
  EXPECT_GE(world->payloads()->counters().written_back_rows, 100u);
  ExpectFactor(world.table(), KeysFrom(1, 100), 7.0f);
  ExpectFactor(world.table(), KeysFrom(101, 156), 2.0f);
}

TEST(HbmRows, TakeTheLastOfTwoUpsertsOfOneKey) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 300), 2.0f);
  world.Heat(KeysFrom(1, 10));
  const std::vector<Key> twice = {5, 6, 5, 5};
  std::vector<float> rows(twice.size() * kDim);
  for (size_t i = 0; i < twice.size(); ++i) {
    std::fill_n(rows.begin() + static_cast<ptrdiff_t>(i * kDim), kDim,
                100.0f + static_cast<float>(i));
  }
  ASSERT_TRUE(world.HasDevicePayload(5) && world.HasDevicePayload(6));
  ASSERT_TRUE(Upsert(world.table(), twice, RowsOf(rows, kDim), {}).ok());
  EXPECT_EQ(ValueOf(world.table(), 5), 103.0f);
  EXPECT_EQ(ValueOf(world.table(), 6), 101.0f);
}

TEST(HbmRows, StepInDeviceMemoryWithTheirState) {
  HbmWorld world;
  Table* const table = world.world().Create("steps", Optimizer::kAdagrad, 8);
  Table* const same = world.world().Create("same", Optimizer::kAdagrad, 8);
  const std::vector<Key> keys = KeysFrom(1, 50);
  std::vector<float> rows(keys.size() * 8, 1.0f);
  std::vector<float> gradients(keys.size() * 8);
  Random random(3);
  for (Table* const one : {table, same}) {
    ASSERT_TRUE(Upsert(one, keys, RowsOf(rows, 8), {}).ok());
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, 8), {}).ok());
  }
  world.Flush();
  EXPECT_EQ(table->rows_in(Tier::kHbm), keys.size());
  for (int step = 0; step < 3; ++step) {
    for (float& value : gradients) value = random.Signed();
    // The second one is in DRAM for half of its steps at least.
    for (Table* const one : {table, same}) {
      ASSERT_TRUE(ApplyGradients(one, keys, RowsOf(gradients, 8), {}).ok());
    }
  }
  std::vector<float> state(keys.size() * 8);
  std::vector<float> same_state(keys.size() * 8);
  std::vector<float> same_rows(keys.size() * 8);
  ASSERT_TRUE(GetState(table, keys, RowsIn(&state, 8), {}).ok());
  ASSERT_TRUE(GetState(same, keys, RowsIn(&same_state, 8), {}).ok());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, 8), {}).ok());
  ASSERT_TRUE(Lookup(same, keys, MissingRule::kZero, RowsIn(&same_rows, 8), {}).ok());
  EXPECT_EQ(rows, same_rows);
  EXPECT_EQ(state, same_state);
}

TEST(HbmRows, ADroppedTableLeavesNoHbmRows) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 300), 2.0f);
  world.Heat(KeysFrom(1, 256));
  ASSERT_TRUE(world->DropTable("t").ok());
  Table* const again = world.world().Create("t", Optimizer::kNone);
  std::vector<Key> keys(1);
  std::vector<float> row(kDim);
  Scan scan(again);
  const StatusOr<uint64_t> found = scan.Next(keys, RowsIn(&row, kDim));
  ASSERT_TRUE(found.ok()) << found.status();
  EXPECT_EQ(*found, 0u);
  EXPECT_EQ(world->payloads()->memory().slots().taken_bytes(), 0u);
}

TEST(HbmRows, ThatAreErasedFreeTheirPlaces) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 600), 2.0f);
  world.Heat(KeysFrom(1, 256));
  ASSERT_TRUE(Erase(world.table(), KeysFrom(1, 200), {}).ok());
  EXPECT_EQ(world.table()->rows_in(Tier::kHbm), 56u);
  EXPECT_EQ(world->payloads()->memory().slots().taken_bytes(), 56 * uint64_t{kPayloadBytes});
  world.Flush();
  EXPECT_EQ(world.table()->rows_in(Tier::kHbm), kHbmRowsMax);
  const StatusOr<Rows> rows = ReadAll(world.table());
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(rows->size(), 400u);
}

// The rows of a batch are erased between its look at the index and its work on the device, and the
// memory of their headers goes.
TEST(HbmRows, RowsOfABatchUnderWayMayBeErased) {
  HbmWorld world;
  Table* const table = world.table();
  const std::vector<Key> keys = KeysFrom(1, 200);
  Put(table, keys, 2.0f);
  world.Heat(keys);
  ASSERT_EQ(world.CountPayloads(keys), keys.size());
  PayloadList hot;
  ASSERT_TRUE(hot.Allocate(table->store().payloads, keys.size()).ok());
  {
    PayloadList::Part part(&hot, 0);
    for (uint32_t i = 0; i < keys.size(); ++i) {
      const RowId id = table->IdOf(keys[i], table->HashOf(keys[i]));
      part.Add(i, table->store().index->Find(id).location());
    }
  }
  ASSERT_TRUE(Erase(table, keys, {}).ok());
  EXPECT_GT(table->store().tier->pool()->ReleaseEmptyPages(), 0u);
  const PayloadGuard guard(table->store().payloads);
  uint64_t read = 0;
  const Status status = hot.Read(kVectorInPayload, table->layout().vector_bytes,
                                 [&](const PayloadPosition& at, const std::byte* vector) {
                                   float value = 0;
                                   std::memcpy(&value, vector, sizeof value);
                                   EXPECT_EQ(value, 2.0f * static_cast<float>(keys[at.number]));
                                   ++read;
                                 });
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(read, keys.size());
}

TEST(HbmRows, AreSavedByACheckpoint) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 600), 2.0f);
  world.Heat(KeysFrom(1, 256));
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const CheckpointReport before = world->checkpoints()->Report();
  Put(world.table(), KeysFrom(1, 300), 3.0f);
  ASSERT_NO_FATAL_FAILURE(ExpectDirtyBits(&*world.world()));
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_NO_FATAL_FAILURE(ExpectDirtyBits(&*world.world()));
  EXPECT_EQ(world->checkpoints()->Report().visited_slots - before.visited_slots, 300u);
  EXPECT_EQ(world->checkpoints()->Report().flushed_rows - before.flushed_rows, 300u);
  Put(world.table(), KeysFrom(1, 300), 4.0f);  // not saved
  world.Reopen();
  ExpectFactor(world.table(), KeysFrom(1, 300), 3.0f);
  ExpectFactor(world.table(), KeysFrom(301, 300), 2.0f);
}

TEST(HbmRows, ComeBackByTheirSavedHeat) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 600), 2.0f);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  world.Heat(KeysFrom(101, 256));
  const std::vector<Key> one = {150};
  std::vector<uint32_t> before(1);
  std::vector<uint32_t> after(1);
  ASSERT_TRUE(GetHeat(world.table(), one, before, {}).ok());
  EXPECT_EQ(before[0], 10u);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  world.Reopen();
  ASSERT_TRUE(GetHeat(world.table(), one, after, {}).ok());
  EXPECT_EQ(after[0], before[0]);
  LookUp(world.table(), KeysFrom(1, 600));
  world.Flush();
  EXPECT_EQ(world.CountPayloads(KeysFrom(101, 256)), 256u);
}

// A stamp counts 127 epochs: one that is never renewed would be taken for a later one.
TEST(HbmRows, CoolDownHoweverLongNobodyLooksAtThem) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 300), 2.0f);
  world.Heat(KeysFrom(1, 256), 30);
  const std::vector<Key> one = {100};
  std::vector<uint32_t> heat(1);
  HeatClock* const clock = world.table()->store().heat_clock;
  for (int epoch = 0; epoch < 300; ++epoch) {
    clock->Count(uint64_t{1} << 20);
    ASSERT_TRUE(GetHeat(world.table(), one, heat, {}).ok());
    ASSERT_EQ(heat[0], epoch < 5 ? 30u >> (epoch + 1) : 0u) << "epoch " << epoch + 1;
  }
}

TEST(HbmRows, CoolDownInEpochsThatEndEarly) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 300), 2.0f);
  world.Heat(KeysFrom(1, 256), 30);
  HeatClock* const clock = world.table()->store().heat_clock;
  std::vector<uint32_t> heat(300);
  clock->EndEpochs(2);
  ASSERT_TRUE(GetHeat(world.table(), KeysFrom(1, 300), heat, {}).ok());
  EXPECT_EQ(std::count(heat.begin(), heat.end(), 30u >> 2), 256);
  for (int step = 0; step < 60; ++step) {
    clock->EndEpochs(6);
    ASSERT_TRUE(GetHeat(world.table(), KeysFrom(1, 300), heat, {}).ok());
    EXPECT_EQ(std::count(heat.begin(), heat.end(), 0u), 300) << clock->epochs() << " epochs";
  }
}

TEST(HbmRows, KnowTheirRecordsWhereCompactionMovesThem) {
  HbmWorld world;
  Table* const table = world.table();
  Put(table, KeysFrom(1, 600), 2.0f);
  world.Heat(KeysFrom(1, 256));
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  RowMover* const mover = table->mover();
  for (const Key key : KeysFrom(1, 256)) {
    const RowId id = table->IdOf(key, table->HashOf(key));
    KeyIndex::Shard* const shard = table->store().index->shard(KeyIndex::ShardOf(id.hash));
    const Location location = table->store().index->Find(id).location();
    ASSERT_EQ(location.tier(), Tier::kHbm);
    const Location from{mover->rows().NoteAt(location).logged};
    ASSERT_TRUE(from.IsInLog());
    RecordScratch scratch;
    const auto record = mover->logs().lowest().reader().ReadOne(from, &scratch);
    ASSERT_TRUE(record.ok()) << record.status();
    MutexLock lock(&shard->mutex);
    ASSERT_TRUE(mover->compacted().Relocate(shard, id, from, *record));
    EXPECT_NE(mover->rows().NoteAt(location).logged, from.units);
  }
  Put(table, KeysFrom(1, 100), 9.0f);
  world.Heat(KeysFrom(301, 256), 200);
  EXPECT_EQ(world.CountPayloads(KeysFrom(1, 256)), 0u);
  for (Key first = 1001; first < 4000; first += 500) Put(table, KeysFrom(first, 500), 1.0f);
  ExpectFactor(table, KeysFrom(1, 100), 9.0f);
  ExpectFactor(table, KeysFrom(101, 156), 2.0f);
}

TEST(HbmRows, AreAllThatThereIsWhereItFits) {
  HbmWorld world;
  Put(world.table(), KeysFrom(1, 100), 2.0f);
  world.Flush();
  EXPECT_EQ(world.table()->rows_in(Tier::kHbm), 100u);
  EXPECT_TRUE(world->topk_flush()->Report().fits_all);
  // New rows go up behind the batch that created them.
  Put(world.table(), KeysFrom(101, 100), 2.0f);
  EXPECT_EQ(world.table()->rows_in(Tier::kHbm), 200u);
  Put(world.table(), KeysFrom(201, 300), 2.0f);
  EXPECT_EQ(world.table()->rows_in(Tier::kHbm), kHbmRowsMax);
  world.Heat(KeysFrom(301, 200));
  EXPECT_FALSE(world->topk_flush()->Report().fits_all);
  EXPECT_EQ(world.CountPayloads(KeysFrom(301, 200)), 200u);
  ExpectFactor(world.table(), KeysFrom(1, 500), 2.0f);
}

// Threads look rows up, change them and renew the HBM rows at once: each row is whole, and in the
// end has its last value.
TEST(HbmRows, AreWholeWhileTheyMove) {
  SpillWorld world(0, MakeThreadPool(2));
  if (!WithHbm()) world.AddHbmOptions(kHbmBytes);
  ASSERT_TRUE(world.Open(false, MakeThreadPool(2)).ok());
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(1, 600), 1.0f);
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kRounds = 30;
#else
  constexpr int kRounds = 200;
#endif
  std::atomic<bool> stop{false};
  std::thread flusher([&] {
    while (!stop) ASSERT_TRUE(world->topk_flush()->FlushNow().ok());
  });
  std::thread saver([&] {
    while (!stop) ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  });
  std::thread reader([&] {
    Random random(1);
    for (uint64_t batch = 0; !stop; ++batch) {
      // Now these rows are looked up for a while, now those, and more each time.
      const Key first = random.Between(1, 250) + (std::bit_width(batch) % 2 == 0 ? 0 : 300);
      std::vector<float> rows(50 * kDim);
      ASSERT_TRUE(
          Lookup(table, KeysFrom(first, 50), MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
      for (size_t i = 0; i < 50; ++i) {
        ASSERT_TRUE(IsWholeRow(rows, i, kDim)) << "a torn row";
      }
    }
  });
  Random random(2);
  Rows expected;
  for (Key key = 1; key <= 600; ++key) expected[key] = static_cast<float>(key);
  const PayloadCounters& counters = world->payloads()->counters();
  for (int round = 0; round < kRounds || (counters.left_rows == 0 && round < 1000 * kRounds);
       ++round) {
    const Key first = random.Between(1, 580);
    const auto factor = static_cast<float>(random.Between(1, 100));
    Put(table, KeysFrom(first, 20), factor);
    for (Key key = first; key < first + 20; ++key) expected[key] = factor * static_cast<float>(key);
  }
  stop = true;
  flusher.join();
  saver.join();
  reader.join();
  const StatusOr<Rows> rows = ReadAll(table);
  ASSERT_TRUE(rows.ok()) << rows.status();
  EXPECT_EQ(*rows, expected);
  ASSERT_NO_FATAL_FAILURE(ExpectDirtyBits(world.get()));
  EXPECT_GT(counters.left_rows, 0u);
}

// The mover has a free slot for each row that leaves, and these are in all pages. A batch that is
// inside the gate for long, and needs a page, gets one all the same.
TEST(HbmRows, LeaveTheirSlotsToABatchForWhichTheyWait) {
  HbmWorld world;
  Table* const table = world.table();
  Eviction& eviction = table->mover()->eviction();
  Put(table, KeysFrom(1, 1200), 2.0f);
  world.Heat(KeysFrom(1, kHbmRowsMax));
  ASSERT_EQ(world.CountPayloads(KeysFrom(1, kHbmRowsMax)), kHbmRowsMax);
  for (int i = 0; i < 20; ++i) LookUp(table, KeysFrom(601, kHbmRowsMax));
  Location slot;
  for (Key key = 1201; eviction.TakeFreeSlots({&slot, 1}) == 1; ++key) {
    table->store().tier->Free(table->slot_class(), {&slot, 1});
    Put(table, {key}, 2.0f);
  }
  const uint64_t chunk_rows = StagedRows(&table->store().payloads->memory(), PayloadBytesOf(*table),
                                         LoggedPayloadBytesOf(*table))
                                  .rows_max();
  const uint64_t wanted = eviction.slots_wanted() + std::min(chunk_rows, kHbmRowsMax);
  std::optional<PayloadGuard> batch(table->store().payloads);
  std::thread mover([&] { world.Flush(); });
  while (eviction.slots_wanted() < wanted) std::this_thread::yield();
  bool has_page = false;
  for (int i = 0; i < 20'000 && !has_page; ++i) {
    has_page = table->store().pages->EmptyOnePage();
    std::this_thread::yield();
  }
  EXPECT_TRUE(has_page);
  batch.reset();
  mover.join();
  EXPECT_EQ(world.CountPayloads(KeysFrom(1, kHbmRowsMax)), 0u);
  ExpectFactor(table, KeysFrom(1, 1200), 2.0f);
}

// No page of device memory gets free for the first size, whose rows would go up first.
TEST(HbmRows, RowsOfOneSizeArriveWhereAnotherSizeFindsNoPlace) {
  HbmWorld world;
  Table* const small = world.world().Create("small", Optimizer::kNone, kDim / 2);
  constexpr uint64_t kSmallMax = 2 * kHbmRowsMax;
  const std::vector<Key> first = KeysFrom(1, kSmallMax);
  const std::vector<Key> second = KeysFrom(1001, kSmallMax / 4);
  Put(small, first, 2.0f);
  for (int i = 0; i < 10; ++i) LookUp(small, first);
  world.Flush();
  ASSERT_EQ(small->rows_in(Tier::kHbm), kSmallMax);
  // Each page keeps half of its rows.
  std::vector<Key> kept;
  for (size_t i = 0; i < first.size(); i += 2) kept.push_back(first[i]);
  Put(small, second, 2.0f);
  const std::vector<Key> others = KeysFrom(1, 32);
  Put(world.table(), others, 2.0f);
  for (int i = 0; i < 100; ++i) {
    LookUp(small, kept);
    LookUp(small, second);
    LookUp(world.table(), others);
    LookUp(world.table(), others);
  }
  world.Flush();
  EXPECT_EQ(world.CountPayloads(others), 0u);
  EXPECT_GE(small->rows_in(Tier::kHbm), kept.size() + second.size());
  ExpectFactor(world.table(), others, 2.0f);
}

TEST(HbmRows, StayInMemoryWhereTheDeviceIsLost) {
  if (TestDevice() >= 0) GTEST_SKIP() << "only a twin is lost on demand";
  HbmWorld world;
  const std::vector<Key> all = KeysFrom(1, 1200);
  Put(world.table(), all, 2.0f);
  for (int i = 0; i < 10; ++i) LookUp(world.table(), KeysFrom(1, 200));
  Device& device = world->payloads()->memory().device();
  dynamic_cast<Twin&>(device).LoseAt(1);
  const std::array<std::byte, 16> bytes = {};
  device.Copy(world->payloads()->memory().payloads(), bytes.data(), bytes.size());
  ASSERT_FALSE(device.Wait(device.Record()).ok());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(world->topk_flush()->FlushNow().code(), StatusCode::kUnavailable);
    EXPECT_EQ(world.table()->rows_in(Tier::kHbm), 0u);
  }
  ExpectFactor(world.table(), all, 2.0f);
}

// Keys that the index cannot tell apart: the lookup of a hot one meets the entry of the other one,
// which is in the log. It then needs a staging buffer for that row alone.
TEST(HbmRows, AreFoundBehindALogEntryWithOneBufferAtATime) {
  HbmWorld world;
  const uint64_t table_hash = TableHash(world.table()->name());
  constexpr uint32_t kPairs = 8;
  std::vector<Key> logged;
  std::vector<Key> hot;
  for (uint32_t i = 0; i < kPairs; ++i) {
    logged.push_back(KeyWithHash(table_hash, HashAt(3, 0x1234567 + 0x1000000 * i, 1)));
    hot.push_back(KeyWithHash(table_hash, HashAt(3, 0x1234567 + 0x1000000 * i, 2)));
  }
  Put(world.table(), logged, 2.0f);
  for (Key first = 1; first < 4000; first += 100) {
    Put(world.table(), KeysFrom(first, 100), 2.0f);
  }
  Put(world.table(), hot, 2.0f);
  world.Heat(hot);
  ASSERT_GE(world.table()->rows_in(Tier::kHbm), kPairs);
  // The index names the entry in the log for the hot keys, too.
  for (const Key key : hot) {
    const RowId id = world.table()->IdOf(key, world.table()->HashOf(key));
    ASSERT_TRUE(world.table()->store().index->Find(id).location().IsInLog());
  }
  PayloadMemory& memory = world->payloads()->memory();
  Device& device = memory.device();
  const uint64_t bytes = kPairs * kPayloadBytes;
  std::byte* const rows = device.Allocate(bytes).value();
  // All buffers but one: a lookup that takes two waits for ever.
  std::vector<std::span<std::byte>> taken;
  while (taken.size() + 1 < StagingPool::kBuffers) taken.push_back(memory.staging().Take());
  ASSERT_TRUE(
      LookupToDevice(world.table(), hot, MissingRule::kZero, {rows, kPayloadBytes}, nullptr, {})
          .ok());
  for (const std::span<std::byte> buffer : taken) memory.staging().Return(buffer);
  std::vector<float> seen(kPairs * kDim);
  device.Copy(reinterpret_cast<std::byte*>(seen.data()), rows, bytes);
  ASSERT_TRUE(device.Wait(device.Record()).ok());
  EXPECT_EQ(seen, RowsOfKeys(hot, 2.0f));
  device.Free(rows);
}

// Memory only: rows that leave need slots of DRAM, which may be full.
TEST(HbmRows, RowsOfAStoreInMemoryGoUpAndLeave) {
  StoreWorld world({.dram_bytes = uint64_t{32} << 20,
                    .hbm_bytes = kHbmBytes,
                    .flush_iters = TopkFlushOptions::kNever});
  Table* const table = world.Create("t", OptionsOf(kDim));
  const std::vector<Key> keys = KeysFrom(1, 2000);
  Put(table, keys, 2.0f);
  for (const Key first : {Key{1}, Key{501}, Key{1001}}) {
    for (uint64_t i = 0; i < 5 * first; i += 100) LookUp(table, KeysFrom(first, 256));
    ASSERT_TRUE(world->topk_flush()->FlushNow().ok());
    EXPECT_EQ(table->rows_in(Tier::kHbm), kHbmRowsMax);
    Put(table, KeysFrom(first, 256), 2.0f);
  }
  ExpectFactor(table, keys, 2.0f);
  EXPECT_EQ(table->rows(), keys.size());
}

}  // namespace
}  // namespace embank::test::hbm_rows_test
