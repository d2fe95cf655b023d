// Rows that change while a flush pass has not come to them yet: the checkpoint has them as they
// were at its barrier, the store as they are.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/dirty_rows.h"
#include "tests/support/events.h"
#include "tests/support/hooked_executor.h"
#include "tests/support/random.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::changes_beside_checkpoints_test {
namespace {

// A table and its expected contents.
class Model {
 public:
  Model(Table* table, const Store& store, uint64_t seed, Events* events)
      : table_(table),
        pages_(store.pages()),
        hot_flush_(store.topk_flush()),
        random_(seed),
        events_(events) {}

  const Rows& rows() const { return rows_; }
  Tables tables() const { return {{table_->name(), rows_}}; }

  void PutSome(Key first, Key count) {
    const auto factor = static_cast<float>(random_.Between(1, 1000));
    const std::vector<Key> keys = KeysFrom(first, count);
    Put(table_, keys, factor);
    for (const Key key : keys) rows_[key] = factor * static_cast<float>(key);
  }
  void EraseSome(Key first, Key count) {
    ASSERT_TRUE(Erase(table_, KeysFrom(first, count), {}).ok());
    for (Key key = first; key < first + count; ++key) rows_.erase(key);
  }
  // Rows are promoted from the log, and others are evicted for them.
  void LookAt(Key first, Key count) {
    std::vector<float> values(count * kDim);
    const RowSpan rows = RowsIn(&values, kDim);
    ASSERT_TRUE(Lookup(table_, KeysFrom(first, count), MissingRule::kZero, rows, {}).ok());
  }
  void PutAll() {
    for (Key first = 1; first < kKeys; first += 200) PutSome(first, 200);
  }
  void ChangeSomething() {
    const Key first = random_.Between(1, kKeys);
    switch (random_.Below(hot_flush_ != nullptr ? 12 : 9)) {
      case 0:
        events_->Count("erased");
        return EraseSome(first, random_.Between(1, 30));
      case 1:
      case 2:
        events_->Count("looked at");
        return LookAt(first, random_.Between(1, 60));
      case 3:
      case 4:
      case 5:
        events_->Count("written");
        return PutSome(first, random_.Between(1, 60));
      case 6:
        events_->Count("page emptied", pages_->EmptyOnePage() ? 1 : 0);
        return;
      case 9:
      case 10:
      case 11:
        events_->Count("top-k flushes");
        ASSERT_TRUE(hot_flush_->FlushNow().ok());
        return;
      default:
        return;
    }
  }
  bool OneIn(uint64_t n) { return random_.OneIn(n); }

 private:
  static constexpr Key kKeys = 2600;  // a quarter of them does not fit into memory

