// Calls that take many features at once: they do what the calls of single tables do, one after the
// other, and pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/half.h"
#include "base/str_cat.h"
#include "tests/support/c_api.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::packed_c_api_test {
namespace {

using ::testing::HasSubstr;

// A feature with its arrays.
struct TestFeature {
  size_t table = 0;
  int32_t pooling = EMBANK_POOL_NONE;
  std::vector<uint64_t> keys;
  std::vector<uint64_t> offsets;
  std::vector<float> weights;
  std::vector<uint8_t> rows;     // of a lookup, packed
  std::vector<float> gradients;  // of bags, or of keys
  uint64_t gap_bytes = 0;        // behind each row of the caller's; then no row is aligned

  uint64_t bags() const { return offsets.empty() ? 0 : offsets.size() - 1; }
  uint64_t gradient_rows() const { return pooling == EMBANK_POOL_NONE ? keys.size() : bags(); }
  // `row_bytes`: of `data`, which begins at any byte; 0: its rows are packed.
  embank_feature Of(embank_table* handle, void* data, uint64_t row_bytes = 0) const {
    embank_feature feature = {};
    feature.struct_size = sizeof feature;
    feature.pooling = pooling;
    feature.table = handle;
    feature.keys = keys.data();
    feature.n = keys.size();
    feature.offsets = pooling == EMBANK_POOL_NONE ? nullptr : offsets.data();
    feature.bags = bags();
    feature.weights = weights.empty() ? nullptr : weights.data();
    feature.rows = data;
    feature.row_stride = row_bytes == 0 ? 0 : row_bytes + gap_bytes;
    return feature;
  }
};

// Rows of a caller at any distance, the first of them at an odd address if there are gaps.
class CallerRows {
 public:
  CallerRows(uint64_t rows, uint64_t row_bytes, uint64_t gap_bytes)
      : rows_(rows),
        row_bytes_(row_bytes),
        stride_bytes_(row_bytes + gap_bytes),
        first_(gap_bytes > 0 ? 1 : 0),
        bytes_(first_ + rows * stride_bytes_ + 1, kUntouched) {}

  uint8_t* Row(uint64_t i) { return bytes_.data() + first_ + i * stride_bytes_; }
  void Fill(const float* values) {
    for (uint64_t i = 0; i < rows_; ++i) {
      std::memcpy(Row(i), values + i * row_bytes_ / sizeof(float), row_bytes_);
    }
  }
  std::vector<uint8_t> Packed() {
    std::vector<uint8_t> packed;
    for (uint64_t i = 0; i < rows_; ++i) packed.insert(packed.end(), Row(i), Row(i) + row_bytes_);
    return packed;
  }
  bool GapsAreUntouched() {
    for (uint64_t i = 0; i < rows_; ++i) {
      for (const uint8_t* gap = Row(i) + row_bytes_; gap < Row(i) + stride_bytes_; ++gap) {
        if (*gap != kUntouched) return false;
      }
    }
    return bytes_.back() == kUntouched;
  }

 private:
  static constexpr uint8_t kUntouched = 0x5A;
  const uint64_t rows_;
  const uint64_t row_bytes_;
  const uint64_t stride_bytes_;
  const uint64_t first_;
  std::vector<uint8_t> bytes_;
};

float DivisorOf(int32_t pooling, uint64_t keys) {
  if (pooling == EMBANK_POOL_MEAN) return static_cast<float>(keys);
  return pooling == EMBANK_POOL_SQRT_N ? std::sqrt(static_cast<float>(keys)) : 1.0f;
}

float ValueAt(const uint8_t* row, int32_t type, uint32_t i) {
  if (type == EMBANK_F32) {
    float value;
    std::memcpy(&value, row + i * sizeof value, sizeof value);
    return value;
  }
  uint16_t half;
  std::memcpy(&half, row + i * sizeof half, sizeof half);
  return type == EMBANK_F16 ? F16ToFloat(half) : Bf16ToFloat(half);
}

// Tables of several kinds, and their oracles.
class PackedCalls : public testing::TestWithParam<uint32_t> {
 protected:
  PackedCalls() {
    embank_store_options options = StoreOptions();
    options.worker_threads = GetParam();
    options.seed = 7;
    store_ = OpenStore(options);
    Add("a", 16, EMBANK_F32, EMBANK_OPT_ADAGRAD);
    Add("b", 1, EMBANK_F32, EMBANK_OPT_SGD);
    Add("c", 33, EMBANK_F16, EMBANK_OPT_ROWWISE_ADAGRAD);
    Add("d", 300, EMBANK_BF16, EMBANK_OPT_ADAM);
    Add("e", 5, EMBANK_F32, EMBANK_OPT_FTRL);
  }

