// Every verb that changes rows pays its debts, and reads no device under a shard's lock.
#include "store/batch/write_scope.h"

#include <gtest/gtest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/prefetch.h"
#include "store/batch/state.h"
#include "store/batch/write.h"
#include "store/store.h"
#include "tests/support/events.h"
#include "tests/support/random.h"
#include "tests/support/row_values.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::write_scope_test {
namespace {

// Memory has slots for half of them.
constexpr Key kKeys = 4000;

// The shards that are locked, as another thread would find them. clang cannot follow the loop.
int LockedShards(KeyIndex* index) EMBANK_NO_THREAD_SAFETY_ANALYSIS {
  int locked = 0;
  for (uint32_t i = 0; i < KeyIndex::kShardCount; ++i) {
    if (!index->shard(i)->mutex.TryLock()) {
      ++locked;
    } else {
      index->shard(i)->mutex.Unlock();
    }
  }
  return locked;
}

// Everything runs on this thread, so that a shard that is locked while the disk reads is locked by
// the verb that reads.
class LockWatch {
 public:
  LockWatch(SpillWorld* world, Table* table) : disk_(&world->disk()) {
    disk_->SetFaults([this, index = table->store().index](const DiskCall& call) {
      if (call.kind == DiskCall::Kind::kRead) {
        ++reads_;
        locked_ += LockedShards(index);
      }
      return OkStatus();
    });
  }
  ~LockWatch() { disk_->SetFaults(nullptr); }
  LockWatch(const LockWatch&) = delete;
  LockWatch& operator=(const LockWatch&) = delete;

  // Whether the disk was read since the last call, and no shard was locked then.
  void ExpectFreeReads(const std::string& verb) {
    EXPECT_GT(std::exchange(reads_, 0), 0) << verb;
    EXPECT_EQ(std::exchange(locked_, 0), 0) << verb << " read the disk under the lock of a shard";
  }

 private:
  SimulatedDisk* const disk_;
  int reads_ = 0;
  int locked_ = 0;
};

// More rows than memory has slots for: rows that were promoted for a batch are evicted before the
// batch has come to them.
std::vector<Key> ManyKeys(Random* random) {
  std::vector<Key> keys;
  for (size_t i = 0; i < 3500; ++i) keys.push_back(random->Below(kKeys));
  return keys;
}

TEST(WriteScope, NoShardIsLockedWhileTheDeviceReads) {
  SpillWorld world(3);
  Table* const table = world.Create("t", Optimizer::kAdagrad);
  for (Key key = 0; key < kKeys; key += 500) Put(table, KeysFrom(key, 500), 1);
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  LockWatch watch(&world, table);
  Random random(3);
  for (int round = 0; round < 3; ++round) {
    const std::vector<Key> keys = ManyKeys(&random);
    std::vector<float> values(keys.size() * kDim, 0.5f);
    std::vector<uint8_t> outcomes(keys.size());
    ASSERT_TRUE(ApplyGradients(table, keys, RowsOf(values, kDim), outcomes).ok());
    watch.ExpectFreeReads("gradients");
    ASSERT_TRUE(SetState(table, keys, RowsOf(values, kDim), outcomes).ok());
    watch.ExpectFreeReads("set_state");
    ASSERT_TRUE(GetState(table, keys, RowsIn(&values, kDim), outcomes).ok());
    watch.ExpectFreeReads("get_state");
    ASSERT_TRUE(Upsert(table, keys, RowsOf(values, kDim), outcomes).ok());
    watch.ExpectFreeReads("upsert");
    ASSERT_TRUE(Lookup(table, keys, MissingRule::kCreate, RowsIn(&values, kDim), outcomes).ok());
    watch.ExpectFreeReads("lookup");
    ASSERT_TRUE(Prefetch(table, keys).ok());
    watch.ExpectFreeReads("prefetch");
    ASSERT_TRUE(Erase(table, std::span(keys).first(1500), std::span(outcomes).first(1500)).ok());
    watch.ExpectFreeReads("erase");
  }
}

// The positions of a key act in order, those that are deferred too.
TEST(WriteScope, PositionsOfAKeyActInOrderWhereTheirRowIsInTheLog) {
  SpillWorld world(5);
  Table* const table = world.Create("t", Optimizer::kNone);
  for (Key key = 0; key < kKeys; key += 500) Put(table, KeysFrom(key, 500), 1);
  Random random(5);
  for (int round = 0; round < 4; ++round) {
    const std::vector<Key> keys = ManyKeys(&random);
    std::vector<float> values(keys.size() * kDim);
    std::vector<float> last(kKeys, 0.0f);
    for (size_t i = 0; i < keys.size(); ++i) {
      last[keys[i]] = static_cast<float>(i + 1);
      FillRow(&values, i, kDim, last[keys[i]]);
    }
    ASSERT_TRUE(Upsert(table, keys, RowsOf(values, kDim), {}).ok());
    ASSERT_TRUE(Lookup(table, keys, MissingRule::kSkip, RowsIn(&values, kDim), {}).ok());
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(values[i * kDim], last[keys[i]]) << "key " << keys[i];
      ASSERT_EQ(values[i * kDim + kDim - 1], last[keys[i]]) << "key " << keys[i];
    }
  }
}

// The rows of the first batch take less than an eighth of memory, those of the second more.
TEST(WriteScope, ABatchIsInPiecesWhereItsRowsTakeAnEighthOfMemory) {
  SpillWorld world(4);
  Table* const table = world.Create("t", Optimizer::kNone, 4);
  for (const auto& [count, pieces] : {std::pair{40'000, 1}, std::pair{100'000, 4}}) {
    const std::vector<Key> keys = KeysFrom(0, static_cast<size_t>(count));
    const Batch batch(table, keys, {});
    const WriteScope scope(batch);
    EXPECT_EQ(scope.MayBeInPieces(), pieces > 1) << count << " keys";
    EXPECT_EQ((keys.size() + scope.PieceKeysMax() - 1) / scope.PieceKeysMax(),
              static_cast<size_t>(pieces))
        << count << " keys";
  }
}

