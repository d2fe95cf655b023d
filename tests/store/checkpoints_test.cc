// A store that is opened again is its last checkpoint, whatever happened since.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/index/index_sizes.h"
#include "store/store.h"
#include "tests/support/events.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::checkpoints_test {
namespace {

TEST(Checkpoints, AStoreIsOpenedAsItsLastOneLeftIt) {
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(0, 3000), 1.0f);
  ASSERT_TRUE(Erase(table, KeysFrom(100, 50), {}).ok());
  const StatusOr<Tables> then = ReadAll(world.get());
  ASSERT_TRUE(then.ok()) << then.status();
  const auto first = world->checkpoints()->Make(BlobOf("step 7"));
  ASSERT_TRUE(first.ok()) << first.status();
  EXPECT_EQ(*first, 1u);
  Put(table, KeysFrom(50, 3500), 2.0f);
  ASSERT_TRUE(Erase(table, KeysFrom(0, 10), {}).ok());
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), *then);
  const auto blob = world->checkpoints()->Blob();
  ASSERT_TRUE(blob.ok()) << blob.status();
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(blob->data()), blob->size()), "step 7");
}

// 64 slots share a word of dirty bits, and a page has many words: each slot is found, and no other.
TEST(Checkpoints, HaveTheRowOfEachSlotAlone) {
  constexpr Key kKeys = 600;
  SpillWorld world(1);
  Table* const table = world.Create("t", Optimizer::kNone);
  Put(table, KeysFrom(0, kKeys), 1.0f);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  for (Key key = 0; key < kKeys; key += 7) {
    Put(table, {key}, 2.0f);
    const uint64_t before = world->checkpoints()->Report().visited_slots;
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ASSERT_EQ(world->checkpoints()->Report().visited_slots, before + 1) << "key " << key;
  }
  const Tables then = *ReadAll(world.get());
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), then);
}

// A segment that was not full when the store was closed gets a footer; the next checkpoint needs
// it.
TEST(Checkpoints, FollowOpeningsWithoutAChangeBetween) {
  SpillWorld world(1);
  Put(world.Create("t", Optimizer::kNone), KeysFrom(0, 30), 1.0f);
  const StatusOr<Tables> then = ReadAll(world.get());
  ASSERT_TRUE(then.ok()) << then.status();
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    const Status opened = world.Open();
    ASSERT_TRUE(opened.ok()) << "opening " << i << ": " << opened;
    ExpectIs(world.get(), *then);
  }
}

TEST(Checkpoints, AStoreWithoutOneIsEmpty) {
  SpillWorld world(1);
  Put(world.Create("t", Optimizer::kNone), KeysFrom(0, 3000), 1.0f);
  EXPECT_TRUE(IsNotFound(world->checkpoints()->Blob().status()));
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), {});
  EXPECT_TRUE(IsNotFound(world->checkpoints()->Blob().status()));
}

void StepOnce(Table* table, const std::vector<Key>& keys) {
  const std::vector<float> gradients(keys.size() * table->layout().dim, 1.0f);
  const ConstRowSpan rows = {reinterpret_cast<const std::byte*>(gradients.data()),
                             table->layout().dim * sizeof(float)};
  ASSERT_TRUE(ApplyGradients(table, keys, rows, {}).ok());
}

TEST(Checkpoints, GoOnWithTablesIdsAndOptions) {
  SpillWorld world(2);
  Table* const first = world.Create("first", Optimizer::kSgd);
  world.Create("gone", Optimizer::kNone);
  Table* const last = world.Create("last", Optimizer::kAdagrad);
  Put(first, KeysFrom(0, 100), 1.0f);
  Put(last, KeysFrom(0, 100), 3.0f);
  ASSERT_TRUE(world->DropTable("gone").ok());
  const auto set_rule = [first](float rate, float norm) {
    EXPECT_TRUE(first
                    ->ChangeRule([&](UpdateRule* rule) {
                      rule->learning_rate = rate;
                      rule->max_gradient_norm = norm;
                    })
                    .ok());
  };
  set_rule(0.25f, 2.0f);
  StepOnce(first, KeysFrom(0, 100));
  StepOnce(first, KeysFrom(0, 100));
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const StatusOr<Tables> then = ReadAll(world.get());
  ASSERT_TRUE(then.ok());
  set_rule(0.5f, 0.0f);
  StepOnce(first, KeysFrom(0, 100));
  ASSERT_TRUE(world->DropTable("first").ok());
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), *then);
  const StatusOr<Table*> again = world->catalog().Open("first");
  ASSERT_TRUE(again.ok());
  EXPECT_EQ((*again)->options().rule.learning_rate, 0.25f);
  EXPECT_EQ((*again)->options().rule.max_gradient_norm, 2.0f);
  EXPECT_EQ((*again)->counters().gradient_calls, 2u);
  EXPECT_EQ((*again)->options().optimizer, Optimizer::kSgd);
  EXPECT_GT((*world->catalog().Open("last"))->layout().state_bytes(), 0u);
}

