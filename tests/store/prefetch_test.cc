#include "store/batch/prefetch.h"
#include "store/table/pins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/metrics.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/spill_world.h"
#include "tests/support/store_contents.h"

namespace embank::test::prefetch_test {
namespace {

constexpr Key kKeys = 4000;
constexpr Key kOthers = 100'000;

// A table of kKeys rows, of which about half have left memory.
class PrefetchTest : public testing::Test {
 protected:
  void SetUp() override {
    table_ = store_.Create("t", Optimizer::kSgd);
    // The steps are small, so that all shards get their part of memory.
    for (Key first = 0; first < kKeys; first += 100) Put(table_, KeysFrom(first, 100), 1);
    ASSERT_TRUE(table_->mover()->logs().lowest().appender().Flush().ok());
    ASSERT_GT(table_->rows_in_log(), 1900u);
  }

  bool InMemory(Key key) const {
    return table_->store().index->Find(table_->IdOf(key, table_->HashOf(key))).location().tier() ==
           Tier::kDram;
  }
  // So many keys whose rows are in memory, or in the log alone.
  std::vector<Key> KeysThat(bool are_in_memory, size_t n) const {
    std::vector<Key> keys;
    for (Key key = 0; key < kKeys && keys.size() < n; ++key) {
      if (InMemory(key) == are_in_memory) keys.push_back(key);
    }
    EXPECT_EQ(keys.size(), n);
    return keys;
  }
  uint64_t InMemory(const std::vector<Key>& keys) const {
    return static_cast<uint64_t>(
        std::count_if(keys.begin(), keys.end(), [&](Key key) { return InMemory(key); }));
  }
  // Rows of the log that were read, wherever it had them.
  uint64_t Reads() const {
    const RowLogCounters& counters = table_->mover()->logs().lowest().counters();
    return counters.reads + counters.buffered_reads;
  }
  void ExpectLookupReads(const std::vector<Key>& keys, uint64_t reads) {
    const uint64_t before = Reads();
    std::vector<float> rows(keys.size() * kDim);
    ASSERT_TRUE(Lookup(table_, keys, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
    EXPECT_EQ(rows, RowsOfKeys(keys, 1));
    EXPECT_EQ(Reads() - before, reads);
  }
  void LookUpOthers(int batches) {
    std::vector<float> row(kDim);
    const Key absent = 77'777;
    for (int i = 0; i < batches; ++i) {
      ASSERT_TRUE(Lookup(table_, {&absent, 1}, MissingRule::kZero, RowsIn(&row, kDim), {}).ok());
    }
  }
  // Makes new rows, for which all others would leave; by small steps, as eviction likes it.
  void PushOut() {
    for (Key first = 0; first < 2500; first += 100) {
      Put(table_, KeysFrom(next_other_ + first, 100), 1);
    }
    next_other_ += 10'000;
  }
  uint64_t pinned_bytes() const { return table_->store().pins->used_bytes(); }
  uint64_t prefetched() const { return table_->counters().prefetched_rows; }
  uint64_t unused() const { return table_->counters().unused_rows; }

  SpillWorld store_{21};
  Table* table_ = nullptr;
  Key next_other_ = kOthers;
};

TEST_F(PrefetchTest, TheNextLookupReadsNothing) {
  const std::vector<Key> keys = KeysThat(false, 300);
  const uint64_t before = Reads();
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  EXPECT_GT(Reads(), before);
  EXPECT_EQ(prefetched(), 300u);
  EXPECT_EQ(InMemory(keys), 300u);
  EXPECT_EQ(pinned_bytes(), 300 * table_->layout().row_bytes);
  ExpectLookupReads(keys, 0);
  const std::string metrics = FormatMetrics(*store_.get());
  for (const char* line : {"embank_prefetched_rows_total{table=\"t\"} 300\n",
                           "embank_prefetched_unused_rows_total{table=\"t\"} 0\n",
                           "embank_batches_total{table=\"t\",op=\"prefetch\"} 1\n"}) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line;
  }
}

TEST_F(PrefetchTest, CountsNoHeatAndCreatesNothing) {
  std::vector<Key> keys = KeysThat(false, 20);
  keys.insert(keys.end(), {kKeys + 1, kKeys + 2, ~Key{0}});
  std::vector<uint32_t> before(keys.size());
  std::vector<uint32_t> after(keys.size());
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(GetHeat(table_, keys, before, outcomes).ok());
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  ASSERT_TRUE(GetHeat(table_, keys, after, outcomes).ok());
  EXPECT_EQ(after, before);
  EXPECT_EQ(table_->rows(), kKeys);
  EXPECT_EQ(prefetched(), 20u);
}

TEST_F(PrefetchTest, ReadsEqualKeysOnce) {
  const std::vector<Key> keys = KeysThat(false, 40);
  std::vector<Key> thrice;
  for (int i = 0; i < 3; ++i) thrice.insert(thrice.end(), keys.begin(), keys.end());
  const RowLogCounters& counters = table_->mover()->logs().lowest().counters();
  const uint64_t before = counters.read_bytes;
  ASSERT_TRUE(Prefetch(table_, thrice).ok());
  // A record has 4,128 bytes and stands in two blocks.
  EXPECT_LE(counters.read_bytes - before, keys.size() * 2 * kBlockBytes);
  EXPECT_EQ(prefetched(), 40u);
  EXPECT_EQ(pinned_bytes(), 40 * table_->layout().row_bytes);
  ExpectLookupReads(thrice, 0);
}

TEST_F(PrefetchTest, AnEmptyPrefetchIsFine) {
  const uint64_t before = Reads();
  ASSERT_TRUE(Prefetch(table_, {}).ok());
  ASSERT_TRUE(Prefetch(table_, KeysFrom(kKeys, 100)).ok());
  EXPECT_EQ(Reads(), before);
  EXPECT_EQ(pinned_bytes(), 0u);
}

TEST_F(PrefetchTest, RowsStayUntilTheyAreLookedUp) {
  const std::vector<Key> keys = KeysThat(false, 400);
  const std::vector<Key> pinned(keys.begin(), keys.begin() + 200);
  const std::vector<Key> not_pinned(keys.begin() + 200, keys.end());
  ASSERT_TRUE(Prefetch(table_, pinned).ok());
  std::vector<float> rows(not_pinned.size() * kDim);
  ASSERT_TRUE(Lookup(table_, not_pinned, MissingRule::kZero, RowsIn(&rows, kDim), {}).ok());
  PushOut();
  EXPECT_LT(InMemory(not_pinned), 20u) << "a lookup promoted them, and they have left";
  EXPECT_EQ(InMemory(pinned), 200u);
  ExpectLookupReads(pinned, 0);
  EXPECT_EQ(unused(), 0u);
}

TEST_F(PrefetchTest, RowsThatWereInMemoryStayToo) {
  const std::vector<Key> keys = KeysThat(true, 400);
  const std::vector<Key> pinned(keys.begin(), keys.begin() + 200);
  const uint64_t before = Reads();
  ASSERT_TRUE(Prefetch(table_, pinned).ok());
  EXPECT_EQ(Reads(), before);
  EXPECT_EQ(prefetched(), 0u);
  PushOut();
  EXPECT_EQ(InMemory(pinned), 200u);
  EXPECT_LT(InMemory(keys), 300u);
}

TEST_F(PrefetchTest, PinsLapseAfterTwelveLookupBatches) {
  const std::vector<Key> keys = KeysThat(false, 200);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  LookUpOthers(Pins::kBatches - 1);
  PushOut();
  EXPECT_EQ(InMemory(keys), 200u);
  LookUpOthers(1);
  EXPECT_EQ(pinned_bytes(), 0u);
  PushOut();
  PushOut();
  EXPECT_LT(InMemory(keys), 20u);
  EXPECT_GT(unused(), 180u) << "they were promoted in vain";
  EXPECT_EQ(unused(), 200 - InMemory(keys));
}

TEST_F(PrefetchTest, RowsThatWereLookedUpAreNotUnused) {
  const std::vector<Key> keys = KeysThat(false, 200);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  ExpectLookupReads(std::vector<Key>(keys.begin(), keys.begin() + 150), 0);
  LookUpOthers(Pins::kBatches);
  for (int i = 0; i < 3; ++i) PushOut();
  EXPECT_EQ(InMemory(keys), 0u);
  EXPECT_EQ(unused(), 50u);
}

TEST_F(PrefetchTest, AChangeEndsThePin) {
  const std::vector<Key> keys = KeysThat(false, 200);
  const std::vector<Key> changed(keys.begin(), keys.begin() + 60);
  const std::vector<Key> written(keys.begin() + 60, keys.begin() + 100);
  const std::vector<Key> erased(keys.begin() + 100, keys.begin() + 150);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  const std::vector<float> ones(changed.size() * kDim, 1.0f);
  ASSERT_TRUE(ApplyGradients(table_, changed, RowsOf(ones, kDim), {}).ok());
  EXPECT_EQ(pinned_bytes(), 140 * table_->layout().row_bytes);
  Put(table_, written, 2);
  EXPECT_EQ(pinned_bytes(), 100 * table_->layout().row_bytes);
  ASSERT_TRUE(Erase(table_, erased, {}).ok());
  EXPECT_EQ(pinned_bytes(), 50 * table_->layout().row_bytes);
  for (int i = 0; i < 3; ++i) PushOut();
  EXPECT_EQ(InMemory(changed), 0u);
  EXPECT_EQ(InMemory(std::vector<Key>(keys.begin() + 150, keys.end())), 50u);
  EXPECT_EQ(unused(), 0u);
  ASSERT_TRUE(store_->DropTable("t").ok());
  EXPECT_EQ(pinned_bytes(), 0u);
}

// No more than a quarter of memory is pinned, half of the rows are promoted for others, and what is
// there afterwards is as good as before.
TEST_F(PrefetchTest, APrefetchOfMoreThanFitsPromotesAsMuchAsFits) {
  const uint64_t in_memory = kKeys - table_->rows_in_log();
  const std::vector<Key> out = KeysThat(false, table_->rows_in_log());
  ASSERT_TRUE(Prefetch(table_, out).ok());
  EXPECT_LE(pinned_bytes(), kDramBytes / 4);
  EXPECT_GT(pinned_bytes(), kDramBytes / 4 * 15 / 16);
  EXPECT_EQ(prefetched(), in_memory / 2);
  EXPECT_GT(InMemory(out), prefetched() * 95 / 100) << "they do not push each other out";
  EXPECT_EQ(kKeys - table_->rows_in_log(), in_memory);
  const uint64_t reads = Reads();
  ASSERT_TRUE(Prefetch(table_, KeysFrom(0, kKeys)).ok());
  EXPECT_LE(pinned_bytes(), kDramBytes / 4);
  EXPECT_GT(Reads(), reads);
  ExpectRows(table_, *ReadAll(table_));
  EXPECT_EQ(table_->rows(), kKeys);
}

// Pinned rows alone in the way of others: speed is not bought with refusals.
TEST_F(PrefetchTest, PinnedRowsLeaveWhenThereAreNoOthers) {
  std::vector<Key> keys;
  for (Key key = 0; keys.size() < 900; ++key) {
    if (KeyIndex::ShardOf(table_->HashOf(kOthers + key)) == 7) keys.push_back(kOthers + key);
  }
  Put(table_, keys, 1);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  const uint64_t before = InMemory(keys);
  EXPECT_GT(pinned_bytes(), before / 2 * table_->layout().row_bytes);
  EXPECT_LE(pinned_bytes(), before * table_->layout().row_bytes) << "those that left";
  std::vector<Key> more;
  for (Key key = 0; more.size() < 2000; ++key) {
    if (KeyIndex::ShardOf(table_->HashOf(200'000 + key)) == 7) more.push_back(200'000 + key);
  }
  std::vector<uint8_t> outcomes(more.size());
  ASSERT_TRUE(Upsert(table_, more, RowsOf(RowsOfKeys(more, 1), kDim), outcomes).ok());
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kCreated)),
            2000);
  EXPECT_EQ(table_->rows(), kKeys + keys.size() + more.size());
  EXPECT_LT(InMemory(keys), before / 2);
  ExpectRows(table_, *ReadAll(table_));
}

// Two keys that the index cannot tell apart, one of them in the log.
TEST_F(PrefetchTest, ARowOfTheSameTagIsNotPromotedInstead) {
  const uint64_t table_hash = TableHash(table_->name());
  const Key one = KeyWithHash(table_hash, HashAt(3, 0x1234567, 1));
  const Key twin = KeyWithHash(table_hash, HashAt(3, 0x1234567, 2));
  Put(table_, {one}, 0);
  for (int i = 0; i < 3; ++i) PushOut();
  ASSERT_FALSE(InMemory(one));
  const uint64_t before = Reads();
  ASSERT_TRUE(Prefetch(table_, {&twin, 1}).ok());
  EXPECT_GT(Reads(), before);
  EXPECT_EQ(prefetched(), 0u);
  uint8_t outcome = 0;
  ASSERT_TRUE(Contains(table_, {&twin, 1}, {&outcome, 1}).ok());
  EXPECT_EQ(outcome, static_cast<uint8_t>(Outcome::kAbsent));
  ASSERT_TRUE(Prefetch(table_, {&one, 1}).ok());
  EXPECT_EQ(prefetched(), 1u);
}

TEST_F(PrefetchTest, StopsReadingWhenThereIsNoSpace) {
  ASSERT_TRUE(store_->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store_.Open().ok());
  table_ = *store_->catalog().Open("t");
  ASSERT_TRUE(Prefetch(table_, KeysFrom(0, kKeys)).ok());
  EXPECT_GT(prefetched(), 1800u);
  const uint64_t row_bytes = table_->layout().row_bytes;
  EXPECT_LT(table_->mover()->logs().lowest().counters().read_bytes, kKeys * row_bytes * 3 / 4);
}

// Calls *hook, if there is one, before its second list of tasks.
class HookedExecutor final : public Executor {
 public:
  HookedExecutor(uint64_t seed, std::function<void()>* hook) : inner_(seed), hook_(hook) {}

