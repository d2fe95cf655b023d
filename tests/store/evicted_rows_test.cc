// Rows that have left memory: their state, damage, a full log, tables that are dropped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/logged_rows.h"
#include "store/batch/lookup.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/scan/scan.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::evicted_rows_test {
namespace {

// Records of all logs whose rows live.
uint64_t LiveRecords(const Table& table) {
  const RowLogs& logs = table.mover()->logs();
  const RowLog* const pmem = logs.pmem();
  return logs.lowest().segments().live_rows() +
         (pmem == nullptr ? 0 : pmem->segments().live_rows());
}

// Optimizer state travels with its row.
TEST(EvictedRows, StateComesBackWithItsRow) {
  SpillWorld store(3);
  Table* const table = store.Create("t", Optimizer::kAdagrad);
  constexpr Key kKeys = 3000;
  const std::vector<Key> all = KeysFrom(0, kKeys);
  const std::vector<float> rows(kKeys * kDim, 1.0f);
  ASSERT_TRUE(Upsert(table, all, RowsOf(rows, kDim), {}).ok());
  std::vector<float> state(kKeys * kDim);
  for (size_t i = 0; i < state.size(); ++i) state[i] = static_cast<float>(i % 9973);
  ASSERT_TRUE(SetState(table, all, RowsOf(state, kDim), {}).ok());
  ASSERT_GT(table->rows_in_log(), 1000u);
  std::vector<float> seen(kKeys * kDim);
  ASSERT_TRUE(GetState(table, all, RowsIn(&seen, kDim), {}).ok());
  EXPECT_EQ(seen, state);
}

TEST(EvictedRows, ARowThatCannotBeReadIsLostAloneAndSaysSo) {
  SpillWorld store(4);
  Table* const table = store.Create("t", Optimizer::kSgd);
  constexpr Key kKeys = 4000;
  const std::vector<Key> all = KeysFrom(0, kKeys);
  std::vector<float> rows(kKeys * kDim, 2.0f);
  ASSERT_TRUE(Upsert(table, all, RowsOf(rows, kDim), {}).ok());
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  // The first record of a segment.
  const std::vector<std::string> files = store.disk().Files();
  const std::string& path = *std::find_if(files.begin(), files.end(), [](const std::string& f) {
    return f.starts_with("log/segment");
  });
  const std::vector<std::byte> record = store.disk().Contents(path);
  const std::vector<std::byte> wrong = {record[kBlockBytes + 40] ^ std::byte{1}};
  store.disk().Corrupt(path, kBlockBytes + 40, wrong);
  Key lost = 0;
  std::memcpy(&lost, record.data() + kBlockBytes + 8, sizeof lost);

  std::vector<uint8_t> outcomes(kKeys);
  std::fill(rows.begin(), rows.end(), -1.0f);
  ASSERT_TRUE(Lookup(table, all, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes).ok());
  for (Key key = 0; key < kKeys; ++key) {
    ASSERT_EQ(outcomes[key],
              static_cast<uint8_t>(key == lost ? Outcome::kDataLoss : Outcome::kFound))
        << key << " of " << lost;
    ASSERT_EQ(rows[key * kDim], key == lost ? -1.0f : 2.0f);
  }
  const Status status = Lookup(table, {&lost, 1}, MissingRule::kZero, RowsIn(&rows, kDim), {});
  EXPECT_EQ(status.code(), StatusCode::kDataLoss);
  EXPECT_NE(status.message().find("key " + std::to_string(lost)), std::string::npos) << status;
  EXPECT_EQ(Contains(table, {&lost, 1}, {}).code(), StatusCode::kDataLoss);
  EXPECT_EQ(Contains(table, {&lost, 1}, outcomes).code(), StatusCode::kOk);
  EXPECT_EQ(outcomes[0], static_cast<uint8_t>(Outcome::kDataLoss));
  const std::vector<float> ones(kDim, 1.0f);
  EXPECT_EQ(ApplyGradients(table, {&lost, 1}, RowsOf(ones, kDim), {}).code(),
            StatusCode::kDataLoss);
  // A scan tells, and goes on.
  Scan scan(table);
  std::vector<Key> keys(500);
  std::vector<float> some(keys.size() * kDim);
  uint64_t seen = 0;
  int complaints = 0;
  while (true) {
    const StatusOr<uint64_t> n = scan.Next(keys, RowsIn(&some, kDim));
    if (n.ok() && *n == 0) break;
    if (n.ok()) {
      seen += *n;
    } else {
      ASSERT_EQ(n.status().code(), StatusCode::kDataLoss);
      ASSERT_LT(++complaints, 3);
    }
  }
  EXPECT_GE(complaints, 1);
  EXPECT_EQ(seen, kKeys - 1);
}

// All 64 shards have had rows, and the last alone still has some.
TEST(EvictedRows, ShardsWithoutRowsAreNoReasonToLookNoFurther) {
  SpillWorld store(9);
  Table* const table = store.Create("t", Optimizer::kNone);
  const std::vector<Key> keys = KeysFrom(0, 1000);
  Put(table, keys, 1.0f);
  std::vector<Key> erased;
  for (const Key key : keys) {
    if (KeyIndex::ShardOf(table->HashOf(key)) + 1 < KeyIndex::kShardCount) erased.push_back(key);
  }
  ASSERT_TRUE(Erase(table, erased, {}).ok());
  KeyIndex::Shard* const shard = table->store().index->shard(0);
  Eviction& eviction = table->mover()->eviction();
  MutexLock lock(&shard->mutex);
  std::vector<Location> taken(1);
  while (eviction.TakeFreeSlots(std::span(taken).last(1)) == 1) taken.emplace_back();
  ASSERT_EQ(eviction.EvictForSlots(shard, std::span(taken).last(1)), 1u);
  table->store().tier->Free(table->slot_class(), taken);
}

// One batch fills memory with rows of the first shards; the others get their part later.
TEST(EvictedRows, AShardThatCameLateGetsItsPartOfMemory) {
  if (WithPmem()) GTEST_SKIP() << "a lookup of a row in PMem does not promote it";
  SpillWorld store(5);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const std::vector<Key> all = KeysFrom(0, 4000);
  ASSERT_TRUE(Upsert(table, all, RowsOf(RowsOfKeys(all, 1), kDim), {}).ok());
  std::vector<Key> last;
  for (const Key key : all) {
    if (KeyIndex::ShardOf(table->HashOf(key)) == KeyIndex::kShardCount - 1) last.push_back(key);
  }
  ASSERT_GT(last.size(), 20u);
  last.resize(20);
  std::vector<float> rows(last.size() * kDim);
  const RowLogCounters& counters = table->mover()->logs().lowest().counters();
  for (int round = 0; round < 2; ++round) {
    ASSERT_TRUE(Lookup(table, last, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
    ASSERT_EQ(rows, RowsOfKeys(last, 1));
  }
  const uint64_t reads = counters.reads + counters.buffered_reads;
  ASSERT_TRUE(Lookup(table, last, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  EXPECT_EQ(counters.reads + counters.buffered_reads, reads) << "they are in memory";
}

// A class that comes when others have all pages lives in the log: made, read, changed and erased
// there.
TEST(EvictedRows, AClassWithoutMemoryLivesInTheLog) {
  SpillWorld store(6);
  Table* const first = store.Create("first", Optimizer::kSgd);
  const std::vector<Key> all = KeysFrom(0, 4000);
  ASSERT_TRUE(Upsert(first, all, RowsOf(RowsOfKeys(all, 1), kDim), {}).ok());
  constexpr uint32_t kSmallDim = 8;
  Table* const late = store.Create("late", Optimizer::kSgd, kSmallDim);
  const std::vector<Key> keys = KeysFrom(0, 500);
  std::vector<float> rows(keys.size() * kSmallDim, 7.0f);
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(Upsert(late, keys, RowsOf(rows, kSmallDim), outcomes).ok());
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kCreated)),
            500);
  EXPECT_EQ(late->rows(), 500u);
  EXPECT_EQ(late->rows_in_log(), 500u);
  const std::vector<float> ones(keys.size() * kSmallDim, 1.0f);
  for (int step = 1; step <= 3; ++step) {
    ASSERT_TRUE(ApplyGradients(late, keys, RowsOf(ones, kSmallDim), outcomes).ok());
    EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kFound)),
              500);
    ASSERT_TRUE(Lookup(late, keys, MissingRule::kCreate, RowsIn(&rows, kSmallDim), {}).ok());
    ASSERT_EQ(rows, std::vector<float>(rows.size(), 7.0f - static_cast<float>(step)));
  }
  EXPECT_EQ(late->mover()->rows().orders().givers_visited(), 0u) << "no shard has a row in memory";
  const uint64_t live = LiveRecords(*late);
  ASSERT_TRUE(Erase(late, keys, outcomes).ok());
  EXPECT_EQ(late->rows(), 0u);
  EXPECT_EQ(late->rows_in_log(), 0u);
  EXPECT_EQ(LiveRecords(*late), live - 500);
  std::vector<float> firsts(all.size() * kDim);
  ASSERT_TRUE(Lookup(first, all, MissingRule::kZero, RowsIn(&firsts, kDim), {}).ok());
  EXPECT_EQ(firsts, RowsOfKeys(all, 1));
}