  void Add(const std::string& name, uint32_t dim, int32_t type, int32_t optimizer) {
    embank_table_options options = TableOptions(dim, optimizer);
    options.value_type = type;
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_a = -1.0f;
    options.init_b = 1.0f;
    twins_.push_back(CreateTwin(store_.get(), 7, name, options));
  }

  const embank_table_options& OptionsOf(const TestFeature& feature) const {
    return twins_[feature.table].oracle.options();
  }

  TestFeature RandomFeature(Random* random) {
    TestFeature feature;
    feature.table = random->Below(twins_.size());
    feature.pooling = static_cast<int32_t>(random->Below(4));
    feature.gap_bytes = random->OneIn(3) ? 1 + random->Below(40) : 0;
    const uint64_t bags = random->OneIn(8) ? random->Below(600) : random->Below(20);
    if (feature.pooling == EMBANK_POOL_NONE) {
      for (uint64_t i = 0; i < 3 * bags; ++i) feature.keys.push_back(random->Below(300));
      return feature;
    }
    feature.offsets.push_back(0);
    for (uint64_t bag = 0; bag < bags; ++bag) {
      const uint64_t keys = random->OneIn(50) ? random->Below(200) : random->Below(6);
      for (uint64_t i = 0; i < keys; ++i) feature.keys.push_back(random->Below(300));
      feature.offsets.push_back(feature.keys.size());
    }
    if (feature.pooling == EMBANK_POOL_SUM && random->OneIn(2)) {
      for (size_t i = 0; i < feature.keys.size(); ++i) feature.weights.push_back(random->Signed());
    }
    return feature;
  }

  void LookUp(std::deque<TestFeature>* features, int32_t missing) {
    std::vector<embank_feature> packed;
    std::deque<CallerRows> caller_rows;
    uint64_t keys = 0;
    for (TestFeature& feature : *features) {
      const uint64_t row_bytes = feature.pooling == EMBANK_POOL_NONE
                                     ? twins_[feature.table].oracle.row_bytes()
                                     : OptionsOf(feature).dim * sizeof(float);
      CallerRows& rows =
          caller_rows.emplace_back(feature.gradient_rows(), row_bytes, feature.gap_bytes);
      packed.push_back(feature.Of(twins_[feature.table].table, rows.Row(0), row_bytes));
      keys += feature.keys.size();
    }
    std::vector<uint8_t> outcomes(keys, 0xEE);
    ASSERT_EQ(embank_lookup_packed(packed.data(), packed.size(), missing, outcomes.data()),
              EMBANK_OK)
        << embank_last_error();
    for (size_t i = 0; i < features->size(); ++i) {
      (*features)[i].rows = caller_rows[i].Packed();
      EXPECT_TRUE(caller_rows[i].GapsAreUntouched());
    }
    size_t first_key = 0;
    for (const TestFeature& feature : *features) {
      ASSERT_NO_FATAL_FAILURE(CompareLookup(feature, missing, outcomes.data() + first_key));
      first_key += feature.keys.size();
    }
  }