// A key of several pieces makes one step, with the sum of all its gradients: as if each key came
// once, with the sum. Each row is read from the log once.
TEST(WriteScope, AStepOfABatchInPiecesHasTheGradientsOfAllPieces) {
  SpillWorld world(6);
  Table* const table = world.Create("t", Optimizer::kAdagrad, kDim / 2);
  Table* const other = world.Create("u", Optimizer::kAdagrad, kDim / 2);
  constexpr Key kRows = 6000;  // memory has slots for two thirds
  constexpr size_t kTimes = 3;
  const std::vector<Key> distinct = KeysFrom(0, kRows);
  const std::vector<float> ones(distinct.size() * kDim / 2, 1.0f);
  for (Table* const one : {table, other}) {
    ASSERT_TRUE(Upsert(one, distinct, RowsOf(ones, kDim / 2), {}).ok());
  }
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  std::vector<Key> keys;
  std::vector<float> gradients;
  std::vector<float> sums;
  for (size_t i = 0; i < kTimes * kRows; ++i) {
    keys.push_back(i % kRows);
    gradients.insert(gradients.end(), kDim / 2, static_cast<float>(1 + i / kRows * 2));
  }
  sums.assign(distinct.size() * kDim / 2, 1 + 3 + 5);
  const RowLogCounters& counters = table->mover()->logs().lowest().counters();
  const uint64_t reads = counters.read_rows + counters.buffered_reads;
  ASSERT_TRUE(ApplyGradients(table, keys, RowsOf(gradients, kDim / 2), {}).ok());
  EXPECT_LE(counters.read_rows + counters.buffered_reads - reads, kRows + kRows / 50);
  ASSERT_TRUE(ApplyGradients(other, distinct, RowsOf(sums, kDim / 2), {}).ok());
  std::vector<float> rows(ones.size());
  std::vector<float> others(ones.size());
  ASSERT_TRUE(Lookup(table, distinct, MissingRule::kSkip, RowsIn(&rows, kDim / 2), {}).ok());
  ASSERT_TRUE(Lookup(other, distinct, MissingRule::kSkip, RowsIn(&others, kDim / 2), {}).ok());
  EXPECT_EQ(rows, others);
  ASSERT_TRUE(GetState(table, distinct, RowsIn(&rows, kDim / 2), {}).ok());
  ASSERT_TRUE(GetState(other, distinct, RowsIn(&others, kDim / 2), {}).ok());
  EXPECT_EQ(rows, others);
  EXPECT_NE(rows[0], 0.0f);
}

// A batch in pieces promotes its rows and finds its space outside the payload gate: the mover of
// HBM rows, which waits there with free slots of DRAM, has its turns between the pieces.
TEST(WriteScope, ThePayloadGateIsFreeBetweenTwoPieces) {
  SpillWorld world(8);
  world.AddHbmOptions(uint64_t{1} << 20);
  ASSERT_TRUE(world.Open().ok());
  Table* const table = world.Create("t", Optimizer::kAdagrad, kDim / 2);
  const std::vector<Key> keys = KeysFrom(0, 6000);
  const std::vector<float> ones(keys.size() * kDim / 2, 1.0f);
  ASSERT_TRUE(Upsert(table, keys, RowsOf(ones, kDim / 2), {}).ok());
  ASSERT_TRUE(table->mover()->logs().lowest().appender().Flush().ok());
  EntryGate* const gate = table->store().payloads->gate();
  uint64_t closed = 0;
  world.disk().SetFaults([&](const DiskCall& call) {
    if (call.kind != DiskCall::Kind::kRead || !gate->TryClose()) return OkStatus();
    ++closed;
    gate->Open();
    return OkStatus();
  });
  ASSERT_TRUE(ApplyGradients(table, keys, RowsOf(ones, kDim / 2), {}).ok());
  world.disk().SetFaults(nullptr);
  EXPECT_GT(closed, 0u) << "no piece reads the disk outside the gate";
}

// Setting states makes rows dirty and their records dead: compaction moves living rows where
// nothing else changes.
TEST(WriteScope, SettingStatesPaysForCompaction) {
  SpillWorld world(7);
  Table* const table = world.Create("t", Optimizer::kAdagrad);
  for (Key key = 0; key < kKeys; key += 500) Put(table, KeysFrom(key, 500), 1);
  ASSERT_EQ(world->logs()->lowest().counters().compacted_rows, 0u);
  Random random(7);
  // A checkpoint moves rows, too, where no debt is paid.
  uint64_t moved_rows = 0;
  for (int round = 0; round < 30; ++round) {
    const uint64_t before = world->logs()->lowest().counters().compacted_rows;
    std::vector<Key> keys;
    for (size_t i = 0; i < 500; ++i) keys.push_back(random.Below(kKeys));
    const std::vector<float> state(keys.size() * kDim, static_cast<float>(round));
    ASSERT_TRUE(SetState(table, keys, RowsOf(state, kDim), {}).ok());
    moved_rows += world->logs()->lowest().counters().compacted_rows - before;
    ASSERT_TRUE(round % 3 != 2 || world->checkpoints()->Make({}).ok());
  }
  EXPECT_GT(moved_rows, 0u);
}

}  // namespace
}  // namespace embank::test::write_scope_test