// A log that takes no more records: changes are refused by name, nothing is lost, rows in memory
// can still change, and clean rows make space for others.
TEST(EvictedRows, AFullLogRefusesAndKeepsWhatItHas) {
  SpillWorld store(7, nullptr, 40 * SmallLog().segment_bytes);
  Table* const table = store.Create("t", Optimizer::kSgd);
  std::map<Key, float> expected;
  bool refused = false;
  for (Key first = 0; first < 8000; first += 100) {
    const std::vector<Key> keys = KeysFrom(first, 100);
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(Upsert(table, keys, RowsOf(RowsOfKeys(keys, 1), kDim), outcomes).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      if (outcomes[i] == static_cast<uint8_t>(Outcome::kCreated)) {
        expected[keys[i]] = static_cast<float>(keys[i]);
      } else {
        ASSERT_EQ(outcomes[i], static_cast<uint8_t>(Outcome::kRefused));
        refused = true;
      }
    }
  }
  ASSERT_TRUE(refused);
  ASSERT_EQ(table->rows(), expected.size());
  const std::vector<Key> new_keys = KeysFrom(100'000, 100);
  const Status status = Upsert(table, new_keys, RowsOf(RowsOfKeys(new_keys, 1), kDim), {});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_NE(status.message().find("ssd_bytes"), std::string::npos) << status;
  for (const Key key : new_keys) {
    uint8_t outcome = 0;
    ASSERT_TRUE(Contains(table, {&key, 1}, {&outcome, 1}).ok());
    if (outcome == static_cast<uint8_t>(Outcome::kFound)) expected[key] = static_cast<float>(key);
  }
  // Steps are taken or refused, row by row.
  uint64_t taken = 0;
  for (auto& [key, value] : expected) {
    const std::vector<float> ones(kDim, 1.0f);
    uint8_t outcome = 0;
    ASSERT_TRUE(ApplyGradients(table, {&key, 1}, RowsOf(ones, kDim), {&outcome, 1}).ok());
    if (outcome == static_cast<uint8_t>(Outcome::kFound)) ++taken;
    if (outcome == static_cast<uint8_t>(Outcome::kFound)) value -= 1.0f;
    if (outcome != static_cast<uint8_t>(Outcome::kFound)) {
      ASSERT_EQ(outcome, static_cast<uint8_t>(Outcome::kRefused));
    }
  }
  EXPECT_GT(taken, 0u);
  // PMem takes rows that are changed once more where its segments have died.
  if (!WithPmem()) {
    EXPECT_LT(taken, expected.size());
  }
  for (const auto& [key, value] : expected) {
    std::vector<float> row(kDim);
    ASSERT_TRUE(Lookup(table, {&key, 1}, MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
    ASSERT_EQ(row, std::vector<float>(kDim, value)) << key;
  }
}

// A table whose segments cannot be read can be dropped once they can be; it leaves nothing to a
// later one of its name.
TEST(EvictedRows, ATableThatCannotBeReadIsDroppedAgain) {
  SpillWorld store(8);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const std::vector<Key> all = KeysFrom(0, 4000);
  ASSERT_TRUE(Upsert(table, all, RowsOf(RowsOfKeys(all, 1), kDim), {}).ok());
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  store.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRead ? UnavailableError("no answer") : OkStatus();
  });
  EXPECT_TRUE(IsUnavailable(store->DropTable("t")));
  store.disk().SetFaults(nullptr);
  ASSERT_TRUE(store->DropTable("t").ok());
  EXPECT_EQ(table->rows(), 0u);
  Table* const again = store.Create("t", Optimizer::kSgd);
  std::vector<uint8_t> outcomes(all.size());
  ASSERT_TRUE(Contains(again, all, outcomes).ok());
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kAbsent)),
            4000);
}