  void ParallelFor(uint32_t tasks, FunctionRef<void(uint32_t)> body) override {
    if (*hook_ != nullptr && ++lists_ == 2) std::exchange(*hook_, nullptr)();
    inner_.ParallelFor(tasks, body);
  }
  std::unique_ptr<BackgroundTask> MakeBackgroundTask(BackgroundStep step) override {
    return inner_.MakeBackgroundTask(std::move(step));
  }
  std::unique_ptr<JoinedThread> MakeThread(std::function<void()> body) override {
    return inner_.MakeThread(std::move(body));
  }
  uint32_t concurrency() const override { return 1; }

 private:
  SimulatedExecutor inner_;
  std::function<void()>* const hook_;
  int lists_ = 0;
};

// Rows that change and leave again between the look at the index and the reading of their records.
TEST(PrefetchOfManyKeys, BringsNoOlderRecordUp) {
  std::function<void()> hook;
  SpillWorld store(22, std::make_unique<HookedExecutor>(1, &hook));
  Table* const table = store.Create("t", Optimizer::kSgd);
  Rows expected;
  const auto put_each = [&](Key step, float factor) {
    for (Key first = 0; first < kKeys; first += 100) {
      std::vector<Key> keys;
      for (Key key = first; key < first + 100; key += step) keys.push_back(key);
      Put(table, keys, factor);
      for (const Key key : keys) expected[key] = factor * static_cast<float>(key);
    }
  };
  put_each(1, 1);
  std::vector<Key> keys;
  for (int i = 0; i < 3; ++i) {
    for (Key key = 0; key < kKeys; ++key) keys.push_back(key);
  }
  // The others keep the segments.
  hook = [&] { put_each(2, 2); };
  ASSERT_TRUE(Prefetch(table, keys).ok());
  ASSERT_EQ(hook, nullptr);
  ExpectIs(store.get(), {{"t", expected}});
}

TEST_F(PrefetchTest, AfterARestartFillsMemory) {
  ASSERT_TRUE(store_->checkpoints()->Make({}).ok());
  ASSERT_TRUE(store_.Open().ok());
  table_ = *store_->catalog().Open("t");
  ASSERT_EQ(table_->rows_in_log(), kKeys);
  ASSERT_TRUE(Prefetch(table_, KeysFrom(0, 1800)).ok());
  EXPECT_EQ(prefetched(), 1800u) << "a quarter is pinned, the others have free slots";
  EXPECT_LE(pinned_bytes(), kDramBytes / 4);
  ExpectLookupReads(KeysFrom(0, 1800), 0);
}

TEST_F(PrefetchTest, ADroppedTableIsRefused) {
  ASSERT_TRUE(store_->DropTable("t").ok());
  EXPECT_TRUE(IsFailedPrecondition(Prefetch(table_, KeysFrom(0, 10))));
}

TEST_F(PrefetchTest, ARowThatCannotBeReadStaysWhereItIs) {
  const std::vector<Key> keys = KeysThat(false, 100);
  store_.disk().SetFaults([](const DiskCall& call) {
    return call.kind == DiskCall::Kind::kRead ? UnavailableError("no answer") : OkStatus();
  });
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  EXPECT_EQ(prefetched(), 0u);
  EXPECT_EQ(pinned_bytes(), 0u);
  std::vector<float> rows(keys.size() * kDim);
  EXPECT_TRUE(IsDataLoss(Lookup(table_, keys, MissingRule::kZero, RowsIn(&rows, kDim), {})));
  store_.disk().SetFaults(nullptr);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  ExpectLookupReads(keys, 0);
}

TEST_F(PrefetchTest, ADamagedRecordIsNotPromoted) {
  const std::vector<std::string> files = store_.disk().Files();
  const std::string& path = *std::find_if(files.begin(), files.end(), [](const std::string& f) {
    return f.find("segment") != std::string::npos;
  });
  const std::vector<std::byte> record = store_.disk().Contents(path);
  const std::vector<std::byte> wrong = {record[kBlockBytes + 40] ^ std::byte{1}};
  store_.disk().Corrupt(path, kBlockBytes + 40, wrong);
  Key lost = 0;
  std::memcpy(&lost, record.data() + kBlockBytes + 8, sizeof lost);
  std::vector<Key> keys = KeysThat(false, 100);
  if (std::find(keys.begin(), keys.end(), lost) == keys.end()) keys.push_back(lost);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  EXPECT_EQ(prefetched(), keys.size() - 1);
  EXPECT_FALSE(InMemory(lost));
  std::vector<float> row(kDim);
  EXPECT_TRUE(IsDataLoss(Lookup(table_, {&lost, 1}, MissingRule::kZero, RowsIn(&row, kDim), {})));
}

TEST_F(PrefetchTest, WithoutMemoryForItselfDoesNothing) {
  const std::vector<Key> keys = KeysThat(false, 300);
  uint64_t refused = 0;
  for (uint64_t n = 1;; ++n) {
    Status status;
    uint64_t failed = 0;
    {
      const AllocationFaults faults(n, FaultKind::kSince);
      status = Prefetch(table_, keys);
      failed = AllocationFaults::Failed();
    }
    if (failed == 0) break;
    ASSERT_TRUE(IsResourceExhausted(status) || status.ok()) << status;
    refused += status.ok() ? 0 : 1;
    EXPECT_TRUE(status.ok() || prefetched() == 0);
  }
  EXPECT_GE(refused, 3u);
  ASSERT_TRUE(Prefetch(table_, keys).ok());
  ExpectLookupReads(keys, 0);
}

TEST(PrefetchInMemory, DoesNothing) {
  StoreWorld store({.dram_bytes = 32 << 20});
  Table* const table = store.Create("t", OptionsOf(2));
  EXPECT_TRUE(Prefetch(table, KeysFrom(0, 100)).ok());
  EXPECT_EQ(table->rows(), 0u);
  EXPECT_EQ(table->counters().prefetched_rows, 0u);
}

}  // namespace
}  // namespace embank::test::prefetch_test
