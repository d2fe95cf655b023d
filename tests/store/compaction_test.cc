// Rows that compaction moves do not change, and their old places become free space.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/store.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::compaction_test {
namespace {

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr uint64_t kClosedStores = 10;
constexpr int kCrashes = 10;
constexpr int kIntervals = 24;
constexpr double kNotSettled = 0.25;  // writes of a dirty row
#else
constexpr uint64_t kClosedStores = 30;
constexpr int kCrashes = 40;
constexpr int kIntervals = 90;
constexpr double kNotSettled = 0;
#endif

// Half of what memory has slots for is four times fewer.
constexpr Key kKeys = 4000;
constexpr uint64_t kRecordBytes = kDim * sizeof(float) + sizeof(RecordHeader);

// Overwrites random rows of a table, and knows its expected contents.
class Overwriter {
 public:
  Overwriter(Table* table, uint64_t seed) : table_(table), random_(seed) {
    Overwrite(KeysFrom(0, kKeys));
  }

  const Rows& rows() const { return rows_; }
  Tables tables() const { return {{table_->name(), rows_}}; }

  void OverwriteSome(size_t count) {
    std::vector<Key> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(random_.Below(kKeys));
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    Overwrite(keys);
  }
  void EraseSome(size_t count) {
    std::vector<Key> keys;
    for (size_t i = 0; i < count; ++i) keys.push_back(random_.Below(kKeys));
    ASSERT_TRUE(Erase(table_, keys, {}).ok());
    for (const Key key : keys) rows_.erase(key);
  }
  // How many rows were overwritten since the last call.
  uint64_t TakeWritten() { return std::exchange(written_, {}).size(); }
  void Follow(Table* table, const Tables& tables) {
    table_ = table;
    rows_ = tables.at(table->name());
  }

 private:
  void Overwrite(const std::vector<Key>& keys) {
    const auto factor = static_cast<float>(random_.Between(1, 1000));
    written_.insert(keys.begin(), keys.end());
    for (size_t begin = 0; begin < keys.size(); begin += 500) {
      const size_t end = std::min(keys.size(), begin + 500);
      const std::vector<Key> some(keys.begin() + static_cast<ptrdiff_t>(begin),
                                  keys.begin() + static_cast<ptrdiff_t>(end));
      Put(table_, some, factor);
      for (const Key key : some) rows_[key] = factor * static_cast<float>(key);
    }
  }