  void CompareLookup(const TestFeature& feature, int32_t missing, const uint8_t* outcomes) {
    oracle::Table& oracle = twins_[feature.table].oracle;
    const uint64_t n = feature.keys.size();
    const bool is_pooled = feature.pooling != EMBANK_POOL_NONE;
    std::vector<uint8_t> rows(n * oracle.row_bytes(), is_pooled ? 0 : 0x5A);
    std::vector<uint8_t> expected(n);
    ASSERT_EQ(oracle.Lookup(feature.keys.data(), n, missing, rows.data(), 0, expected.data()),
              EMBANK_OK);
    ASSERT_EQ(std::vector<uint8_t>(outcomes, outcomes + n), expected);
    if (!is_pooled) {
      ASSERT_EQ(feature.rows, rows);
      return;
    }
    const uint32_t dim = OptionsOf(feature).dim;
    for (uint64_t bag = 0; bag < feature.bags(); ++bag) {
      const uint64_t begin = feature.offsets[bag];
      const uint64_t end = feature.offsets[bag + 1];
      for (uint32_t i = 0; i < dim; ++i) {
        float sum = 0.0f;
        for (uint64_t k = begin; k < end; ++k) {
          const float value =
              ValueAt(rows.data() + k * oracle.row_bytes(), OptionsOf(feature).value_type, i);
          sum += feature.weights.empty() ? value : feature.weights[k] * value;
        }
        if (end > begin) sum /= DivisorOf(feature.pooling, end - begin);
        const auto* const row = feature.rows.data() + (bag * dim + i) * sizeof(float);
        ASSERT_EQ(ValueAt(row, EMBANK_F32, 0), sum) << "bag " << bag << ", value " << i;
      }
    }
  }

  void ApplyGradients(std::deque<TestFeature>* features, Random* random) {
    std::vector<embank_feature> packed;
    std::deque<CallerRows> caller_rows;
    uint64_t keys = 0;
    for (TestFeature& feature : *features) {
      feature.gradients.resize(feature.gradient_rows() * OptionsOf(feature).dim);
      for (float& value : feature.gradients) value = random->Signed();
      const uint64_t row_bytes = OptionsOf(feature).dim * sizeof(float);
      CallerRows& rows =
          caller_rows.emplace_back(feature.gradient_rows(), row_bytes, feature.gap_bytes);
      rows.Fill(feature.gradients.data());
      packed.push_back(feature.Of(twins_[feature.table].table, rows.Row(0), row_bytes));
      keys += feature.keys.size();
    }
    std::vector<uint8_t> outcomes(keys, 0xEE);
    ASSERT_EQ(embank_apply_gradients_packed(packed.data(), packed.size(), outcomes.data()),
              EMBANK_OK)
        << embank_last_error();
    // All positions of a table are one batch.
    for (size_t table = 0; table < twins_.size(); ++table) {
      std::vector<uint64_t> table_keys;
      std::vector<float> gradients;
      std::vector<uint8_t> actual;
      size_t first_key = 0;
      for (const TestFeature& feature : *features) {
        if (feature.table == table) {
          table_keys.insert(table_keys.end(), feature.keys.begin(), feature.keys.end());
          AppendPositionGradients(feature, &gradients);
          const uint8_t* const first = outcomes.data() + first_key;
          actual.insert(actual.end(), first, first + feature.keys.size());
        }
        first_key += feature.keys.size();
      }
      std::vector<uint8_t> expected(table_keys.size());
      ASSERT_EQ(twins_[table].oracle.ApplyGradients(table_keys.data(), table_keys.size(),
                                                    gradients.data(), 0, expected.data()),
                EMBANK_OK);
      ASSERT_EQ(actual, expected);
    }
  }

