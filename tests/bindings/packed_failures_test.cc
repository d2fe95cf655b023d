// Packed calls that meet something missing: memory, space, tables, rows in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "store/packed/call_status.h"
#include "tests/support/allocation_faults.h"
#include "tests/support/c_api.h"
#include "tests/support/scratch_directory.h"

namespace embank::test {
namespace {

using ::testing::HasSubstr;

embank_feature FeatureOf(embank_table* table, const std::vector<uint64_t>& keys, void* rows) {
  embank_feature feature = {};
  feature.struct_size = sizeof feature;
  feature.table = table;
  feature.keys = keys.data();
  feature.n = keys.size();
  feature.rows = rows;
  return feature;
}

// The options of a new store at `path`, which outlives them.
embank_store_options OptionsAt(const std::string& path, uint64_t dram_bytes) {
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = dram_bytes;
  return options;
}

// A lookup of a pooled feature and of keys, in two tables, that creates all rows.
class PackedWithoutMemory : public testing::Test {
 protected:
  static constexpr uint32_t kDim = 4;
  static constexpr uint64_t kKeys = 5000;

  // Whether an allocation failed.
  bool Try(uint64_t n, FaultKind kind) {
    embank_store_options options = StoreOptions();
    options.worker_threads = 2;
    const StorePtr store = OpenStore(options);
    embank_table_options table = TableOptions(kDim);
    table.initializer = EMBANK_INIT_CONSTANT;
    table.init_a = 2.0f;
    embank_table* const bags = CreateTable(store.get(), "bags", table);
    embank_table* const single = CreateTable(store.get(), "single", table);
    const std::vector<uint64_t> keys = KeyRange(0, kKeys);
    const std::vector<uint64_t> offsets = {0, 1, 1, kKeys};
    std::vector<float> sums(3 * kDim, -1.0f);
    std::vector<float> rows(kKeys * kDim, -1.0f);
    std::vector<uint8_t> outcomes(2 * kKeys, 0xEE);
    std::vector<embank_feature> features = {FeatureOf(bags, keys, sums.data()),
                                            FeatureOf(single, keys, rows.data())};
    features[0].pooling = EMBANK_POOL_SUM;
    features[0].offsets = offsets.data();
    features[0].bags = 3;
    embank_status status;
    uint64_t failed;
    {
      const AllocationFaults faults(n, kind);
      status = embank_lookup_packed(features.data(), 2, EMBANK_MISSING_CREATE, outcomes.data());
      failed = AllocationFaults::Failed();
    }
    const auto are_all = [](const auto& values, auto value) {
      return std::ranges::count(values, value) == std::ssize(values);
    };
    if (status != EMBANK_OK) {
      EXPECT_EQ(status, EMBANK_RESOURCE_EXHAUSTED) << embank_last_error();
      EXPECT_EQ(RowCount(bags) + RowCount(single), 0u);
      EXPECT_TRUE(are_all(sums, -1.0f) && are_all(rows, -1.0f) && are_all(outcomes, 0xEE));
      return failed > 0;
    }
    // A row has a place, or its key is refused; either way its value is answered.
    EXPECT_TRUE(are_all(rows, 2.0f));
    const float all = 2.0f * (kKeys - 1);
    EXPECT_THAT(sums, testing::ElementsAre(2, 2, 2, 2, 0, 0, 0, 0, all, all, all, all));
    const auto created = std::ranges::count(outcomes, EMBANK_ROW_CREATED);
    EXPECT_EQ(created + std::ranges::count(outcomes, EMBANK_ROW_REFUSED), 2 * kKeys);
    EXPECT_EQ(RowCount(bags) + RowCount(single), created);
    return failed > 0;
  }
};

TEST_F(PackedWithoutMemory, LookUpAllOrNothing) {
  for (const FaultKind kind : {FaultKind::kOnce, FaultKind::kSince}) {
    uint64_t n = 1;
    while (n < 400 && Try(n, kind) && !HasFailure()) n += n < 30 ? 1 : 15;
    EXPECT_GT(n, 10u) << "hardly an allocation failed";
    EXPECT_FALSE(HasFailure()) << "with allocation " << n << " failing";
  }
}

TEST(PackedFailures, NameTheFeatureAndThePositionInIt) {
  constexpr uint64_t kKeys = 30'000;
  constexpr uint32_t kDim = 256;
  embank_store_options options = StoreOptions();
  options.dram_bytes = uint64_t{16} << 20;
  const StorePtr store = OpenStore(options);
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(kDim));
  const std::vector<uint64_t> few = {1, 2};
  const std::vector<uint64_t> many = KeyRange(10, kKeys);
  const std::vector<uint64_t> offsets = {0, kKeys};
  std::vector<float> rows(2 * kDim);
  std::vector<float> sums(kDim);
  embank_feature features[2] = {FeatureOf(table, few, rows.data()),
                                FeatureOf(table, many, sums.data())};
  features[1].pooling = EMBANK_POOL_MEAN;
  features[1].offsets = offsets.data();
  features[1].bags = 1;
  ASSERT_EQ(embank_lookup_packed(features, 2, EMBANK_MISSING_CREATE, nullptr),
            EMBANK_RESOURCE_EXHAUSTED);
  const std::string message = embank_last_error();
  EXPECT_THAT(message, HasSubstr("features[1]: no space: "));
  const uint64_t refused = few.size() + kKeys - RowCount(table);
  EXPECT_THAT(message, HasSubstr(StrCat(refused, " of ", kKeys, " keys were refused")));
  // The first rows had space, more than a chunk of them.
  const std::string before = " at position ";
  const uint64_t first = std::stoull(message.substr(message.find(before) + before.size()));
  EXPECT_GT(first, 4096u);
  EXPECT_THAT(message, HasSubstr(StrCat("the first is key ", 10 + first, before)));
}

TEST(PackedFailures, KeepTheGravestStatus) {
  const std::vector<Status> rising = {OkStatus(),           NotFoundError("a"),
                                      OutOfRangeError("f"), ResourceExhaustedError("b"),
                                      DataLossError("c"),   UnavailableError("d")};
  for (size_t i = 0; i < rising.size(); ++i) {
    for (size_t k = 0; k < rising.size(); ++k) {
      Status status = rising[i];
      KeepGraver(&status, rising[k]);
      EXPECT_EQ(status.code(), rising[std::max(i, k)].code()) << i << " and " << k;
    }
  }
  Status status = NotFoundError("the first");
  KeepGraver(&status, NotFoundError("the second"));
  EXPECT_EQ(status.message(), "the first");
  EXPECT_EQ(OfFeature(7, status).message(), "features[7]: the first");
}

TEST(PackedFailures, ADroppedTableAmongOthersChangesNothing) {
  const StorePtr store = OpenStore();
  embank_table* const kept = CreateTable(store.get(), "kept", TableOptions(2, EMBANK_OPT_SGD));
  embank_table* const dropped = CreateTable(store.get(), "gone", TableOptions(2, EMBANK_OPT_SGD));
  ASSERT_EQ(embank_table_drop(store.get(), "gone"), EMBANK_OK) << embank_last_error();
  const std::vector<uint64_t> keys = {1, 2, 3};
  std::vector<float> rows(6, 5.0f);
  const std::vector<embank_feature> features = {FeatureOf(kept, keys, rows.data()),
                                                FeatureOf(dropped, keys, rows.data())};
  EXPECT_EQ(embank_lookup_packed(features.data(), 2, EMBANK_MISSING_CREATE, nullptr),
            EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_apply_gradients_packed(features.data(), 2, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_prefetch_packed(features.data(), 2), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(RowCount(kept), 0u);
  EXPECT_EQ(rows, std::vector<float>(6, 5.0f));
}

TEST(PackedFailures, AReadOnlyStoreIsLookedUp) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/store";
  embank_store_options options = OptionsAt(path, uint64_t{64} << 20);
  embank_table_options constant = TableOptions(2, EMBANK_OPT_SGD);
  constant.initializer = EMBANK_INIT_CONSTANT;
  constant.init_a = 3.0f;
  const std::vector<uint64_t> keys = {1, 2};
  const std::vector<uint64_t> offsets = {0, 2};
  std::vector<float> sum(2);
  embank_feature feature = FeatureOf(nullptr, keys, sum.data());
  feature.pooling = EMBANK_POOL_SUM;
  feature.offsets = offsets.data();
  feature.bags = 1;
  {
    const StorePtr store = OpenStore(options);
    feature.table = CreateTable(store.get(), "t", constant);
    feature.n = 1;
    const std::vector<uint64_t> one = {0, 1};
    feature.offsets = one.data();
    ASSERT_EQ(embank_lookup_packed(&feature, 1, EMBANK_MISSING_CREATE, nullptr), EMBANK_OK);
    ASSERT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
  }
  options.flags = EMBANK_OPEN_READ_ONLY;
  const StorePtr store = OpenStore(options);
  ASSERT_EQ(embank_table_open(store.get(), "t", &feature.table), EMBANK_OK);
  feature.n = 2;
  feature.offsets = offsets.data();
  std::vector<uint8_t> outcomes(2);
  ASSERT_EQ(embank_lookup_packed(&feature, 1, EMBANK_MISSING_CREATE, outcomes.data()), EMBANK_OK);
  EXPECT_THAT(sum, testing::ElementsAre(6.0f, 6.0f));
  EXPECT_THAT(outcomes, testing::ElementsAre(EMBANK_ROW_FOUND, EMBANK_ROW_ABSENT));
  EXPECT_EQ(embank_apply_gradients_packed(&feature, 1, outcomes.data()),
            EMBANK_FAILED_PRECONDITION);
}

// Rows of four tables of one dim, most of them on the SSD.
TEST(PackedPrefetch, ReadsTheRowsOfAllFeatures) {
  constexpr uint64_t kRows = 40'000;
  constexpr uint64_t kKeys = 500;
  constexpr uint32_t kDim = 64;
  constexpr size_t kTables = 4;
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/store";
  embank_store_options options = OptionsAt(path, uint64_t{24} << 20);
  options.ssd_bytes = uint64_t{1} << 30;
  const StorePtr store = OpenStore(options);
  std::vector<embank_table*> tables;
  std::vector<float> rows(kRows * kDim);
  for (size_t t = 0; t < kTables; ++t) {
    tables.push_back(CreateTable(store.get(), StrCat("t", t), TableOptions(kDim)));
    for (uint64_t first = 0; first < kRows; first += 4000) {
      const std::vector<uint64_t> keys = KeyRange(first, 4000);
      ASSERT_EQ(embank_lookup(tables[t], keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                              rows.data(), 0, nullptr),
                EMBANK_OK)
          << embank_last_error();
    }
  }
  const auto prefetched = [&] {
    uint64_t sum = 0;
    const std::string metrics = Metrics(store.get());
    for (size_t t = 0; t < kTables; ++t) {
      const std::string name = StrCat("embank_prefetched_rows_total{table=\"t", t, "\"} ");
      sum += std::stoull(metrics.substr(metrics.find(name) + name.size()));
    }
    return sum;
  };
  const std::vector<uint64_t> low = KeyRange(0, kKeys);
  const std::vector<uint64_t> high = KeyRange(kRows - kKeys, kKeys);
  std::vector<embank_feature> features = {FeatureOf(tables[0], low, nullptr),
                                          FeatureOf(tables[1], low, nullptr),
                                          FeatureOf(tables[0], high, nullptr)};
  ASSERT_EQ(embank_prefetch_packed(features.data(), features.size()), EMBANK_OK)
      << embank_last_error();
  const uint64_t read = prefetched();
  EXPECT_GT(read, kKeys);
  for (const embank_feature& feature : features) {
    ASSERT_EQ(embank_prefetch(feature.table, feature.keys, feature.n), EMBANK_OK);
    EXPECT_EQ(prefetched(), read) << "rows were not in memory yet";
  }

  // All of all tables: they evict half of the rows in memory, not half for each table.
  uint64_t in_memory = 0;
  for (embank_table* const table : tables) {
    embank_table_info info = {};
    info.struct_size = sizeof info;
    ASSERT_EQ(embank_table_get_info(table, &info), EMBANK_OK);
    in_memory += info.rows_dram;
  }
  const std::vector<uint64_t> all = KeyRange(0, kRows);
  features.clear();
  for (embank_table* const table : tables) features.push_back(FeatureOf(table, all, nullptr));
  ASSERT_EQ(embank_prefetch_packed(features.data(), features.size()), EMBANK_OK);
  EXPECT_GT(prefetched(), read);
  EXPECT_LE(prefetched() - read, in_memory * 3 / 4);
}

// Structs of a later version are read as far as they are known.
TEST(PackedFeature, MayHaveFieldsToCome) {
  struct Longer {
    embank_feature feature;
    uint64_t to_come;
  };
  const StorePtr store = OpenStore();
  embank_table* const table = CreateTable(store.get(), "t", TableOptions(1));
  const std::vector<uint64_t> keys = {1, 2};
  std::vector<float> rows(4);
  Longer features[2] = {{FeatureOf(table, keys, rows.data()), 0},
                        {FeatureOf(table, keys, rows.data() + 2), 0}};
  for (Longer& longer : features) longer.feature.struct_size = sizeof longer;
  EXPECT_EQ(embank_lookup_packed(&features[0].feature, 2, EMBANK_MISSING_CREATE, nullptr),
            EMBANK_OK)
      << embank_last_error();
  EXPECT_EQ(RowCount(table), 2u);
  features[0].feature.struct_size = sizeof(embank_feature) + 4;
  EXPECT_EQ(embank_lookup_packed(&features[0].feature, 1, EMBANK_MISSING_CREATE, nullptr),
            EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("and a multiple of 8"));
  features[0].feature.struct_size = sizeof(Longer);
  features[1].to_come = 1;
  EXPECT_EQ(embank_lookup_packed(&features[0].feature, 2, EMBANK_MISSING_CREATE, nullptr),
            EMBANK_UNIMPLEMENTED);
  EXPECT_THAT(embank_last_error(), HasSubstr("features[1].struct_size"));
}

}  // namespace
}  // namespace embank::test