// When all rows in memory have changed since they were read or written, the log has the others and
// no more.
TEST(EvictedRows, TheLogHasNoRecordOfARowThatHasChanged) {
  SpillWorld store(9);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const std::vector<Key> all = KeysFrom(0, 4000);
  ASSERT_TRUE(Upsert(table, all, RowsOf(RowsOfKeys(all, 1), kDim), {}).ok());
  std::vector<float> rows(all.size() * kDim);
  ASSERT_TRUE(Lookup(table, all, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  EXPECT_GT(LiveRecords(*table), table->rows_in_log()) << "clean rows in memory";
  const std::vector<float> ones(50 * kDim, 1.0f);
  for (Key first = 0; first < 4000; first += 50) {
    ASSERT_TRUE(ApplyGradients(table, KeysFrom(first, 50), RowsOf(ones, kDim), {}).ok());
  }
  EXPECT_EQ(LiveRecords(*table), table->rows_in_log());
}

TEST(EvictedRows, ASlotThatARowHasLeftIsNobodys) {
  SpillWorld store(10);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const std::vector<Key> key = {77};
  ASSERT_TRUE(Upsert(table, key, RowsOf(RowsOfKeys(key, 1), kDim), {}).ok());
  KeyIndex* const index = table->store().index;
  const RowId id = table->IdOf(77, table->HashOf(77));
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
  const Location slot = index->Find(id).location();
  std::vector<Location> taken(4000);
  {
    MutexLock lock(&shard->mutex);
    taken.resize(table->mover()->eviction().TakeSlots(shard, taken));
    // The tier gives its last free slots first, then the row's slot.
    ASSERT_EQ(std::count(taken.begin(), taken.end(), slot), 0);
    taken.resize(taken.size() + 1);
    ASSERT_EQ(table->mover()->eviction().TakeSlots(shard, std::span(taken).last(1)), 1u);
    ASSERT_EQ(taken.back(), slot);
  }
  const RowHeader* const header = table->layout().Header(table->store().tier->Row(slot));
  EXPECT_EQ(TableOf(LoadIdentity(header)), kNoTable);
  EXPECT_EQ(index->Find(id).location().tier(), WithPmem() ? Tier::kPmem : Tier::kSsd);
  EXPECT_EQ(table->rows_in_log(), 1u);
}

// Two keys that the index cannot tell apart, one of them in the log: its record tells.
TEST(EvictedRows, ARowInTheLogIsNotTakenForAnotherOfTheSameTag) {
  SpillWorld store(11);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const uint64_t table_hash = TableHash(table->name());
  const Key one = KeyWithHash(table_hash, HashAt(3, 0x1234567, 1));
  const Key twin = KeyWithHash(table_hash, HashAt(3, 0x1234567, 2));
  const Key other = KeyWithHash(table_hash, HashAt(3, 0x7654321, 3));
  const std::vector<float> ones(kDim, 1.0f);
  ASSERT_TRUE(Upsert(table, {&one, 1}, RowsOf(ones, kDim), {}).ok());
  // Pushes it out of memory.
  for (Key first = 0; first < 4000; first += 100) {
    const std::vector<Key> some = KeysFrom(first, 100);
    ASSERT_TRUE(Upsert(table, some, RowsOf(RowsOfKeys(some, 1), kDim), {}).ok());
  }
  const RowId id = table->IdOf(one, table->HashOf(one));
  ASSERT_EQ(table->store().index->Find(id).location().tier(), Tier::kSsd);

  const std::vector<Key> keys = {twin, other, twin};
  std::vector<float> rows(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  const auto expect = [&](Outcome first, Outcome second, Outcome third) {
    EXPECT_EQ(outcomes,
              (std::vector<uint8_t>{static_cast<uint8_t>(first), static_cast<uint8_t>(second),
                                    static_cast<uint8_t>(third)}));
  };
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), outcomes).ok());
  expect(Outcome::kAbsent, Outcome::kAbsent, Outcome::kAbsent);
  ASSERT_TRUE(Contains(table, keys, outcomes).ok());
  expect(Outcome::kAbsent, Outcome::kAbsent, Outcome::kAbsent);
  ASSERT_TRUE(Erase(table, keys, outcomes).ok());
  expect(Outcome::kAbsent, Outcome::kAbsent, Outcome::kAbsent);
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, kDim), outcomes).ok());
  expect(Outcome::kCreated, Outcome::kCreated, Outcome::kFound);
  EXPECT_EQ(rows, std::vector<float>(rows.size(), 5.0f));
  const std::vector<float> sevens(rows.size(), 7.0f);
  ASSERT_TRUE(Upsert(table, keys, RowsOf(sevens, kDim), outcomes).ok());
  expect(Outcome::kFound, Outcome::kFound, Outcome::kFound);
  std::vector<float> row(kDim);
  ASSERT_TRUE(Lookup(table, {&one, 1}, MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
  EXPECT_EQ(row, ones);
  ASSERT_TRUE(Erase(table, {&one, 1}, {}).ok());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, kDim), outcomes).ok());
  EXPECT_EQ(rows, sevens);
}