  Table* table_;
  Random random_;
  Rows rows_;
  std::set<Key> written_;
};

TEST(Compaction, KeepsTheLogNearItsLivingRows) {
  SpillWorld world(1);
  Overwriter rows(world.Create("t", Optimizer::kNone), 1);
  Events events;
  events.Expect("rows moved");
  uint64_t largest = 0;
  for (int round = 0; round < 30; ++round) {
    rows.OverwriteSome(1500);
    const bool is_time = round % 3 == 2;
    ASSERT_TRUE(!is_time || world->checkpoints()->Make({}).ok());
    largest = std::max(largest, ReportMemory(*world).logs[Tier::kSsd]->used_bytes);
  }
  ExpectIs(world.get(), rows.tables());
  events.Count("rows moved", world->logs()->lowest().counters().compacted_rows);
  EXPECT_EQ(events.Missing(), "");
  // Five thirds of the rows, the records of two checkpoints, and the open segments: without
  // compaction thirty times as much was written. Rows that PMem has demoted are written once more.
  EXPECT_LT(largest, kKeys * kRecordBytes * (WithPmem() ? 6 : 5));
  std::printf("%s largest log: %.1f times its rows\n", events.Table().c_str(),
              static_cast<double>(largest) / (kKeys * kRecordBytes));
}

// Dirty rows will live in the log again, and erased ones will not.
TEST(Compaction, CountsDirtyRowsAsLiving) {
  if (WithPmem()) GTEST_SKIP() << "rows in PMem need no record in the log of the SSD";
  SpillWorld world(8);
  Overwriter rows(world.Create("t", Optimizer::kNone), 8);
  for (int round = 0; round < 2; ++round) rows.OverwriteSome(3000);
  EXPECT_EQ(world->logs()->lowest().counters().compacted_rows, 0u);
  rows.EraseSome(kKeys);
  for (int round = 0; round < 2; ++round) rows.OverwriteSome(300);
  EXPECT_GT(world->logs()->lowest().counters().compacted_rows, 0u);
}

// Writes rows and makes checkpoints for as long as the caller likes, in a log of some multiple of
// the rows, though emptied segments stay for two checkpoints: all writes / rows that had to be
// written.
double WritesPerDirtyRow(double log_of_rows, Events* events) {
  const auto ssd_bytes = static_cast<uint64_t>(kKeys * kRecordBytes * log_of_rows);
  SpillWorld world(7, nullptr, ssd_bytes);
  world.disk().SetCapacity(ssd_bytes + (WithPmem() ? kPmemBytes : 0));
  Overwriter rows(world.Create("t", Optimizer::kNone), 7);
  EXPECT_TRUE(world->checkpoints()->Make({}).ok());
  uint64_t appended_before = 0;
  uint64_t dirty = 0;
  const int intervals = WithPmem() ? kIntervals / 3 : kIntervals;
  for (int round = 0; round < intervals; ++round) {
    if (round == intervals / 3) appended_before = world->logs()->lowest().counters().appended_rows;
    // A tenth of the rows.
    for (int batch = 0; batch < 8; ++batch) rows.OverwriteSome(kKeys / 80);
    const uint64_t written = rows.TakeWritten();
    if (round >= intervals / 3) dirty += written;
    EXPECT_TRUE(world->checkpoints()->Make({}).ok());
    world.disk().ClearHistory();
  }
  ExpectIs(world.get(), rows.tables());
  const RowLogCounters& counters = world->logs()->lowest().counters();
  events->Count("rows moved", counters.compacted_rows);
  return static_cast<double>(counters.appended_rows - appended_before) / static_cast<double>(dirty);
}

TEST(Compaction, GoesOnUnderKeptCheckpointsAndWritesLessWhereTheLogIsLarger) {
  Events events;
  events.Expect("rows moved");
  const double half = WritesPerDirtyRow(2.2, &events);
  const double third = WritesPerDirtyRow(3, &events);
  EXPECT_EQ(events.Missing(), "");
  std::printf("  writes of a dirty row: %.2f in 2.2 times the rows, %.2f in 3 times\n", half,
              third);
  if (WithPmem()) return;  // the figures are those of an SSD that takes all writes
  EXPECT_LT(half, 1.85 + kNotSettled);
  EXPECT_LT(third, 1.25 + kNotSettled);
}

TEST(Compaction, LeavesWhatCheckpointsHave) {
  SpillWorld world(2);
  Overwriter rows(world.Create("t", Optimizer::kNone), 2);
  std::vector<Tables> states;
  for (int round = 0; round < 12; ++round) {
    rows.OverwriteSome(2000);
    rows.EraseSome(50);
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    states.push_back(rows.tables());
    rows.OverwriteSome(1000);
  }
  EXPECT_GT(world->logs()->lowest().counters().compacted_rows, 0u);
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), states.back());
  ASSERT_TRUE(world.Open(/*previous=*/true).ok());
  ExpectIs(world.get(), states[states.size() - 2]);
  // And goes on from there.
  rows.Follow(*world->catalog().Open("t"), states[states.size() - 2]);
  rows.OverwriteSome(3000);
  ExpectIs(world.get(), rows.tables());
}

