// Tables in memory that forget: the rows that are forgotten, for which rows, and the rows that
// never are.
#include <gtest/gtest.h>

#include <algorithm>
#include <list>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/estimate.h"
#include "store/inspect/memory_report.h"
#include "store/inspect/metrics.h"
#include "store/placement/memory_plan.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/policies.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::forgetting_test {
namespace {

// Few slots to a page: some 760 in the smallest store.
constexpr uint32_t kDim = 4096;
constexpr uint64_t kDramBytes = uint64_t{16} << 20;
// More rows than that it has no space for.
constexpr uint64_t kFillMax = 2000;

TableOptions Forgets(EvictionPolicy eviction, uint32_t dim = kDim) {
  TableOptions options = OptionsOf(dim);
  options.eviction = eviction;
  options.on_full = OnFull::kForget;
  return options;
}

uint64_t Forgotten(Table* table) { return table->counters().forgotten_rows.load(); }

class ForgettingTest : public testing::TestWithParam<EvictionPolicy> {
 protected:
  std::vector<Outcome> Create(Table* table, const std::vector<Key>& keys) {
    return Answer(table, keys, MissingRule::kCreate);
  }
  std::vector<Outcome> Answer(Table* table, const std::vector<Key>& keys, MissingRule rule) {
    std::vector<float> rows(keys.size() * table->layout().dim);
    std::vector<uint8_t> outcomes(keys.size());
    const Status status = Lookup(table, keys, rule, RowsIn(&rows, table->layout().dim), outcomes);
    EXPECT_TRUE(status.ok()) << status;
    return As(outcomes);
  }
  static std::vector<Outcome> As(const std::vector<uint8_t>& outcomes) {
    std::vector<Outcome> as;
    for (const uint8_t outcome : outcomes) as.push_back(static_cast<Outcome>(outcome));
    return as;
  }
  // How many of the keys have a row.
  static size_t Has(Table* table, const std::vector<Key>& keys) {
    std::vector<uint8_t> outcomes(keys.size());
    EXPECT_TRUE(Contains(table, keys, outcomes).ok());
    return static_cast<size_t>(
        std::count(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kFound)));
  }
  // Creates keys from `first` on until one is forgotten; behind the last.
  Key Fill(Table* table, Key first = 0) {
    while (Forgotten(table) == 0 && first < kFillMax) Create(table, {first++});
    EXPECT_EQ(Forgotten(table), 1u);
    return first;
  }
  void ExpectInBudget(StoreWorld* store) {
    const MemoryReport report = ReportMemory(**store);
    EXPECT_LE(report.used_bytes, report.budget_bytes);
    EXPECT_EQ(report.used_bytes, report.fixed_bytes + report.index_bytes + report.rows_bytes +
                                     report.state_bytes + report.slack_bytes);
    EXPECT_LE(store->memory()->committed_bytes(), report.budget_bytes);
  }
};
INSTANTIATE_TEST_SUITE_P(Policies, ForgettingTest, PoliciesOfSuite(EvictionPolicy::kClock));

// ---- a cache on paper ----

// One shard's rows, as tiers/dram/eviction_order.h says it, in lists and maps.
class PaperCache {
 public:
  PaperCache(EvictionPolicy policy, uint64_t capacity) : policy_(policy), capacity_(capacity) {}

  // Whether the key was there; it is now.
  bool LookUp(Key key) {
    const auto found = rows_.find(key);
    if (found != rows_.end()) {
      found->second.referenced = true;
      ++found->second.heat;
      if (policy_ == EvictionPolicy::kLru) {
        rounds_[0].splice(rounds_[0].end(), rounds_[0], found->second.place);
      }
      return true;
    }
    if (rows_.size() == capacity_) ForgetOne();
    Row& row = rows_[key];
    PutNewest(key, &row);
    return false;
  }

 private:
  struct Row {
    uint32_t heat = 1;
    bool referenced = false;
    std::list<Key>::iterator place = {};
  };

  void PutNewest(Key key, Row* row) {
    const bool is_lfu = policy_ == EvictionPolicy::kLfu;
    std::list<Key>& round = rounds_[is_lfu ? round_ + std::clamp(row->heat, 1u, 16u) : 0];
    row->place = round.insert(round.end(), key);
  }
  void ForgetOne() {
    for (int passed_over = 0;; ++passed_over) {
      while (rounds_.begin()->second.empty()) rounds_.erase(rounds_.begin());
      round_ = rounds_.begin()->first;
      const Key key = rounds_.begin()->second.front();
      Row& row = rows_.at(key);
      rounds_.begin()->second.pop_front();
      if (passed_over == 256 || policy_ == EvictionPolicy::kLru || !row.referenced) {
        rows_.erase(key);
        return;
      }
      row.referenced = false;
      PutNewest(key, &row);
    }
  }

