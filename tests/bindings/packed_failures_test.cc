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

namespace embank::test::packed_failures_test {
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

// A lookup of a pooled feature and of narrow keys with padding, in two tables, that creates all
// rows.
class PackedWithoutMemory : public testing::Test {
 protected:
  static constexpr uint32_t kDim = 4;
  static constexpr uint64_t kKeys = 5000;
  static constexpr uint64_t kPadding = 7;

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
    const std::vector<uint32_t> narrow(keys.begin(), keys.end());
    features[1].keys = nullptr;
    features[1].typed_keys = narrow.data();
    features[1].key_type = EMBANK_INDEX_U32;
    features[1].flags = EMBANK_FEATURE_PADDING;
    features[1].padding_key = kPadding;
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
    EXPECT_EQ(std::ranges::count(rows, 2.0f), (kKeys - 1) * kDim);
    EXPECT_EQ(std::count(&rows[kPadding * kDim], &rows[(kPadding + 1) * kDim], 0.0f), kDim);
    const float all = 2.0f * (kKeys - 1);
    EXPECT_THAT(sums, testing::ElementsAre(2, 2, 2, 2, 0, 0, 0, 0, all, all, all, all));
    const auto created = std::ranges::count(outcomes, EMBANK_ROW_CREATED);
    EXPECT_EQ(created + std::ranges::count(outcomes, EMBANK_ROW_REFUSED), 2 * kKeys - 1);
    EXPECT_EQ(outcomes[kKeys + kPadding], EMBANK_ROW_ABSENT);
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
class PackedPrefetch : public testing::Test {
 protected:
  static constexpr uint64_t kRows = 40'000;
  static constexpr uint64_t kKeys = 500;
  static constexpr uint32_t kDim = 64;
  static constexpr size_t kTables = 4;

  PackedPrefetch() {
    embank_store_options options = OptionsAt(path_, uint64_t{24} << 20);
    options.ssd_bytes = uint64_t{1} << 30;
    store_ = OpenStore(options);
    std::vector<float> rows(kRows * kDim);
    for (size_t t = 0; t < kTables; ++t) {
      tables_.push_back(CreateTable(store_.get(), StrCat("t", t), TableOptions(kDim)));
      for (uint64_t first = 0; first < kRows; first += 4000) {
        const std::vector<uint64_t> keys = KeyRange(first, 4000);
        EXPECT_EQ(embank_lookup(tables_[t], keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                                rows.data(), 0, nullptr),
                  EMBANK_OK)
            << embank_last_error();
      }
    }
  }

  uint64_t Prefetched() {
    uint64_t sum = 0;
    const std::string metrics = Metrics(store_.get());
    for (size_t t = 0; t < kTables; ++t) {
      const std::string name = StrCat("embank_prefetched_rows_total{table=\"t", t, "\"} ");
      sum += std::stoull(metrics.substr(metrics.find(name) + name.size()));
    }
    return sum;
  }