// Crashes at drawn changes of the disk, while rows move.
TEST(Compaction, SurvivesCrashes) {
  constexpr Persistence kPersistences[] = {Persistence::kNone, Persistence::kAll,
                                           Persistence::kAllButOne, Persistence::kSome,
                                           Persistence::kTorn};
  SpillWorld world(3);
  Overwriter rows(world.Create("t", Optimizer::kNone), 3);
  for (int round = 0; round < 6; ++round) rows.OverwriteSome(2000);
  std::vector<Tables> states = {{}};
  std::vector<size_t> begins;
  std::vector<size_t> ends;
  for (int round = 0; round < 4; ++round) {
    rows.OverwriteSome(2000);
    begins.push_back(world.disk().changes());
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    ends.push_back(world.disk().changes());
    states.push_back(rows.tables());
  }
  rows.OverwriteSome(2000);
  EXPECT_GT(world->logs()->lowest().counters().compacted_rows, 0u);
  const std::unique_ptr<SimulatedDisk> disk = world.TakeDisk();
  Random random(3);
  for (int crash = 0; crash < kCrashes; ++crash) {
    const size_t change = random.Between(begins.front(), disk->changes());
    SpillWorld again(3, disk->AfterCrash(change, kPersistences[crash % 5], random.Bits()));
    ASSERT_NE(again.get(), nullptr) << "a crash before change " << change;
    const StatusOr<Tables> found = ReadAll(again.get());
    ASSERT_TRUE(found.ok()) << found.status() << ", a crash before change " << change;
    const size_t done =
        static_cast<size_t>(std::upper_bound(ends.begin(), ends.end(), change) - ends.begin());
    const bool under_way = done < begins.size() && change > begins[done];
    ASSERT_TRUE(*found == states[done] || (under_way && *found == states[done + 1]))
        << "a crash before change " << change;
  }
}

// A record that cannot be read stays where it is; the others of its segment move.
TEST(Compaction, PassesOverWhatItCannotRead) {
  SpillWorld world(4);
  Overwriter rows(world.Create("t", Optimizer::kNone), 4);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  const std::vector<std::byte> rot(64, std::byte{0x5A});
  for (const std::string& path : world.disk().Files()) {
    const bool is_segment = path.find("segment-") != std::string::npos;
    if (is_segment) world.disk().Corrupt(path, 3 * kBlockBytes + 100, rot);
  }
  // Erased rows leave space that dirty rows do not account for. Few rows are dirty.
  rows.EraseSome(kKeys);
  for (int round = 0; round < 24; ++round) {
    std::vector<Key> keys = KeysFrom(static_cast<Key>(round) * 20, 500);
    std::erase_if(keys, [&](Key key) { return !rows.rows().contains(key); });
    std::vector<uint8_t> outcomes(keys.size());
    const Status put =
        Upsert(*world->catalog().Open("t"), keys, RowsOf(RowsOfKeys(keys, 2.0f), kDim), outcomes);
    ASSERT_TRUE(put.ok()) << put;
  }
  EXPECT_GT(world->logs()->lowest().counters().compacted_rows + world->demoted_rows(), 0u);
  std::vector<Key> keys;
  for (const auto& [key, value] : rows.rows()) keys.push_back(key);
  std::vector<uint8_t> outcomes(keys.size());
  std::vector<float> found(keys.size() * kDim);
  ASSERT_TRUE(
      Lookup(*world->catalog().Open("t"), keys, MissingRule::kZero, RowsIn(&found, kDim), outcomes)
          .ok());
  uint64_t lost = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    const float value = found[i * kDim];
    if (outcomes[i] == static_cast<uint8_t>(Outcome::kDataLoss)) {
      ++lost;
      continue;
    }
    ASSERT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kFound)) << keys[i];
    const bool is_old = value == rows.rows().at(keys[i]);
    ASSERT_TRUE(is_old || value == 2.0f * static_cast<float>(keys[i])) << keys[i];
  }
  EXPECT_GT(lost, 0u);
  EXPECT_LT(lost, 200u);
}