  Table* const table_;
  PageMover* const pages_;
  TopkFlush* const hot_flush_;  // nullptr: no device memory
  Random random_;
  Events* const events_;
  Rows rows_;
};

void ExpectAfterCrash(const SimulatedDisk& disk, Persistence persistence, const Tables& expected,
                      bool previous) {
  SpillWorld again(1, disk.AfterCrash(disk.changes(), persistence, 1));
  const Status opened = again.Open(previous);
  ASSERT_TRUE(opened.ok()) << opened;
  ASSERT_NO_FATAL_FAILURE(ExpectIs(again.get(), expected));
}

// In `storms` all rows are written over and over, once, in the midst of the flush pass. So that it
// has a midst, most rows in memory are dirty at each barrier then, else at each second one.
void ChangeBesideCheckpoints(uint64_t seed, bool storms, Events* events) {
  std::function<void()> hook;
  SpillWorld world(1, std::make_unique<HookedExecutor>(seed, &hook));
  Table* const table = world.Create("t", Optimizer::kNone);
  Model model(table, *world, seed, events);
  const RowLogCounters& counters = table->mover()->logs().lowest().counters();
  Tables previous;
  model.PutAll();
  for (int round = 0; round < 4; ++round) {
    if (storms || round % 2 == 0) model.PutAll();
    for (int i = 0; i < 10; ++i) ASSERT_NO_FATAL_FAILURE(model.ChangeSomething());
    const Tables barrier = model.tables();
    const uint64_t dead = counters.dead_segments;
    int part = 0;
    hook = [&] {
      if (++part == 2 && storms) {
        for (int i = 0; i < 3; ++i) model.PutAll();
      }
      model.ChangeSomething();
    };
    const auto made = world->checkpoints()->Make({});
    hook = nullptr;
    ASSERT_TRUE(made.ok()) << made.status();
    if (storms && counters.dead_segments > dead) events->Count("space used again in a flush pass");
    ASSERT_NO_FATAL_FAILURE(ExpectDirtyBits(world.get()));
    ASSERT_NO_FATAL_FAILURE(ExpectIs(world.get(), model.tables()));
    ASSERT_NO_FATAL_FAILURE(ExpectAfterCrash(world.disk(), Persistence::kNone, barrier, false));
    if (round > 0) {
      ASSERT_NO_FATAL_FAILURE(ExpectAfterCrash(world.disk(), Persistence::kAll, previous, true));
    }
    previous = barrier;
  }
  if (!WithHbm()) return;
  const PayloadCounters& hot = world->payloads()->counters();
  events->Count("rows moved to device memory", hot.arrived_rows);
  events->Count("rows moved from device memory", hot.left_rows);
  events->Count("pre-images of rows in device memory", hot.pre_images);
}

TEST(ChangesBesideCheckpoints, AreWhollyBehindThem) {
  Events events;
  for (const char* const name : {"erased", "looked at", "written"}) events.Expect(name);
  if (WithHbm()) events.Expect("rows moved from device memory");
  for (const uint64_t seed : {1, 2}) {
    ASSERT_NO_FATAL_FAILURE(ChangeBesideCheckpoints(seed, false, &events));
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

// Records that only the checkpoint under way has are not given up either.
TEST(ChangesBesideCheckpoints, RepeatedChangesOfAllRowsAreWhollyBehindThem) {
  Events events;
  events.Expect("page emptied");
  if (WithHbm()) events.Expect("pre-images of rows in device memory");
  events.Expect("space used again in a flush pass");
  // Few changes meet a row in device memory whose flush is pending.
  const std::vector<uint64_t> seeds =
      WithHbm() ? std::vector<uint64_t>{3, 4, 5} : std::vector<uint64_t>{3};
  for (const uint64_t seed : seeds) {
    ASSERT_NO_FATAL_FAILURE(ChangeBesideCheckpoints(seed, true, &events));
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

// Pages empty, and become those of another row class, while a flush pass looks at them.
TEST(ChangesBesideCheckpoints, MemoryMayGoWhileItIsSwept) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  constexpr int kRounds = 10;
#else
  constexpr int kRounds = 40;
#endif
  SpillWorld world(4, MakeThreadPool(3));
  Table* const wide = world.Create("wide", Optimizer::kNone);
  Table* const small = world.Create("small", Optimizer::kNone, 64);
  std::atomic<bool> stop{false};
  std::atomic<int> made{0};
  std::thread checkpoints([&] {
    while (!stop) {
      ASSERT_TRUE(world->checkpoints()->Make({}).ok());
      ++made;
    }
  });
  for (int round = 0; round < kRounds; ++round) {
    for (Table* const table : {wide, small}) {
      const Key count = table == wide ? 1500 : 9000;
      for (Key first = 0; first < count; first += 500) Put(table, KeysFrom(first, 500), 2.0f);
      if (round + 1 == kRounds) continue;
      ASSERT_TRUE(Erase(table, KeysFrom(0, count), {}).ok());
    }
  }
  stop = true;
  checkpoints.join();
  EXPECT_GT(made, 0);
  EXPECT_EQ(small->rows(), 9000u);
  ASSERT_TRUE(world->DropTable("small").ok());
  const Tables now = *ReadAll(world.get());
  EXPECT_EQ(now.at("wide").size(), 1500u);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), now);
}

// A trainer goes on beside the flush pass, and changes rows ahead of it and behind it.
TEST(ChangesBesideCheckpoints, AFlushPassVisitsTheSlotsOfChangedRowsAlone) {
  constexpr Key kKeys = 800;
  constexpr uint64_t kChanged = 40;
  std::function<void()> hook;
  SpillWorld world(1, std::make_unique<HookedExecutor>(1, &hook));
  Table* const table = world.Create("t", Optimizer::kNone);
  for (Key first = 1; first <= kKeys; first += 200) Put(table, KeysFrom(first, 200), 1.0f);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  CheckpointReport before = world->checkpoints()->Report();
  EXPECT_EQ(before.flushed_rows, kKeys);
  EXPECT_EQ(before.visited_slots, kKeys);
  Random random(1);
  std::vector<Key> keys;
  for (uint64_t i = 0; i < kChanged; ++i) keys.push_back(1 + i * kKeys / kChanged);
  for (const bool beside : {false, true}) {
    Put(table, keys, 2.0f);
    uint64_t changed = kChanged;
    if (beside) {
      hook = [&] {
        Put(table, KeysFrom(random.Between(1, kKeys - 10), 10), 3.0f);
        changed += 10;
      };
    }
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    hook = nullptr;
    const CheckpointReport after = world->checkpoints()->Report();
    const uint64_t visited = after.visited_slots - before.visited_slots;
    if (!beside) {
      EXPECT_EQ(visited, kChanged);
      EXPECT_EQ(after.flushed_rows - before.flushed_rows, kChanged);
    }
    EXPECT_GE(visited, kChanged);
    EXPECT_LE(visited, 4 * kChanged);
    EXPECT_LE(visited, changed);
    before = after;
    ASSERT_NO_FATAL_FAILURE(ExpectDirtyBits(world.get()));
  }
}

// A shard with so many rows that its lock is taken several times.
TEST(ChangesBesideCheckpoints, ACrowdedShardIsSweptToItsEnd) {
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kNone);
  std::vector<Key> keys;
  for (Key key = 1; keys.size() < 1000; ++key) {
    if (KeyIndex::ShardOf(table->HashOf(key)) == 5) keys.push_back(key);
  }
  Put(table, keys, 1.0f);
  const Tables now = *ReadAll(world.get());
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), now);
}

}  // namespace
}  // namespace embank::test::changes_beside_checkpoints_test