  const EvictionPolicy policy_;
  const uint64_t capacity_;
  std::unordered_map<Key, Row> rows_;
  uint64_t round_ = 0;
  std::map<uint64_t, std::list<Key>> rounds_;
};

// Key after key of one shard: the same rows are forgotten as on paper.
TEST_P(ForgettingTest, AgreesWithACacheOnPaperKeyByKey) {
  const auto key_of = [](uint64_t i) {
    const uint64_t q = i * 0x9E3779B1u % kQuotients;
    return KeyWithHash(TableHash("t"), HashAt(/*shard=*/9, q));
  };
  uint64_t capacity = 0;
  {
    StoreWorld store({.dram_bytes = kDramBytes});
    Table* const table = store.Create("t", Forgets(GetParam()));
    for (uint64_t i = 0; Forgotten(table) == 0 && i < kFillMax; ++i) Create(table, {key_of(i)});
    ASSERT_EQ(Forgotten(table), 1u);
    capacity = table->rows();
  }
  ASSERT_GT(capacity, 500u);
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  PaperCache paper(GetParam(), capacity);
  Random random(5);
  uint64_t hits = 0;
  constexpr int kLookups = 12'000;
  for (int i = 0; i < kLookups; ++i) {
    // Half of them to few keys, some to keys that never come again.
    const uint64_t drawn = random.OneIn(2)   ? random.Below(capacity / 2)
                           : random.OneIn(3) ? capacity * 3 + static_cast<uint64_t>(i)
                                             : random.Below(capacity * 3);
    const Key key = key_of(drawn);
    const Outcome on_paper = paper.LookUp(key) ? Outcome::kFound : Outcome::kCreated;
    ASSERT_EQ(Create(table, {key}).front(), on_paper) << "lookup " << i;
    hits += on_paper == Outcome::kFound ? 1 : 0;
  }
  EXPECT_EQ(table->rows(), capacity);
  EXPECT_EQ(Forgotten(table), kLookups - hits - capacity);
  EXPECT_GT(hits, 4000u);
}

// ---- rows that are forgotten last ----

TEST_P(ForgettingTest, NoRowThatTheBatchUsesOrMakesIsForgotten) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  Key next = Fill(table);
  const size_t slots = table->rows();
  for (int round = 0; round < 20; ++round) {
    // The rows that are next to be forgotten, and new ones.
    std::vector<Key> batch;
    for (Key key = 0; key < next && batch.size() < slots / 4; ++key) {
      if (Has(table, {key}) == 1) batch.push_back(key);
    }
    const size_t old = batch.size();
    for (size_t i = 0; i < slots / 4; ++i) batch.push_back(next++);
    std::reverse(batch.begin(), batch.begin() + static_cast<ptrdiff_t>(old));
    const std::vector<Outcome> outcomes = Create(table, batch);
    ASSERT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kFound),
              static_cast<ptrdiff_t>(old));
    ASSERT_EQ(Has(table, batch), batch.size()) << "round " << round;
    ASSERT_EQ(table->rows(), slots);
  }
}

TEST_P(ForgettingTest, NorByAnUpsert) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  const Key next = Fill(table);
  const size_t slots = table->rows();
  std::vector<Key> batch;
  for (Key key = 0; key < next && batch.size() < slots / 4; ++key) {
    if (Has(table, {key}) == 1) batch.push_back(key);
  }
  // New rows first: those that are there come last, and are there still.
  for (size_t i = 0; i < slots / 4; ++i) batch.insert(batch.begin(), next + i);
  const std::vector<float> rows(batch.size() * kDim, 3.0f);
  std::vector<uint8_t> outcomes(batch.size());
  ASSERT_TRUE(Upsert(table, batch, RowsOf(rows, kDim), outcomes).ok());
  for (size_t i = 0; i < batch.size(); ++i) {
    EXPECT_EQ(static_cast<Outcome>(outcomes[i]),
              batch[i] < next ? Outcome::kFound : Outcome::kCreated);
  }
  EXPECT_EQ(Has(table, batch), batch.size());
}

