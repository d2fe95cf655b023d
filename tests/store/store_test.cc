#include "store/store.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/threads/log.h"
#include "store/batch/gradients.h"
#include "store/batch/lookup.h"
#include "store/batch/write.h"
#include "store/inspect/memory_report.h"
#include "store/scan/scan.h"
#include "tests/support/random.h"
#include "tests/support/store_world.h"

namespace embank::test::store_test {
namespace {

TableOptions Uniform(uint32_t dim, Optimizer optimizer = Optimizer::kNone) {
  TableOptions options = OptionsOf(dim, optimizer);
  options.initializer = {InitializerKind::kUniform, -1.0f, 1.0f};
  return options;
}

std::vector<float> FirstValues(Table* table, const std::vector<Key>& keys) {
  const uint32_t dim = table->layout().dim;
  std::vector<float> values(keys.size() * dim);
  for (size_t i = 0; i < keys.size(); ++i) {
    table->InitializeVectorOf(keys[i], RowsIn(&values, dim).Row(i));
  }
  return values;
}

// How many of `keys` a creating lookup leaves with each outcome; the rows must be the first values
// of the keys, refused or not.
std::array<uint64_t, kOutcomes> CreateAndCheck(Table* table, const std::vector<Key>& keys) {
  std::vector<float> rows(keys.size() * table->layout().dim);
  std::vector<uint8_t> outcomes(keys.size());
  const Status status = Lookup(table, keys, MissingRule::kCreate,
                               RowsIn(&rows, table->layout().dim), std::span(outcomes));
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_EQ(rows, FirstValues(table, keys));
  std::array<uint64_t, kOutcomes> counts{};
  for (const uint8_t outcome : outcomes) ++counts.at(outcome - 1u);
  return counts;
}

// A table, and the results of creating lookups and the heat of their keys.
class CreatingLookups {
 public:
  CreatingLookups() : table_(store_.Create("t", Uniform(3))) {}
  Table* table() { return table_; }
  void LookUp(const std::vector<Key>& keys) {
    std::vector<float> rows(3 * keys.size());
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint32_t> heat(keys.size());
    ASSERT_TRUE(
        Lookup(table_, keys, MissingRule::kCreate, RowsIn(&rows, 3), std::span(outcomes)).ok());
    ASSERT_TRUE(GetHeat(table_, keys, heat, {}).ok());
    rows_.insert(rows_.end(), rows.begin(), rows.end());
    outcomes_.insert(outcomes_.end(), outcomes.begin(), outcomes.end());
    heat_.insert(heat_.end(), heat.begin(), heat.end());
  }
  bool SameAs(const CreatingLookups& other) const {
    return rows_ == other.rows_ && outcomes_ == other.outcomes_ && heat_ == other.heat_;
  }