// A row that changes and is evicted again between the reading of its record and its promotion.
TEST(EvictedRows, AnOlderRecordIsNotPromoted) {
  SpillWorld store(13);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const std::vector<Key> keys = {42};
  ASSERT_TRUE(Upsert(table, keys, RowsOf(std::vector<float>(kDim, 1.0f), kDim), {}).ok());
  KeyIndex* const index = table->store().index;
  const RowId id = table->IdOf(42, table->HashOf(42));
  KeyIndex::Shard* const shard = index->shard(KeyIndex::ShardOf(id.hash));
  const auto push_out = [&] {
    std::vector<Location> taken;
    {
      MutexLock lock(&shard->mutex);
      while (index->Find(id).location().tier() == Tier::kDram) {
        Location slot;
        ASSERT_EQ(table->mover()->eviction().TakeSlots(shard, {&slot, 1}), 1u);
        taken.push_back(slot);
      }
    }
    table->store().tier->Free(table->slot_class(), taken);
  };
  push_out();
  const Batch batch(table, keys, {});
  LoggedRows logged;
  ASSERT_TRUE(logged.Allocate(batch).ok());
  LoggedRows::Part part(&logged, batch, 0);
  part.Add(0, index->Find(id).location());
  part.Read({.touches = 1, .promoted = PromotedRows::kHot}, [&](uint32_t, const LoggedRow& row) {
    ASSERT_EQ(row.outcome, Outcome::kFound);
    ASSERT_TRUE(Upsert(table, keys, RowsOf(std::vector<float>(kDim, 2.0f), kDim), {}).ok());
    push_out();
  });
  std::vector<float> row(kDim);
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
  EXPECT_EQ(row, std::vector<float>(kDim, 2.0f));
}