TEST_P(ForgettingTest, ABatchLargerThanMemoryForgetsItsOwn) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  std::vector<Key> batch = KeysFrom(0, 3000);
  const size_t distinct = batch.size();
  batch.insert(batch.end(), batch.begin(), batch.begin() + 100);  // some twice
  for (int round = 0; round < 3; ++round) {
    const std::vector<Outcome> outcomes = Create(table, batch);
    EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kRefused), 0);
    const uint64_t rows = table->rows();
    EXPECT_EQ(Has(table, KeysFrom(0, distinct)), rows);
    EXPECT_GT(rows, 700u);
    EXPECT_LT(rows, 800u);
    ExpectInBudget(&store);
  }
}

// ---- space ----

// A class with more rows: some shards have none, and take slots from the others.
TEST_P(ForgettingTest, AShardWithoutRowsGetsItsPart) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  const auto key_of = [](uint32_t shard, uint64_t i) {
    return KeyWithHash(TableHash("t"), HashAt(shard, i * 0x9E3779B1u % kQuotients));
  };
  for (uint64_t i = 0; Forgotten(table) == 0 && i < kFillMax; ++i) Create(table, {key_of(1, i)});
  const size_t slots = table->rows();
  std::vector<Key> others;
  for (uint64_t i = 0; i < 6; ++i) {
    for (uint32_t shard = 0; shard < KeyIndex::kShardCount; ++shard) {
      if (shard != 1) others.push_back(key_of(shard, i));
    }
  }
  for (const Key key : others) EXPECT_EQ(Create(table, {key}).front(), Outcome::kCreated);
  EXPECT_EQ(Has(table, others), others.size());
  EXPECT_EQ(table->rows(), slots);
}

TEST_P(ForgettingTest, AnIndexThatCannotGrowForgetsRowsToo) {
  StoreWorld store;
  Table* const table = store.Create("t", Forgets(GetParam(), /*dim=*/1));
  constexpr Key kKeys = 250'000;
  constexpr size_t kBatch = 5'000;
  const auto create_all = [&](Key first) {
    for (Key key = first; key < first + kKeys; key += kBatch) Create(table, KeysFrom(key, kBatch));
  };
  create_all(0);
  std::vector<Key> all = KeysFrom(0, kKeys);
  ASSERT_TRUE(Erase(table, all, {}).ok());
  ASSERT_EQ(table->rows(), 0u);
  // From now on there are slots for all of them, but the smallest index: the erasures have given
  // the rest of its memory back.
  EXPECT_EQ(table->store().index->memory()->Release(), 0u);
  store.memory()->FailEveryCall(true);
  create_all(kKeys);
  const uint64_t rows = table->rows();
  EXPECT_LE(rows, kFirstBuckets * 7 * 64 * 8 / 10 + 64);
  EXPECT_GT(rows, kFirstBuckets * 7 * 64 * 7 / 10);
  EXPECT_EQ(Forgotten(table), kKeys - rows);
  EXPECT_EQ(table->counters().calls.Counts(TableVerb::kLookup).keys_by_outcome[3], 0u) << "refused";
  store.memory()->FailEveryCall(false);
  create_all(2 * kKeys);
  EXPECT_GT(table->rows(), rows);
}

// More keys of one place than the index has entries there: others would be forgotten in vain.
TEST_P(ForgettingTest, KeysWithoutAPlaceAreRefusedAndNothingIsForgotten) {
  StoreWorld store;
  Table* const table = store.Create("t", Forgets(GetParam()));
  constexpr uint32_t kPlaces = 8 * kBucketEntries;
  std::vector<Key> keys;
  for (uint32_t i = 0; i < kPlaces + 100; ++i) {
    keys.push_back(KeyWithHash(TableHash("t"), HashAt(/*shard=*/9, /*q=*/1234, i)));
  }
  const std::vector<Outcome> outcomes = Create(table, keys);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kCreated), kPlaces);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kRefused), 100);
  EXPECT_EQ(Forgotten(table), 0u);
  EXPECT_EQ(table->rows(), kPlaces);
}

TEST_P(ForgettingTest, MemoryThatFailsIsAFullStore) {
  StoreWorld store;
  Table* const table = store.Create("t", Forgets(GetParam()));
  store.memory()->FailEveryCall(true);
  EXPECT_EQ(Create(table, {1}).front(), Outcome::kRefused) << "there is nothing to forget";
  const std::vector<float> row(kDim);
  const Status refused = Upsert(table, std::vector<Key>{1}, RowsOf(row, kDim), {});
  EXPECT_TRUE(IsResourceExhausted(refused)) << refused;
  EXPECT_EQ(table->rows(), 0u);
  store.memory()->FailEveryCall(false);
  EXPECT_EQ(Create(table, {1}).front(), Outcome::kCreated);
  store.memory()->FailEveryCall(true);
  const size_t slots = DramTier::SlotsPerPage(table->layout().row_bytes, true);
  Create(table, KeysFrom(2, slots - 1));
  EXPECT_EQ(Forgotten(table), 0u);
  EXPECT_EQ(Create(table, {slots + 1}).front(), Outcome::kCreated);
  EXPECT_EQ(Forgotten(table), 1u);
  EXPECT_EQ(table->rows(), slots);
}