  const ScratchDirectory directory_;
  const std::string path_ = directory_.path() + "/store";
  StorePtr store_;
  std::vector<embank_table*> tables_;
};

TEST_F(PackedPrefetch, ReadsTheRowsOfAllFeatures) {
  const std::vector<uint64_t> low = KeyRange(0, kKeys);
  const std::vector<uint64_t> high = KeyRange(kRows - kKeys, kKeys);
  std::vector<embank_feature> features = {FeatureOf(tables_[0], low, nullptr),
                                          FeatureOf(tables_[1], low, nullptr),
                                          FeatureOf(tables_[0], high, nullptr)};
  // The second as a part of an array of narrow keys, in which one is padding.
  constexpr size_t kPadding = 9;
  std::vector<int32_t> narrow = {0, 1, 2};
  narrow.insert(narrow.end(), low.begin(), low.end());
  const int64_t first_offset = 3;
  features[1].keys = nullptr;
  features[1].key_type = EMBANK_INDEX_I32;
  features[1].typed_keys = narrow.data();
  features[1].offset_type = EMBANK_INDEX_I64;
  features[1].typed_offsets = &first_offset;
  features[1].flags = EMBANK_FEATURE_PADDING | EMBANK_FEATURE_ABSOLUTE;
  features[1].padding_key = low[kPadding];
  ASSERT_EQ(embank_prefetch_packed(features.data(), features.size()), EMBANK_OK)
      << embank_last_error();
  const uint64_t read = Prefetched();
  EXPECT_GT(read, kKeys);
  const auto prefetch = [&](size_t table, const std::vector<uint64_t>& keys) {
    EXPECT_EQ(embank_prefetch(tables_[table], keys.data(), keys.size()), EMBANK_OK);
    return Prefetched();
  };
  EXPECT_EQ(prefetch(0, low), read) << "rows were not in memory yet";
  EXPECT_EQ(prefetch(0, high), read) << "rows were not in memory yet";
  EXPECT_EQ(prefetch(1, KeyRange(0, kPadding)), read) << "rows were not in memory yet";
  EXPECT_EQ(prefetch(1, KeyRange(kPadding + 1, kKeys - kPadding - 1)), read);
  EXPECT_EQ(prefetch(1, {kPadding}), read + 1) << "the row of padding was read";
}

// They evict half of the rows in memory, not half for each table.
TEST_F(PackedPrefetch, EvictsNoMoreThanAPrefetchOfOneTable) {
  std::vector<embank_feature> features;
  const uint64_t read = Prefetched();
  uint64_t in_memory = 0;
  for (embank_table* const table : tables_) {
    embank_table_info info = {};
    info.struct_size = sizeof info;
    ASSERT_EQ(embank_table_get_info(table, &info), EMBANK_OK);
    in_memory += info.rows_dram;
  }
  const std::vector<uint64_t> all = KeyRange(0, kRows);
  for (embank_table* const table : tables_) features.push_back(FeatureOf(table, all, nullptr));
  ASSERT_EQ(embank_prefetch_packed(features.data(), features.size()), EMBANK_OK);
  EXPECT_GT(Prefetched(), read);
  EXPECT_LE(Prefetched() - read, in_memory * 3 / 4);
}

// The struct of programs that were compiled with the first version of the header.
struct FirstFeature {
  uint32_t struct_size;
  int32_t pooling;
  embank_table* table;
  const uint64_t* keys;
  uint64_t n;
  const uint64_t* offsets;
  uint64_t bags;
  const float* weights;
  void* rows;
  uint64_t row_stride;
};
static_assert(sizeof(FirstFeature) == 72);

TEST(PackedFeature, MayBeOfTheFirstVersion) {
  const StorePtr store = OpenStore();
  embank_table_options options = TableOptions(1, EMBANK_OPT_SGD);
  options.initializer = EMBANK_INIT_CONSTANT;
  options.init_a = 2.0f;
  options.learning_rate = 1.0f;
  embank_table* const table = CreateTable(store.get(), "t", options);
  const std::vector<uint64_t> keys = {1, 2, 3};
  const std::vector<uint64_t> offsets = {0, 1, 3};
  const std::vector<float> weights = {1, 2, 3};
  std::vector<float> rows(7);
  // Fields behind these would be those of the next one: its size, its pointers.
  const FirstFeature features[3] = {
      {72, EMBANK_POOL_SUM, table, keys.data(), 3, offsets.data(), 2, weights.data(), &rows[0], 0},
      {72, EMBANK_POOL_NONE, table, keys.data(), 3, nullptr, 0, nullptr, &rows[2], 0},
      {72, EMBANK_POOL_MEAN, table, keys.data(), 3, offsets.data(), 2, nullptr, &rows[5], 4}};
  const auto* const passed = reinterpret_cast<const embank_feature*>(features);
  std::vector<uint8_t> outcomes(9);
  ASSERT_EQ(embank_lookup_packed(passed, 3, EMBANK_MISSING_CREATE, outcomes.data()), EMBANK_OK)
      << embank_last_error();
  EXPECT_THAT(rows, testing::ElementsAre(2, 10, 2, 2, 2, 2, 2));
  EXPECT_EQ(std::ranges::count(outcomes, EMBANK_ROW_CREATED), 3);
  // Key 3 steps by 3 * 10 + 2 + 2 / 2.
  ASSERT_EQ(embank_apply_gradients_packed(passed, 3, nullptr), EMBANK_OK) << embank_last_error();
  float row = 0;
  ASSERT_EQ(embank_lookup(table, &keys[2], 1, EMBANK_MISSING_ZERO, &row, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(row, 2.0f - 33.0f);
  EXPECT_EQ(embank_prefetch_packed(passed, 3), EMBANK_OK) << embank_last_error();
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
}  // namespace embank::test::packed_failures_test