  void AppendPositionGradients(const TestFeature& feature, std::vector<float>* gradients) const {
    const uint32_t dim = OptionsOf(feature).dim;
    if (feature.pooling == EMBANK_POOL_NONE) {
      gradients->insert(gradients->end(), feature.gradients.begin(), feature.gradients.end());
      return;
    }
    for (uint64_t bag = 0; bag < feature.bags(); ++bag) {
      const uint64_t keys = feature.offsets[bag + 1] - feature.offsets[bag];
      for (uint64_t k = feature.offsets[bag]; k < feature.offsets[bag + 1]; ++k) {
        for (uint32_t i = 0; i < dim; ++i) {
          const float gradient = feature.gradients[bag * dim + i];
          gradients->push_back(feature.weights.empty() ? gradient / DivisorOf(feature.pooling, keys)
                                                       : gradient * feature.weights[k]);
        }
      }
    }
  }

  void CompareTables() {
    for (const Twin& twin : twins_) ASSERT_EQ(Difference(twin.table, twin.oracle), "");
  }

  StorePtr store_;
  std::deque<Twin> twins_;
};
INSTANTIATE_TEST_SUITE_P(Threads, PackedCalls, testing::Values(1u, 3u));

TEST_P(PackedCalls, DoTheWorkOfCallsForEachFeature) {
  Random random(11);
  for (int call = 0; call < 120; ++call) {
    SCOPED_TRACE(call);
    std::deque<TestFeature> features(random.Below(12));
    for (TestFeature& feature : features) feature = RandomFeature(&random);
    ASSERT_NO_FATAL_FAILURE(LookUp(&features, static_cast<int32_t>(random.Below(4))));
    ASSERT_NO_FATAL_FAILURE(ApplyGradients(&features, &random));
    if (call % 20 == 19) {
      ASSERT_NO_FATAL_FAILURE(CompareTables());
    }
  }
}

// Several chunks, with bags that go on in the next one, and threads within a feature.
TEST_P(PackedCalls, PoolLargeFeaturesInChunks) {
  Random random(12);
  for (const int32_t pooling : {EMBANK_POOL_SUM, EMBANK_POOL_MEAN}) {
    std::deque<TestFeature> features(3);
    features[0] = RandomFeature(&random);
    for (size_t i = 1; i < features.size(); ++i) {
      TestFeature& feature = features[i];
      feature.table = i == 1 ? 4 : 3;
      feature.pooling = pooling;
      feature.offsets.push_back(0);
      for (int bag = 0; bag < 40; ++bag) {
        const uint64_t keys = bag == 7 ? 20'000 : random.Below(800);
        for (uint64_t k = 0; k < keys; ++k) feature.keys.push_back(random.Below(5000));
        feature.offsets.push_back(feature.keys.size());
      }
    }
    ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE));
    ASSERT_NO_FATAL_FAILURE(ApplyGradients(&features, &random));
    ASSERT_NO_FATAL_FAILURE(CompareTables());
  }
}

TEST_P(PackedCalls, CountAsOneBatchOfEachTable) {
  std::deque<TestFeature> features(3);
  for (size_t i = 0; i < 3; ++i) {
    features[i].table = i == 2 ? 1 : 0;
    features[i].pooling = EMBANK_POOL_SUM;
    features[i].offsets = {0, 0, 2};
    features[i].keys = {5, 6 + i};
  }
  ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE));
  Random random(1);
  ASSERT_NO_FATAL_FAILURE(ApplyGradients(&features, &random));
  const std::string metrics = Metrics(store_.get());
  for (const char* table : {"a", "b"}) {
    for (const char* op : {"lookup", "gradients"}) {
      EXPECT_THAT(metrics, HasSubstr(StrCat("embank_batches_total{table=\"", table, "\",op=\"", op,
                                            "\"} 1\n")));
    }
  }
  EXPECT_THAT(metrics,
              HasSubstr("embank_keys_total{table=\"a\",op=\"lookup\",outcome=\"found\"} 1"));
}