TEST(Checkpoints, ThePreviousOneCanBeOpened) {
  SpillWorld world(3);
  Table* const table = world.Create("t", Optimizer::kNone);
  std::vector<Tables> states;
  for (const float factor : {1.0f, 2.0f, 3.0f}) {
    Put(table, KeysFrom(static_cast<Key>(factor) * 100, 2000), factor);
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    states.push_back(*ReadAll(world.get()));
  }
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), states[2]);
  ASSERT_TRUE(world.Open(/*previous=*/true).ok());
  ExpectIs(world.get(), states[1]);
  // Nothing is lost by that, until there is a new one.
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), states[2]);
  ASSERT_TRUE(world.Open(/*previous=*/true).ok());
  const auto next = world->checkpoints()->Make({});
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*next, 4u);
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), states[1]);
}

// A row that changes before the flush pass comes to it is in the checkpoint as it was at the
// barrier, and afterwards in the store as it is. A batch has three pieces.
TEST(Checkpoints, ChangesBesideThemAreWhollyInOrOut) {
  constexpr Key kKeys = 1200;
  constexpr int kCheckpoints = 12;
  SpillWorld world(4, MakeThreadPool(2));
  Table* const table = world.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFrom(1, kKeys);
  Put(table, keys, 0.0f);
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> batches{0};
  std::thread writer([&] {
    // One batch gives all rows one number: a checkpoint has one number, or a batch is torn.
    for (float value = 1; !stop; ++value) {
      const std::vector<float> rows(kKeys * kDim, value);
      if (!Upsert(table, keys, RowsOf(rows, kDim), {}).ok()) return;
      batches.fetch_add(1);
    }
  });
  // The first piece has changed key 1, and the batch has not ended.
  const auto is_amid_a_batch = [&] {
    std::vector<float> row(kDim);
    const Key key = 1;
    EXPECT_TRUE(Lookup(table, {&key, 1}, MissingRule::kSkip, RowsIn(&row, kDim), {}).ok());
    return row[0] > static_cast<float>(batches);
  };
  float last = -1;
  for (int i = 0; i < kCheckpoints; ++i) {
    while (!is_amid_a_batch()) std::this_thread::yield();
    const uint64_t before = batches;
    const auto made = world->checkpoints()->Make({});
    ASSERT_TRUE(made.ok()) << made.status();
    while (batches < before + 2) std::this_thread::yield();
  }
  stop = true;
  writer.join();
  ASSERT_TRUE(world.Open().ok());
  const StatusOr<Tables> tables = ReadAll(world.get());
  ASSERT_TRUE(tables.ok()) << tables.status();
  const Rows& rows = tables->at("t");
  ASSERT_EQ(rows.size(), kKeys);
  last = rows.begin()->second;
  EXPECT_GT(last, 0);
  for (const auto& [key, value] : rows) ASSERT_EQ(value, last) << "key " << key;
}