 private:
  StoreWorld store_;
  Table* table_;
  std::vector<float> rows_;
  std::vector<uint8_t> outcomes_;
  std::vector<uint32_t> heat_;
};

std::vector<Key> ScannedKeys(Table* table) {
  Scan scan(table);
  std::vector<Key> all;
  std::vector<Key> keys(1000);
  std::vector<std::byte> rows(1000 * table->layout().vector_bytes);
  while (true) {
    const StatusOr<uint64_t> n = scan.Next(keys, {rows.data(), table->layout().vector_bytes});
    EXPECT_TRUE(n.ok()) << n.status();
    if (!n.ok() || *n == 0) break;
    all.insert(all.end(), keys.begin(), keys.begin() + static_cast<ptrdiff_t>(*n));
  }
  std::sort(all.begin(), all.end());
  return all;
}

TEST(Store, OpensOrFailsWithoutTraceWhicheverCallForMemoryFails) {
  uint64_t failed = 0;
  for (uint64_t call = 1;; ++call) {
    FailingMemory memory;
    memory.FailCall(call);
    const auto store = Store::Open({.worker_threads = 1},
                                   {.memory = &memory, .clock = nullptr, .executor = nullptr});
    if (store.ok()) break;
    ++failed;
    EXPECT_EQ(store.status().code(), StatusCode::kResourceExhausted) << "call " << call;
    EXPECT_EQ(memory.outstanding(), 0u) << "call " << call;
  }
  EXPECT_EQ(failed, 4u) << "records and addresses of rows, addresses and first page of the index";
}

TEST(Store, DoesNotOpenWithNonsense) {
  FailingMemory memory;
  const auto store =
      Store::Open({.dram_bytes = 5}, {.memory = &memory, .clock = nullptr, .executor = nullptr});
  EXPECT_EQ(store.status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(memory.calls(), 0u);
}

TEST(Store, SaysOnceInTheLogWhatItUses) {
  std::vector<std::string> lines;
  SetLogSink([](int32_t, const char* message,
                void* user) { static_cast<std::vector<std::string>*>(user)->push_back(message); },
             &lines);
  { StoreWorld store({.dram_bytes = 64 << 20}); }
  SetLogSink(nullptr, nullptr);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("67108864"), std::string::npos) << lines[0];
  EXPECT_NE(lines[0].find("crc32c by"), std::string::npos) << lines[0];
}

// How many of the keys the fullest shard has.
uint64_t KeysOfOneShardMax(const Table& table, const std::vector<Key>& keys) {
  std::array<uint64_t, KeyIndex::kShardCount> counts{};
  for (const Key key : keys) ++counts[KeyIndex::ShardOf(table.HashOf(key))];
  return *std::max_element(counts.begin(), counts.end());
}

// Memory that failed is not asked for again for the same shard in the same call.
TEST(Store, RefusesTheRowsOfTheShardForWhichMemoryFailedAndOnlyThose) {
  // 127 rows of 16,400 bytes a page: 12 pages.
  const std::vector<Key> keys = KeysFrom(0, 1500);
  uint64_t failed_calls = 0;
  uint64_t refusals = 0;
  for (uint64_t call = 1;; ++call) {
    StoreWorld store;
    Table* const table = store.Create("t", Uniform(4096));
    store.memory()->FailCall(call);
    const uint64_t failures_before = store.memory()->failures();
    const std::array<uint64_t, kOutcomes> counts = CreateAndCheck(table, keys);
    const uint64_t created = counts[static_cast<size_t>(Outcome::kCreated) - 1];
    const uint64_t refused = counts[static_cast<size_t>(Outcome::kRefused) - 1];
    ASSERT_EQ(created + refused, keys.size());
    ASSERT_EQ(table->rows(), created);
    ASSERT_EQ(ScannedKeys(table).size(), created);
    if (store.memory()->failures() == failures_before) break;
    ++failed_calls;
    // None, where the failed call was for more slots than were needed at once.
    ASSERT_LE(refused, KeysOfOneShardMax(*table, keys)) << "call " << call;
    refusals += refused;
    ASSERT_EQ(CreateAndCheck(table, keys)[static_cast<size_t>(Outcome::kFound) - 1], created);
    ASSERT_EQ(ScannedKeys(table), keys);
  }
  EXPECT_GT(failed_calls, 10u);
  EXPECT_GT(refusals, 0u);
}

TEST(Store, FillsItsBudgetRefusesByNameAndIsReusable) {
  StoreWorld store({.dram_bytes = 24 << 20});
  uint64_t rows_of_first_round = 0;
  for (int round = 0; round < 3; ++round) {
    Table* const table = store.Create("t", Uniform(60));
    Key next = 0;
    uint64_t refused = 0;
    while (refused == 0) {
      const auto counts = CreateAndCheck(table, KeysFrom(next, 1000));
      refused = counts[static_cast<size_t>(Outcome::kRefused) - 1];
      next += 1000;
      ASSERT_LE(ReportMemory(*store).used_bytes, uint64_t{24} << 20);
    }
    EXPECT_GE(table->rows() * table->layout().row_bytes, uint64_t{20} << 20);
    if (round == 0) rows_of_first_round = table->rows();
    EXPECT_EQ(table->rows(), rows_of_first_round) << "space was lost";
    EXPECT_EQ(ScannedKeys(table).size(), table->rows());
    ASSERT_TRUE(store->DropTable("t").ok());
    const MemoryReport report = ReportMemory(*store);
    EXPECT_EQ(report.rows_bytes, 0u);
    // Between the rounds another class uses the same pages.
    Table* const other = store.Create("other", Uniform(700));
    EXPECT_EQ(CreateAndCheck(other, KeysFrom(0, 5000))[1] * other->layout().row_bytes >> 20, 13u);
    ASSERT_TRUE(store->DropTable("other").ok());
  }
}

TEST(Store, WithoutOutcomesARefusalIsAStatusThatNamesTheFirstKey) {
  StoreWorld store({.dram_bytes = 16 << 20});
  Table* const table = store.Create("t", Uniform(512));
  const std::vector<Key> many = KeysFrom(1000, 20'000);
  std::vector<uint8_t> outcomes(many.size());
  std::vector<float> rows(many.size() * 512);
  ASSERT_TRUE(
      Lookup(table, many, MissingRule::kCreate, RowsIn(&rows, 512), std::span(outcomes)).ok());
  const auto created =
      std::find(outcomes.begin(), outcomes.end(), static_cast<uint8_t>(Outcome::kCreated));
  ASSERT_NE(created, outcomes.end());
  ASSERT_LT(table->rows(), many.size());
  const Key there = many[static_cast<size_t>(created - outcomes.begin())];
  // So many absent keys that shards meet several.
  std::vector<Key> keys = KeysFrom(50'000, 302);
  keys.front() = there;
  keys.back() = there;
  const Status status = Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, 512), {});
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  const std::string message(status.message());
  EXPECT_NE(message.find("300 of 302 keys"), std::string::npos) << message;
  EXPECT_NE(message.find("key 50001 at position 1;"), std::string::npos) << message;
  EXPECT_NE(message.find("\"t\""), std::string::npos) << message;
}

TEST(Store, PositionsOfABatchActAsIfInOrder) {
  StoreWorld store;
  Table* const table = store.Create("t", Uniform(1, Optimizer::kSgd));
  const std::vector<Key> keys = {5, 6, 5, 5, 6};
  std::vector<float> rows(keys.size());
  std::vector<uint8_t> outcomes(keys.size());
  ASSERT_TRUE(
      Lookup(table, keys, MissingRule::kCreate, RowsIn(&rows, 1), std::span(outcomes)).ok());
  EXPECT_EQ(outcomes, (std::vector<uint8_t>{2, 2, 1, 1, 1}));
  rows = {1, 2, 3, 4, 5};
  ASSERT_TRUE(Upsert(table, keys, RowsOf(rows, 1), {}).ok());
  ASSERT_TRUE(Lookup(table, keys, MissingRule::kZero, RowsIn(&rows, 1), {}).ok());
  EXPECT_EQ(rows, (std::vector<float>{4, 5, 4, 4, 5})) << "the last one wins";
  ASSERT_TRUE(Erase(table, keys, std::span(outcomes)).ok());
  EXPECT_EQ(outcomes, (std::vector<uint8_t>{1, 1, 3, 3, 3}));
}

TEST(Store, ACreatingLookupAnswersAlikeWhetherItsTableFillsOrNot) {
  Random random(4);
  CreatingLookups reads_first;
  CreatingLookups creates_all;
  Key next = 0;
  for (int batch = 0; batch < 20; ++batch) {
    // New keys and known ones, many of them twice.
    std::vector<Key> keys(random.Between(1024, 1500));
    for (Key& key : keys) {
      next += random.OneIn(3) ? 1 : 0;
      key = next - random.Below(std::min<Key>(next + 1, 1000));
    }
    reads_first.table()->SetFills(false);
    creates_all.table()->SetFills(true);
    ASSERT_NO_FATAL_FAILURE(reads_first.LookUp(keys));
    ASSERT_NO_FATAL_FAILURE(creates_all.LookUp(keys));
    ASSERT_TRUE(creates_all.SameAs(reads_first)) << "batch " << batch;
  }
}

TEST(Store, ATableFillsWhileLargeLookupsCreateMoreThanHalfOfTheirRows) {
  StoreWorld store;
  Table* const table = store.Create("t", Uniform(3));
  const auto fills_after = [&](Key first, size_t n) {
    CreateAndCheck(table, KeysFrom(first, n));
    return table->fills();
  };
  EXPECT_FALSE(fills_after(0, 1023));
  EXPECT_TRUE(fills_after(1023, 1024));
  EXPECT_TRUE(fills_after(0, 1023)) << "a small batch says nothing";
  EXPECT_FALSE(fills_after(1047, 2000)) << "a thousand are new";
  EXPECT_TRUE(fills_after(2048, 2000)) << "1,001 are new";
  EXPECT_FALSE(fills_after(0, 1024));
}

TEST(Store, ACreatingLookupOfRowsThatAreThereTakesNoLock) {
  StoreWorld store;
  Table* const table = store.Create("t", Uniform(3));
  const std::vector<Key> keys = KeysFrom(0, 2000);
  CreateAndCheck(table, keys);
  CreateAndCheck(table, keys);
  ASSERT_FALSE(table->fills());
  KeyIndex::Shard* const shard = table->store().index->shard(7);
  MutexLock lock(&shard->mutex);
  // Waits for ever if it takes the lock.
  std::thread([&] { CreateAndCheck(table, keys); }).join();
}

TEST(Store, ATableWithExpectedRowsHasTheIndexForThem) {
  StoreWorld store;
  TableOptions options = OptionsOf(1);
  store.Create("small", options);
  const uint64_t small_bytes = store->index().memory()->bytes();
  options.expected_rows_log2 = 19;
  Table* const table = store.Create("t", options);
  const uint64_t bytes = store->index().memory()->bytes();
  EXPECT_GT(bytes, small_bytes);
  std::vector<Key> keys(uint64_t{1} << 19);
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
  EXPECT_EQ(CreateAndCheck(table, keys)[1], keys.size());
  EXPECT_EQ(store->index().memory()->bytes(), bytes) << "the index has grown once more";
}

// A hint keeps places for the rows of its own table.
TEST(Store, AHintKeepsNoPlacesForErasedRowsOfAnotherTable) {
  StoreWorld store;
  Table* const table = store.Create("t", OptionsOf(1));
  const auto erase_all = [&] {
    std::vector<Key> keys(200'000);
    for (size_t i = 0; i < keys.size(); ++i) keys[i] = i;
    CreateAndCheck(table, keys);
    const uint64_t full_bytes = store->index().memory()->bytes();
    EXPECT_TRUE(Erase(table, keys, {}).ok());
    EXPECT_LT(store->index().memory()->bytes(), full_bytes);
    return store->index().memory()->bytes();
  };
  const uint64_t empty_bytes = erase_all();
  CreateAndCheck(table, KeysFrom(0, 200'000));
  TableOptions options = OptionsOf(1);
  options.expected_rows_log2 = 10;
  store.Create("hinted", options);
  EXPECT_EQ(erase_all(), empty_bytes);
}

// Batches wait for no lock of a rule, and have all of one rule or all of another.
TEST(Store, BatchesDoNotWaitForTheThreadThatChangesTheRule) {
  StoreWorld store;
  Table* const table = store.Create("t", Uniform(3, Optimizer::kSgd));
  const std::vector<Key> keys = KeysFrom(0, 100);
  const std::vector<float> gradients(3 * keys.size(), 1.0f);
  const auto run_batches = [&] {
    CreateAndCheck(table, keys);
    EXPECT_TRUE(Upsert(table, keys, RowsOf(gradients, 3), {}).ok());
    EXPECT_TRUE(ApplyGradients(table, keys, RowsOf(gradients, 3), {}).ok());
  };
  std::future<void> batches;
  ASSERT_TRUE(table
                  ->ChangeRule([&](UpdateRule*) {
                    batches = std::async(std::launch::async, run_batches);
                    EXPECT_EQ(batches.wait_for(std::chrono::minutes(1)), std::future_status::ready)
                        << "they wait for the lock";
                  })
                  .ok());
  batches.wait();
  const auto set_all = [table](float number) {
    return table->ChangeRule([number](UpdateRule* rule) {
      rule->learning_rate = rule->weight_decay = number;
      rule->max_gradient_norm = rule->max_gradient_value = number;
    });
  };
  ASSERT_TRUE(set_all(0).ok());
  std::atomic<bool> ends{false};
  std::thread changer([&] {
    for (float number = 1; !ends; number = number == 1000 ? 0 : number + 1) {
      EXPECT_TRUE(set_all(number).ok());
    }
  });
  uint64_t torn = 0;
  float last = 0;
  for (int changes = 0; changes < 20'000;) {
    const UpdateRule rule = table->rule();
    const float number = rule.learning_rate;
    changes += std::exchange(last, number) != number;
    torn += rule.weight_decay != number || rule.max_gradient_norm != number ||
            rule.max_gradient_value != number;
  }
  ends = true;
  changer.join();
  EXPECT_EQ(torn, 0u);
}

// 2^22 rows would take 48 MiB. Memory goes to the index by pages of 2 MiB.
TEST(Store, ExpectedRowsTakeHalfOfTheFreeMemoryAtMost) {
  for (const uint32_t log2 : {22, 33, 40}) {
    StoreWorld store({.dram_bytes = uint64_t{64} << 20, .worker_threads = 1});
    TableOptions options = OptionsOf(1);
    store.Create("small", options);
    const uint64_t half_bytes = store->budget().free_bytes() / 2;
    const uint64_t small_bytes = store->index().memory()->bytes();
    options.expected_rows_log2 = log2;
    Table* const table = store.Create("t", options);
    const uint64_t grown_bytes = store->index().memory()->bytes() - small_bytes;
    EXPECT_LE(grown_bytes, half_bytes) << log2;
    EXPECT_GT(grown_bytes + 2 * kHugePageBytes, half_bytes) << log2;
    EXPECT_EQ(CreateAndCheck(table, {1, 2, 3})[1], 3u);
  }
}

// docs/arithmetic.md, "Gradients": in order, in runs of 32, then the runs in order.
TEST(Store, GradientsOfAKeyAreSummedInRunsOf32) {
  StoreWorld store;
  TableOptions options = OptionsOf(1, Optimizer::kSgd);
  options.rule.learning_rate = 1.0f;
  Table* const table = store.Create("t", options);
  Random random(1);
  int order_matters = 0;
  for (const size_t count : {1u, 2u, 31u, 32u, 33u, 64u, 65u, 100u, 1000u}) {
    const Key key = count;
    const std::vector<float> zero(1);
    ASSERT_TRUE(Upsert(table, {&key, 1}, RowsOf(zero, 1), {}).ok());
    const std::vector<Key> keys(count, key);
    std::vector<float> gradients(count);
    for (float& g : gradients) g = random.Signed();
    float sum = 0;
    float in_order = 0;
    for (size_t begin = 0; begin < count; begin += 32) {
      float run = 0;
      for (size_t i = begin; i < std::min(count, begin + 32); ++i) run += gradients[i];
      sum += run;
    }
    for (const float g : gradients) in_order += g;
    ASSERT_TRUE(ApplyGradients(table, keys, RowsOf(gradients, 1), {}).ok());
    std::vector<float> row(1);
    ASSERT_TRUE(Lookup(table, {&key, 1}, MissingRule::kZero, RowsIn(&row, 1), {}).ok());
    EXPECT_EQ(row[0], -sum) << count;
    order_matters += sum != in_order ? 1 : 0;
  }
  EXPECT_GE(order_matters, 2);
}

TEST(Store, TablesAreFoundByNameInOrderOfCreation) {
  StoreWorld store;
  Table* const b = store.Create("b", Uniform(2));
  Table* const a = store.Create("a", Uniform(2));
  EXPECT_EQ(store->catalog().List(), (std::vector<Table*>{b, a}));
  EXPECT_EQ(*store->catalog().Open("a"), a);
  EXPECT_EQ(store->catalog().Open("c").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store->DropTable("c").code(), StatusCode::kNotFound);
  EXPECT_EQ(store->CreateTable("a", Uniform(2)).status().code(), StatusCode::kAlreadyExists);
  ASSERT_TRUE(store->DropTable("b").ok());
  EXPECT_EQ(store->catalog().List(), std::vector<Table*>{a});
  EXPECT_EQ(store->catalog().Open("b").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(b->CheckAlive().code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(a->CheckAlive().ok());
}

TEST(Store, ATableThatTakesOverTheIdOfADroppedOneSharesNothingWithIt) {
  StoreWorld store;
  const std::vector<Key> keys = KeysFrom(0, 3000);
  Table* const dropped = store.Create("dropped", Uniform(2));
  Table* const stays = store.Create("stays", Uniform(2));
  CreateAndCheck(dropped, keys);
  CreateAndCheck(stays, keys);
  ASSERT_TRUE(store->DropTable("dropped").ok());
  EXPECT_EQ(ScannedKeys(stays), keys);
  Table* const heir = store.Create("heir", Uniform(2));
  ASSERT_EQ(heir->id(), dropped->id());
  EXPECT_EQ(heir->rows(), 0u);
  EXPECT_TRUE(ScannedKeys(heir).empty());
  // So many rows that every shard grows: entries find their places by the name of the new table.
  const std::vector<Key> more = KeysFrom(1000, 40'000);
  EXPECT_EQ(CreateAndCheck(heir, more)[static_cast<size_t>(Outcome::kCreated) - 1], more.size());
  EXPECT_EQ(ScannedKeys(heir), more);
  EXPECT_EQ(ScannedKeys(stays), keys);
  EXPECT_EQ(CreateAndCheck(stays, keys)[static_cast<size_t>(Outcome::kFound) - 1], keys.size());
}

TEST(Store, DroppingATableFreesEveryRowOfItsAndNoOther) {
  StoreWorld store;
  Table* const big = store.Create("big", Uniform(3));
  Table* const small = store.Create("small", Uniform(3));
  CreateAndCheck(big, KeysFrom(0, 50'000));
  CreateAndCheck(small, KeysFrom(0, 100));
  ASSERT_TRUE(store->DropTable("big").ok());
  const MemoryReport report = ReportMemory(*store);
  EXPECT_EQ(report.rows_bytes, 100u * small->layout().row_bytes);
  EXPECT_EQ(big->rows(), 0u);
  DramTier* const tier = small->store().tier;
  tier->pool()->ReleaseEmptyPages();
  EXPECT_LE(tier->pool()->committed_bytes(), 2 * kHugePageBytes);
  EXPECT_EQ(CreateAndCheck(small, KeysFrom(0, 100))[0], 100u);
}

TEST(Store, ErasedRowsFreeSpaceForNewOnes) {
  StoreWorld store;
  Table* const table = store.Create("t", Uniform(8));
  const std::vector<Key> keys = KeysFrom(0, 20'000);
  CreateAndCheck(table, keys);
  const uint64_t used_bytes = ReportMemory(*store).used_bytes;
  Random random(1);
  for (int round = 0; round < 20; ++round) {
    std::vector<Key> some;
    for (const Key key : keys) {
      if (random.OneIn(3)) some.push_back(key);
    }
    ASSERT_TRUE(Erase(table, some, {}).ok());
    ASSERT_EQ(table->rows(), keys.size() - some.size());
    ASSERT_EQ(CreateAndCheck(table, keys)[static_cast<size_t>(Outcome::kCreated) - 1], some.size());
    ASSERT_EQ(ReportMemory(*store).used_bytes, used_bytes) << "round " << round;
  }
}

TEST(Store, FailedCreationsOfTablesChangeNothing) {
  StoreWorld store({.dram_bytes = 16 << 20});
  EXPECT_EQ(store->CreateTable("", Uniform(1)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(store->CreateTable("t", Uniform(0)).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(store->catalog().List().empty());
  const uint64_t used_bytes = ReportMemory(*store).used_bytes;
  ASSERT_NE(store.Create("t", Uniform(1)), nullptr);
  const uint64_t table_bytes = ReportMemory(*store).used_bytes - used_bytes;
  EXPECT_GT(table_bytes, 0u);
  // Rows take the rest of memory, so that another table does not fit.
  Table* const filler = *store->catalog().Open("t");
  while (CreateAndCheck(filler, KeysFrom(filler->rows(), 20'000))[3] == 0) {
  }
  uint64_t created = 0;
  while (true) {
    const auto table = store->CreateTable("x" + std::to_string(created), Uniform(1));
    if (!table.ok()) {
      EXPECT_EQ(table.status().code(), StatusCode::kResourceExhausted);
      break;
    }
    ++created;
  }
  EXPECT_EQ(store->catalog().List().size(), created + 1);
  EXPECT_LE(ReportMemory(*store).used_bytes, uint64_t{16} << 20);
}

}  // namespace
}  // namespace embank::test::store_test