TEST_P(PackedCalls, AreCheckedWholeBeforeAnythingChanges) {
  TestFeature good;
  good.pooling = EMBANK_POOL_SUM;
  good.keys = {1, 2, 3};
  good.offsets = {0, 1, 3};
  std::vector<float> rows(64);
  const auto refused = [&](auto change, const char* what) {
    embank_feature features[2] = {good.Of(twins_[0].table, rows.data()),
                                  good.Of(twins_[0].table, rows.data())};
    change(&features[1]);
    EXPECT_EQ(embank_lookup_packed(features, 2, EMBANK_MISSING_CREATE, nullptr),
              EMBANK_INVALID_ARGUMENT)
        << what;
    EXPECT_THAT(embank_last_error(), HasSubstr(StrCat("features[1].", what)));
    EXPECT_EQ(embank_apply_gradients_packed(features, 2, nullptr), EMBANK_INVALID_ARGUMENT) << what;
    EXPECT_EQ(RowCount(twins_[0].table), 0u);
  };
  const uint64_t falling[] = {0, 2, 1};
  const uint64_t late[] = {1, 2, 3};
  const uint64_t short_of_n[] = {0, 1, 2};
  const uint64_t beyond[] = {0, 9, 3};
  const float weights[3] = {};
  const StorePtr other = OpenStore();
  embank_table* const foreign = CreateTable(other.get(), "t", TableOptions(16));
  refused([](embank_feature* f) { f->struct_size = 8; }, "struct_size is 8");
  refused([](embank_feature* f) { f->table = nullptr; }, "table");
  refused([&](embank_feature* f) { f->table = foreign; }, "table is of another store");
  refused([](embank_feature* f) { f->keys = nullptr; }, "keys");
  refused([](embank_feature* f) { f->n = uint64_t{1} << 32; }, "n is 4294967296");
  refused([](embank_feature* f) { f->pooling = 4; }, "pooling is 4");
  refused([](embank_feature* f) { f->offsets = nullptr; }, "offsets");
  refused([&](embank_feature* f) { f->offsets = falling; }, "offsets[2] is 1");
  refused([&](embank_feature* f) { f->offsets = late; }, "offsets[0] is 1");
  refused([&](embank_feature* f) { f->offsets = short_of_n; }, "offsets[2] is 2");
  refused([&](embank_feature* f) { f->offsets = beyond; }, "offsets[1] is 9");
  refused([](embank_feature* f) { f->bags = uint64_t{1} << 33; }, "bags is");
  refused([](embank_feature* f) { f->pooling = EMBANK_POOL_NONE; }, "offsets");
  refused([&](embank_feature* f) { f->pooling = EMBANK_POOL_MEAN, f->weights = weights; },
          "weights");
  refused([](embank_feature* f) { f->rows = nullptr; }, "rows");
  refused([](embank_feature* f) { f->row_stride = 3; }, "row_stride is 3");
  EXPECT_EQ(embank_lookup_packed(nullptr, 1, 0, nullptr), EMBANK_INVALID_ARGUMENT);
  EXPECT_EQ(embank_lookup_packed(nullptr, 0, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_apply_gradients_packed(nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_prefetch_packed(nullptr, 0), EMBANK_OK);
  EXPECT_EQ(embank_lookup_packed(nullptr, 0, 9, nullptr), EMBANK_INVALID_ARGUMENT);
}

TEST_P(PackedCalls, RefuseGradientsThatAreNotFinite) {
  std::deque<TestFeature> features(2);
  for (size_t i = 0; i < 2; ++i) {
    features[i].table = i;
    features[i].pooling = EMBANK_POOL_SUM;
    features[i].keys = {1, 2, 3};
    features[i].offsets = {0, 1, 3};
    features[i].weights = {1.0f, 2.0f, 3.0f};
  }
  ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE));
  std::vector<float> gradients(2 * 16, 1.0f);
  const auto apply = [&] {
    const embank_feature packed[2] = {features[0].Of(twins_[0].table, gradients.data()),
                                      features[1].Of(twins_[1].table, gradients.data())};
    return embank_apply_gradients_packed(packed, 2, nullptr);
  };
  gradients[1] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(apply(), EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("\"a\""));
  gradients[1] = 1.0f;
  features[1].weights[2] = std::nanf("");
  EXPECT_EQ(apply(), EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("features[1].weights[2] is NaN"));
  gradients[0] = 1e30f;
  features[1].weights[2] = 1.0f;
  features[1].weights[0] = 1e30f;
  EXPECT_EQ(apply(), EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("position 0 of a feature of table \"b\" is infinite"));
  CompareTables();
}