// The log takes nothing more; rows that it has already can leave memory for others all the same.
TEST(EvictedRows, CleanRowsLeaveThoughTheLogIsFull) {
  SpillWorld store(12, nullptr, 50 * SmallLog().segment_bytes);
  Table* const table = store.Create("t", Optimizer::kSgd);
  const std::vector<Key> all = KeysFrom(0, 2600);
  ASSERT_TRUE(Upsert(table, all, RowsOf(RowsOfKeys(all, 1), kDim), {}).ok());
  std::vector<float> rows(all.size() * kDim);
  // Half of memory clean, the rest dirty again.
  ASSERT_TRUE(Lookup(table, all, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  for (Key key = 0; key < 2600; key += 2) {
    const std::vector<float> row(kDim, static_cast<float>(key));
    std::vector<uint8_t> outcome(1);
    ASSERT_TRUE(Upsert(table, {&key, 1}, RowsOf(row, kDim), outcome).ok());
  }
  bool full = false;
  for (Key key = 10'000; !full; ++key) {
    std::vector<uint8_t> outcome(1);
    ASSERT_TRUE(Upsert(table, {&key, 1}, RowsOf(std::vector<float>(kDim), kDim), outcome).ok());
    full = outcome[0] == static_cast<uint8_t>(Outcome::kRefused);
  }
  const RowLogCounters& counters = table->mover()->logs().lowest().counters();
  uint64_t came_up = 0;
  for (Key key = 1; key < 2600; key += 2) {
    std::vector<float> row(kDim);
    const uint64_t in_log = table->rows_in_log();
    const uint64_t reads = counters.reads + counters.buffered_reads;
    ASSERT_TRUE(Lookup(table, {&key, 1}, MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
    ASSERT_EQ(row[0], static_cast<float>(key));
    if (counters.reads + counters.buffered_reads == reads) continue;
    ASSERT_EQ(table->rows_in_log(), in_log) << "one was promoted, one evicted; or none";
    ASSERT_TRUE(Lookup(table, {&key, 1}, MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
    came_up += counters.reads + counters.buffered_reads == reads + 1 ? 1 : 0;
  }
  EXPECT_GT(came_up, 300u);
}

}  // namespace
}  // namespace embank::test::evicted_rows_test