TEST_P(ForgettingTest, AnAllocationThatFailsForgetsNothing) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  const std::vector<Key> keys = KeysFrom(Fill(table), 100);
  const uint64_t rows = table->rows();
  const uint64_t forgotten = Forgotten(table);
  std::vector<float> values(keys.size() * kDim);
  std::vector<uint8_t> outcomes(keys.size());
  for (const bool upserts : {false, true}) {
    uint64_t failures = 0;
    for (uint64_t n = 1;; ++n) {
      Status status;
      {
        const AllocationFaults faults(n, FaultKind::kOnce);
        status = upserts
                     ? Upsert(table, keys, RowsOf(values, kDim), outcomes)
                     : Lookup(table, keys, MissingRule::kCreate, RowsIn(&values, kDim), outcomes);
      }
      if (status.ok()) break;
      ASSERT_TRUE(IsResourceExhausted(status)) << status;
      ++failures;
      if (upserts) continue;
      ASSERT_EQ(table->rows(), rows);
      ASSERT_EQ(Forgotten(table), forgotten);
    }
    EXPECT_GE(failures, 3u);
    EXPECT_EQ(Forgotten(table), forgotten + keys.size());
  }
}

TEST_P(ForgettingTest, ErasedRowsFreeSpaceBeforeAnyIsForgotten) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const table = store.Create("t", Forgets(GetParam()));
  const Key next = Fill(table);
  std::vector<Key> erased;
  for (Key key = 0; erased.size() < 100; ++key) {
    if (Has(table, {key}) == 1) erased.push_back(key);
  }
  ASSERT_TRUE(Erase(table, erased, {}).ok());
  const uint64_t forgotten = Forgotten(table);
  Create(table, KeysFrom(next, 100));
  EXPECT_EQ(Forgotten(table), forgotten);
  Create(table, KeysFrom(next + 100, 100));
  EXPECT_EQ(Forgotten(table), forgotten + 100);
  ExpectInBudget(&store);
}

// The estimate is enough.
TEST_P(ForgettingTest, ForgetsNothingInAStoreOfTheEstimatedSize) {
  const uint64_t rows = 3000;
  const TableRows tables[] = {{Forgets(GetParam()), rows}, {Forgets(GetParam(), 1000), rows}};
  StoreOptions options;
  options.worker_threads = 1;
  const Estimate estimate = EstimateMemory(options, tables);
  options.dram_bytes = estimate.dram_bytes;
  StoreWorld store(options);
  for (const TableRows& one : tables) {
    Table* const table = store.Create(std::to_string(one.options.dim), one.options);
    for (Key key = 0; key < rows; key += 100) Create(table, KeysFrom(key, 100));
    EXPECT_EQ(table->rows(), rows);
    EXPECT_EQ(Forgotten(table), 0u);
  }
  ExpectInBudget(&store);
  // Not by pages more than that.
  for (const TableRows& one : tables) {
    Table* const table = *store->catalog().Open(std::to_string(one.options.dim));
    for (Key key = rows; key < 2 * rows; key += 100) Create(table, KeysFrom(key, 100));
    EXPECT_GT(Forgotten(table), rows / 2);
  }
  ExpectInBudget(&store);
}

// ---- tables beside each other ----

TEST_P(ForgettingTest, TablesOfOneClassForgetEachOthersRows) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const one = store.Create("one", Forgets(GetParam()));
  Table* const two = store.Create("two", Forgets(GetParam()));
  ASSERT_EQ(one->slot_class(), two->slot_class());
  Fill(one);
  const uint64_t slots = one->rows();
  const uint64_t forgotten = Forgotten(one);
  Create(two, KeysFrom(0, 300));
  EXPECT_EQ(two->rows(), 300u);
  EXPECT_EQ(one->rows(), slots - 300);
  EXPECT_EQ(Forgotten(one), forgotten + 300);
  EXPECT_EQ(Forgotten(two), 0u);
  const std::string metrics = FormatMetrics(*store);
  EXPECT_NE(metrics.find("embank_rows_forgotten_total{table=\"one\"} " +
                         std::to_string(forgotten + 300) + "\n"),
            std::string::npos)
      << metrics;
  EXPECT_NE(metrics.find("embank_rows_forgotten_total{table=\"two\"} 0\n"), std::string::npos);
  ASSERT_TRUE(store->DropTable("one").ok());
  EXPECT_EQ(two->rows(), 300u);
  Create(two, KeysFrom(300, 300));
  EXPECT_EQ(Forgotten(two), 0u) << "what the other had is free";
}