// A checkpoint gives back what erased rows have left of the index; its memory is there while a
// reader may look at it.
TEST(Checkpoints, GiveTheIndexsMemoryBackWhenReadersHaveLeftIt) {
  constexpr Key kKeys = 200'000;
  constexpr Key kLeft = 150'000;
  SpillWorld world(5, MakeThreadPool(1));
  Table* const table = world.Create("t", Optimizer::kNone, 1);
  const std::vector<float> values(kKeys, 3.0f);
  ASSERT_TRUE(Upsert(table, KeysFrom(0, kKeys), RowsOf(values, 1), {}).ok());
  const KeyIndex& index = *table->store().index;
  const uint64_t full_bytes = index.memory()->bytes();
  ASSERT_GE(full_bytes, 2 * kHugePageBytes);
  // Fewer than let the index shrink at once.
  ASSERT_TRUE(Erase(table, KeysFrom(kLeft, kKeys - kLeft), {}).ok());
  auto reader = std::make_unique<EpochTable::Guard>(table->store().epochs);
  std::atomic<bool> is_made{false};
  std::thread maker([&] {
    const auto made = world->checkpoints()->Make({});
    EXPECT_TRUE(made.ok()) << made.status();
    is_made = true;
  });
  // Until all shards are small, and some time beyond.
  const auto is_small = [&](uint32_t i) {
    return table->store().index->shard(i)->buckets() == kBucketsMin;
  };
  for (uint32_t i = 0; i < KeyIndex::kShardCount;) {
    is_small(i) ? static_cast<void>(++i) : std::this_thread::yield();
  }
  for (int i = 0; i < 20'000 && !is_made; ++i) std::this_thread::yield();
  EXPECT_EQ(index.memory()->bytes(), full_bytes) << "a reader may look at it";
  reader.reset();
  maker.join();
  EXPECT_EQ(index.memory()->bytes(), kHugePageBytes) << "as a fresh index with these rows";
  EXPECT_EQ(table->rows(), kLeft);
}

// Until the table is dropped; the other's hint needs less.
TEST(Checkpoints, LeaveTheIndexThePlacesThatTablesExpect) {
  SpillWorld world(6);
  world.options().dram_bytes = uint64_t{64} << 20;
  ASSERT_TRUE(world.Open().ok());
  const auto bytes = [&] { return world->index().memory()->bytes(); };
  TableOptions options = OptionsOf(kDim);
  for (const uint32_t log2 : {0, 18, 20}) {
    options.expected_rows_log2 = log2;
    ASSERT_TRUE(world->CreateTable(std::to_string(log2), options).ok());
  }
  const uint64_t ahead_bytes = bytes();
  EXPECT_GE(ahead_bytes, BytesFor(BucketsAhead(uint64_t{1} << 20)));
  for (int round = 0; round < 2; ++round) {
    for (const char* const name : {"0", "20"}) {
      Table* const table = *world->catalog().Open(name);
      Put(table, KeysFrom(0, 3000), 1.0f);
      ASSERT_TRUE(Erase(table, KeysFrom(0, 2500), {}).ok());
    }
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    EXPECT_EQ(bytes(), ahead_bytes) << "round " << round;
    ASSERT_TRUE(world.Open().ok());
    EXPECT_EQ(bytes(), ahead_bytes) << "round " << round;
  }
  ASSERT_TRUE(world->DropTable("20").ok());
  EXPECT_LE(bytes(), BytesFor(BucketsAhead((uint64_t{1} << 18) + 3000)));
  EXPECT_GE(bytes(), BytesFor(BucketsAhead(uint64_t{1} << 18)));
  ASSERT_TRUE(world->DropTable("18").ok());
  EXPECT_EQ(bytes(), kHugePageBytes);
}

constexpr Persistence kPersistences[] = {Persistence::kNone, Persistence::kAll,
                                         Persistence::kAllButOne, Persistence::kSome,
                                         Persistence::kTorn};

#if defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kStepMax = 15;
#else
constexpr uint64_t kStepMax = 3;
#endif

// Crashes at any change of the disk: the store is its last checkpoint, or the one under way.
TEST(Checkpoints, SurviveEveryCrash) {
  SpillWorld world(5);
  Table* const table = world.Create("t", Optimizer::kNone);
  std::vector<Tables> states = {{}};  // by checkpoint
  std::vector<size_t> begins;         // of checkpoints: the change of the disk at which they begin
  std::vector<size_t> ends;
  Random random(5);
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < 6; ++i) {
      Put(table, KeysFrom(random.Below(300), random.Between(1, 60)),
          static_cast<float>(random.Between(1, 9)));
      ASSERT_TRUE(Erase(table, KeysFrom(random.Below(300), 20), {}).ok());
    }
    states.push_back(*ReadAll(world.get()));
    begins.push_back(world.disk().changes());
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ends.push_back(world.disk().changes());
  }
  const std::unique_ptr<SimulatedDisk> disk = world.TakeDisk();
  Events events;
  events.Expect("the last checkpoint");
  events.Expect("the one under way");
  const size_t changes = disk->changes();
  for (size_t change = 0; change <= changes; change += random.Between(1, kStepMax)) {
    for (const Persistence persistence : kPersistences) {
      SpillWorld again(5, disk->AfterCrash(change, persistence, random.Bits()));
      ASSERT_NE(again.get(), nullptr) << "a crash before change " << change;
      const StatusOr<Tables> found = ReadAll(again.get());
      ASSERT_TRUE(found.ok()) << found.status() << ", a crash before change " << change;
      const size_t done =
          static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), change) - ends.begin());
      const bool under_way = done < begins.size() && change > begins[done];
      const bool is_last = *found == states[done];
      const bool is_next = under_way && *found == states[done + 1];
      ASSERT_TRUE(is_last || is_next) << "a crash before change " << change;
      events.Count(is_last ? "the last checkpoint" : "the one under way");
    }
  }
  std::fputs(events.Table().c_str(), stdout);
  EXPECT_EQ(events.Missing(), "");
}

}  // namespace
}  // namespace embank::test::checkpoints_test