// Both tables have made as many steps at each checkpoint.
TEST_P(PackedCalls, AreWhollyInACheckpointOrNotAtAll) {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/store";
  embank_store_options options = StoreOptions();
  options.path = path.c_str();
  options.flags = EMBANK_OPEN_CREATE;
  options.dram_bytes = uint64_t{64} << 20;
  options.worker_threads = GetParam();
  constexpr size_t kTables = 8;
  constexpr uint64_t kKeys = 2000;
  for (int round = 0; round < 8; ++round) {
    {
      const StorePtr store = OpenStore(options);
      std::vector<embank_feature> features;
      std::deque<TestFeature> arrays;
      for (size_t t = 0; t < kTables; ++t) {
        const std::string name = StrCat("t", t);
        embank_table* table = nullptr;
        if (embank_table_open(store.get(), name.c_str(), &table) != EMBANK_OK) {
          embank_table_options sgd = TableOptions(4, EMBANK_OPT_SGD);
          sgd.learning_rate = 1.0f;
          table = CreateTable(store.get(), name, sgd);
        }
        TestFeature& feature = arrays.emplace_back();
        feature.keys = KeyRange(0, kKeys);
        feature.rows.resize(kKeys * 4 * sizeof(float));
        feature.gradients.assign(kKeys * 4, -1.0f);
        features.push_back(feature.Of(table, feature.rows.data()));
      }
      ASSERT_EQ(embank_lookup_packed(features.data(), kTables, EMBANK_MISSING_CREATE, nullptr),
                EMBANK_OK);
      for (size_t t = 0; t < kTables; ++t) features[t].rows = arrays[t].gradients.data();
      std::atomic<bool> stop{false};
      // So many that there is hardly a moment without a call, and a barrier has to wait for one.
      std::vector<std::thread> trainers;
      for (int i = 0; i < 3; ++i) {
        trainers.emplace_back([&] {
          while (!stop) {
            EXPECT_EQ(embank_apply_gradients_packed(features.data(), kTables, nullptr), EMBANK_OK);
          }
        });
      }
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(embank_checkpoint(store.get(), nullptr, 0, nullptr), EMBANK_OK);
      }
      stop = true;
      for (std::thread& trainer : trainers) trainer.join();
    }
    const StorePtr store = OpenStore(options);
    std::vector<float> first(kKeys * 4);
    for (size_t t = 0; t < kTables; ++t) {
      embank_table* table = nullptr;
      ASSERT_EQ(embank_table_open(store.get(), StrCat("t", t).c_str(), &table), EMBANK_OK);
      std::vector<float> rows(kKeys * 4);
      const std::vector<uint64_t> keys = KeyRange(0, kKeys);
      ASSERT_EQ(
          embank_lookup(table, keys.data(), kKeys, EMBANK_MISSING_ZERO, rows.data(), 0, nullptr),
          EMBANK_OK);
      if (t == 0) first = rows;
      EXPECT_GT(rows[0], 0.0f);
      ASSERT_EQ(std::count(rows.begin(), rows.end(), first[0]), kKeys * 4) << "table " << t;
    }
  }
}

}  // namespace
}  // namespace embank::test::packed_c_api_test