// A row may have changed between the time when compaction reads its record and the time when it
// holds the row's lock.
TEST(Compaction, LeavesARowThatHasChangedMeanwhile) {
  SpillWorld world(6);
  Table* const table = world.Create("t", Optimizer::kNone);
  RowLog* const log = &table->mover()->logs().lowest();
  KeyIndex* const index = table->store().index;
  Put(table, KeysFrom(0, kKeys), 1.0f);
  // Each in the log alone; then one is in memory, changed, the other changed and in the log again.
  for (const bool leaves_again : {false, true}) {
    Location from = kNoLocation;
    RowId id = {};
    for (Key key = 1; from.tier() != Tier::kSsd; ++key) {
      id = table->IdOf(key, table->HashOf(key));
      from = index->Find(id).location();
    }
    RecordScratch scratch;
    const auto record = log->reader().ReadOne(from, &scratch);
    ASSERT_TRUE(record.ok()) << record.status();
    Put(table, {id.key}, 2.0f);
    if (leaves_again) Put(table, KeysFrom(kKeys, kKeys), 1.0f);
    const uint64_t moved = log->counters().compacted_rows;
    KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
    {
      MutexLock lock(&shard->mutex);
      EXPECT_TRUE(table->mover()->compacted().Relocate(shard, id, from, *record));
    }
    EXPECT_EQ(log->counters().compacted_rows, moved);
    ExpectRows(table, {{id.key, 2.0f * static_cast<float>(id.key)}});
  }
}

// A store may be closed while rows move.
TEST(Compaction, EndsBeforeWhatItMoves) {
  uint64_t moved = 0;
  for (uint64_t seed = 0; seed < kClosedStores; ++seed) {
    SpillWorld world(seed, MakeThreadPool(2));
    Overwriter rows(world.Create("t", Optimizer::kNone), seed);
    ASSERT_TRUE(world->checkpoints()->Make({}).ok());
    rows.EraseSome(kKeys);
    for (int round = 0; round < 2; ++round) rows.OverwriteSome(300);
    moved += world->logs()->lowest().counters().compacted_rows;
  }
  EXPECT_GT(moved, 0u);
}

// Writers, readers, checkpoints and moves at once; a drop leaves nothing to the table's next rows.
TEST(Compaction, GoesOnBesideEverything) {
  SpillWorld world(5, MakeThreadPool(2));
  Table* const table = world.Create("t", Optimizer::kNone);
  Table* const other = world.Create("other", Optimizer::kNone);
  Overwriter rows(table, 5);
  Put(other, KeysFrom(0, 1000), 7.0f);
  std::atomic<bool> stop{false};
  std::thread reader([&] {
    Random random(55);
    std::vector<float> found(100 * kDim);
    while (!stop) {
      const std::vector<Key> keys = KeysFrom(random.Below(900), 100);
      const Status read = Lookup(other, keys, MissingRule::kZero, RowsIn(&found, kDim), {});
      ASSERT_TRUE(read.ok()) << read;
      for (size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(found[i * kDim], 7.0f * static_cast<float>(keys[i]));
      }
    }
  });
  std::thread checkpoints([&] {
    while (!stop) ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  });
  for (int round = 0; round < 20; ++round) rows.OverwriteSome(1000);
  stop = true;
  reader.join();
  checkpoints.join();
  EXPECT_GT(world->logs()->lowest().counters().compacted_rows, 0u);
  ASSERT_TRUE(world->DropTable("other").ok());
  ExpectIs(world.get(), rows.tables());
  Table* const next = world.Create("other", Optimizer::kNone);
  EXPECT_EQ(ReadAll(next)->size(), 0u);
  ASSERT_TRUE(world->checkpoints()->Make({}).ok());
  Tables expected = rows.tables();
  expected["other"] = {};
  ASSERT_TRUE(world.Open().ok());
  ExpectIs(world.get(), expected);
}

}  // namespace
}  // namespace embank::test::compaction_test