TEST_P(ForgettingTest, TablesOfOtherPoliciesKeepTheirRows) {
  StoreWorld store({.dram_bytes = kDramBytes});
  const bool is_lfu = GetParam() == EvictionPolicy::kLfu;
  Table* const forgets = store.Create("forgets", Forgets(GetParam()));
  Table* const otherwise =
      store.Create("otherwise", Forgets(is_lfu ? EvictionPolicy::kClock : EvictionPolicy::kLfu));
  Table* const refuses = store.Create("refuses", OptionsOf(kDim));
  const std::set<SlotClass> classes = {forgets->slot_class(), otherwise->slot_class(),
                                       refuses->slot_class()};
  EXPECT_EQ(classes.size(), 3u);
  const std::vector<Key> few = KeysFrom(0, 100);
  Create(refuses, few);
  Create(otherwise, few);
  const Key next = Fill(forgets);
  Create(forgets, KeysFrom(next, 1000));
  EXPECT_EQ(Has(refuses, few), few.size());
  EXPECT_EQ(Has(otherwise, few), few.size());
  EXPECT_EQ(Forgotten(otherwise), 0u);
  // It fills the page that it has.
  const std::vector<Outcome> outcomes = Create(refuses, KeysFrom(100, 200));
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kCreated),
            static_cast<ptrdiff_t>(DramTier::SlotsPerPage(refuses->layout().row_bytes) - 100));
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), Outcome::kRefused),
            200 - std::count(outcomes.begin(), outcomes.end(), Outcome::kCreated));
  EXPECT_EQ(Has(refuses, few), few.size());
  EXPECT_EQ(refuses->forgetter(), nullptr);
  EXPECT_EQ(FormatMetrics(*store).find("embank_rows_forgotten_total{table=\"refuses\""),
            std::string::npos);
}

TEST(Forgetting, TablesThatRefuseTakeNoMoreMemoryBesideOne) {
  StoreWorld store({.dram_bytes = kDramBytes});
  Table* const refuses = store.Create("refuses", OptionsOf(kDim));
  const uint64_t before = ReportMemory(*store).used_bytes;
  store.Create("another", OptionsOf(kDim));
  EXPECT_EQ(ReportMemory(*store).used_bytes - before, kTableFixedBytes);
  store.Create("forgets", Forgets(EvictionPolicy::kLfu));
  EXPECT_EQ(ReportMemory(*store).used_bytes - before, 2 * kTableFixedBytes + RowMover::kFixedBytes);
  EXPECT_EQ(DramTier::SlotsPerPage(refuses->layout().row_bytes), 127u);
}

// ---- policies ----

// Lookups of few keys by Zipf, and between them a scan over keys that never come again.
TEST(Forgetting, LfuKeepsTheHotRowsThroughAScan) {
  const auto hits_of = [](EvictionPolicy policy) {
    StoreWorld store({.dram_bytes = kDramBytes});
    Table* const table = store.Create("t", Forgets(policy));
    constexpr size_t kHot = 5000;
    std::vector<double> sums = {0};
    for (size_t i = 1; i <= kHot; ++i) sums.push_back(sums.back() + 1.0 / static_cast<double>(i));
    Random random(17);
    std::vector<uint8_t> outcome(1);
    std::vector<float> row(kDim);
    uint64_t hits = 0;
    for (Key i = 0; i < 20'000; ++i) {
      const double drawn = static_cast<double>(random.Unit()) * sums.back();
      const auto rank = std::upper_bound(sums.begin(), sums.end(), drawn) - sums.begin();
      for (const Key key : {static_cast<Key>(rank), 100'000 + 2 * i, 100'001 + 2 * i}) {
        EXPECT_TRUE(
            Lookup(table, {&key, 1}, MissingRule::kCreate, RowsIn(&row, kDim), outcome).ok());
        hits += outcome[0] == static_cast<uint8_t>(Outcome::kFound) ? 1 : 0;
      }
    }
    return hits;
  };
  const uint64_t clock = hits_of(EvictionPolicy::kClock);
  const uint64_t lfu = hits_of(EvictionPolicy::kLfu);
  EXPECT_GT(clock, 5000u);
  EXPECT_GT(lfu, clock + clock / 10) << "of 20000: CLOCK " << clock << ", LFU " << lfu;
}

}  // namespace
}  // namespace embank::test::forgetting_test
