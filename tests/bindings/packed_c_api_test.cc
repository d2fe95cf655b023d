// Calls that take many features at once: they do what the calls of single tables do, one after the
// other, and pool.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <thread>
#include <vector>

#include "base/str_cat.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle_packed.h"
#include "tests/support/packed_feature.h"
#include "tests/support/random.h"
#include "tests/support/scratch_directory.h"

namespace embank::test::packed_c_api_test {
namespace {

using ::testing::HasSubstr;

// A feature of one of the tables, and the rows of its caller.
struct TestFeature : oracle::Feature {
  size_t table = 0;
  std::vector<uint8_t> rows;     // of a lookup, packed
  std::vector<float> gradients;  // of bags, or of keys
  uint64_t gap_bytes = 0;        // behind each row of the caller's; then no row is aligned

  uint64_t gradient_rows() const { return pooling == EMBANK_POOL_NONE ? keys.size() : bags(); }
  // Passed plainly, with `data` packed. Borrows from this.
  embank_feature Of(embank_table* handle, void* data) const {
    embank_feature feature = PassedFeature(*this).Of(handle, data);
    feature.keys = keys.data();
    if (pooling != EMBANK_POOL_NONE) feature.offsets = offsets.data();
    if (!weights.empty()) feature.weights = weights.data();
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
    Add("g", 64, EMBANK_F32, EMBANK_OPT_SGD);
    Add("h", 128, EMBANK_F32, EMBANK_OPT_SGD);
    Add("f", 343, EMBANK_F32, EMBANK_OPT_SGD);  // a slice of 256, and 64 + 16 + 4 + 3: each width
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

  // Keys of 64 bits that are also those of narrower types, signed or not.
  TestFeature DrawFeature(Random* random) {
    constexpr uint64_t kFirsts[] = {0, ~uint64_t{0} - 250, 0xFFFFFF00u, 0x7FFFFF00u};
    const uint64_t first = kFirsts[random->Below(std::size(kFirsts))];
    TestFeature feature;
    static_cast<oracle::Feature&>(feature) =
        RandomFeature(random, [&](Random* r) { return first + r->Below(300); });
    feature.table = random->Below(twins_.size());
    feature.gap_bytes = random->OneIn(3) ? 1 + random->Below(40) : 0;
    return feature;
  }

  // The features as a call takes them, and the rows that it writes or reads.
  struct Passed {
    std::vector<embank_feature> features;
    std::deque<PassedFeature> arrays;
    std::deque<CallerRows> rows;
    std::vector<uint8_t> outcomes;
  };
  void Pass(const TestFeature& feature, uint64_t row_bytes, Random* random, Passed* passed) {
    CallerRows& rows =
        passed->rows.emplace_back(feature.gradient_rows(), row_bytes, feature.gap_bytes);
    const uint64_t stride = feature.gap_bytes == 0 ? 0 : row_bytes + feature.gap_bytes;
    passed->features.push_back(passed->arrays.emplace_back(feature, random)
                                   .Of(twins_[feature.table].table, rows.Row(0), stride));
    passed->outcomes.resize(passed->outcomes.size() + feature.keys.size(), 0xEE);
  }

  void LookUp(std::deque<TestFeature>* features, int32_t missing, Random* random) {
    Passed passed;
    for (TestFeature& feature : *features) {
      const uint64_t row_bytes = feature.pooling == EMBANK_POOL_NONE
                                     ? twins_[feature.table].oracle.row_bytes()
                                     : OptionsOf(feature).dim * sizeof(float);
      Pass(feature, row_bytes, random, &passed);
      feature.rows = passed.rows.back().Packed();
    }
    ASSERT_EQ(embank_lookup_packed(passed.features.data(), passed.features.size(), missing,
                                   passed.outcomes.data()),
              EMBANK_OK)
        << embank_last_error();
    std::vector<uint8_t> expected;
    for (size_t i = 0; i < features->size(); ++i) {
      TestFeature& feature = (*features)[i];
      std::vector<uint8_t> outcomes;
      LookUpFeature(&twins_[feature.table].oracle, feature, missing, &feature.rows, &outcomes);
      expected.insert(expected.end(), outcomes.begin(), outcomes.end());
      EXPECT_TRUE(passed.rows[i].GapsAreUntouched());
      ASSERT_EQ(passed.rows[i].Packed(), feature.rows)
          << "feature " << i << ", pooling " << feature.pooling << ", missing " << missing;
    }
    ASSERT_EQ(passed.outcomes, expected);
  }

  void ApplyGradients(std::deque<TestFeature>* features, Random* random) {
    Passed passed;
    for (TestFeature& feature : *features) {
      feature.gradients.resize(feature.gradient_rows() * OptionsOf(feature).dim);
      for (float& value : feature.gradients) value = random->Signed();
      Pass(feature, OptionsOf(feature).dim * sizeof(float), random, &passed);
      passed.rows.back().Fill(feature.gradients.data());
    }
    ASSERT_EQ(embank_apply_gradients_packed(passed.features.data(), passed.features.size(),
                                            passed.outcomes.data()),
              EMBANK_OK)
        << embank_last_error();
    // All positions of a table are one batch.
    for (size_t table = 0; table < twins_.size(); ++table) {
      std::vector<uint64_t> keys;
      std::vector<float> gradients;
      std::vector<uint8_t> actual;
      size_t first_key = 0;
      for (const TestFeature& feature : *features) {
        for (size_t k = 0; k < feature.keys.size() && feature.table == table; ++k) {
          const uint8_t outcome = passed.outcomes[first_key + k];
          if (feature.IsPadding(k)) {
            EXPECT_EQ(outcome, EMBANK_ROW_ABSENT);
          } else {
            actual.push_back(outcome);
          }
        }
        if (feature.table == table) {
          AppendGradients(twins_[table].oracle, feature, feature.gradients.data(), &keys,
                          &gradients);
        }
        first_key += feature.keys.size();
      }
      std::vector<uint8_t> expected(keys.size());
      ASSERT_EQ(twins_[table].oracle.ApplyGradients(keys.data(), keys.size(), gradients.data(), 0,
                                                    expected.data()),
                EMBANK_OK);
      ASSERT_EQ(actual, expected);
    }
  }

  // Expects that calls are refused whose second feature was good before it was changed.
  template <typename Change>
  void ExpectRefused(Change change, const char* what) {
    TestFeature good;
    good.pooling = EMBANK_POOL_SUM;
    good.keys = {1, 2, 3};
    good.offsets = {0, 1, 3};
    std::vector<float> rows(64);
    embank_feature features[2] = {good.Of(twins_[0].table, rows.data()),
                                  good.Of(twins_[0].table, rows.data())};
    change(&features[1]);
    EXPECT_EQ(embank_lookup_packed(features, 2, EMBANK_MISSING_CREATE, nullptr),
              EMBANK_INVALID_ARGUMENT)
        << what;
    EXPECT_THAT(embank_last_error(), HasSubstr(StrCat("features[1].", what)));
    EXPECT_EQ(embank_apply_gradients_packed(features, 2, nullptr), EMBANK_INVALID_ARGUMENT) << what;
    EXPECT_EQ(RowCount(twins_[0].table), 0u);
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
    for (TestFeature& feature : features) feature = DrawFeature(&random);
    ASSERT_NO_FATAL_FAILURE(LookUp(&features, static_cast<int32_t>(random.Below(4)), &random));
    ASSERT_NO_FATAL_FAILURE(ApplyGradients(&features, &random));
    if (call % 20 == 19) {
      ASSERT_NO_FATAL_FAILURE(CompareTables());
    }
  }
}

// A sum begins with +0, so that it is never -0.
TEST_P(PackedCalls, SumBagsOfOneKeyFromZero) {
  Twin& twin = twins_[0];
  const std::vector<uint64_t> keys = {1, 2, 3};
  const std::vector<float> values(keys.size() * twin.oracle.options().dim, -0.0f);
  ASSERT_EQ(embank_upsert(twin.table, keys.data(), keys.size(), values.data(), 0, nullptr),
            EMBANK_OK);
  TestFeature feature;
  feature.pooling = EMBANK_POOL_MEAN;
  feature.keys = {1, 2, 3};
  for (const std::vector<uint64_t>& offsets : {std::vector<uint64_t>{0, 1, 2, 3}, {0, 2, 2, 3}}) {
    feature.offsets = offsets;
    std::vector<float> rows(values.size(), 1.0f);
    const embank_feature passed = feature.Of(twin.table, rows.data());
    ASSERT_EQ(embank_lookup_packed(&passed, 1, EMBANK_MISSING_SKIP, nullptr), EMBANK_OK);
    for (const float sum : rows) EXPECT_EQ(std::bit_cast<uint32_t>(sum), 0u);
  }
}

// Several chunks, with bags that go on in the next one, and threads within a feature.
TEST_P(PackedCalls, PoolLargeFeaturesInChunks) {
  Random random(12);
  for (const int32_t pooling : {EMBANK_POOL_SUM, EMBANK_POOL_MEAN}) {
    std::deque<TestFeature> features(4);
    features[0] = DrawFeature(&random);
    for (size_t i = 1; i < features.size(); ++i) {
      TestFeature& feature = features[i];
      feature.table = i == 1 ? 4 : i == 2 ? 3 : 6;
      feature.pooling = pooling;
      feature.offsets.push_back(0);
      for (int bag = 0; bag < 40; ++bag) {
        const uint64_t keys = bag != 7 ? random.Below(800) : i == 3 ? 5000 : 20'000;
        for (uint64_t k = 0; k < keys; ++k) feature.keys.push_back(random.Below(5000));
        feature.offsets.push_back(feature.keys.size());
      }
    }
    // Chunks of bags with one key.
    TestFeature& single = features.emplace_back(features[1]);
    for (single.offsets = {0}; single.offsets.size() <= single.keys.size();) {
      single.offsets.push_back(single.offsets.size());
    }
    ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE, &random));
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
  Random random(1);
  ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE, &random));
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
  const uint64_t falling[] = {0, 2, 1};
  const uint64_t late[] = {1, 2, 3};
  const uint64_t short_of_n[] = {0, 1, 2};
  const uint64_t beyond[] = {0, 9, 3};
  const float weights[3] = {};
  const StorePtr other = OpenStore();
  embank_table* const foreign = CreateTable(other.get(), "t", TableOptions(16));
  ExpectRefused([](embank_feature* f) { f->struct_size = 8; }, "struct_size is 8");
  ExpectRefused([](embank_feature* f) { f->table = nullptr; }, "table");
  ExpectRefused([&](embank_feature* f) { f->table = foreign; }, "table is of another store");
  ExpectRefused([](embank_feature* f) { f->keys = nullptr; }, "keys");
  ExpectRefused([](embank_feature* f) { f->n = uint64_t{1} << 32; }, "n is 4294967296");
  ExpectRefused([](embank_feature* f) { f->pooling = 4; }, "pooling is 4");
  ExpectRefused([](embank_feature* f) { f->offsets = nullptr; }, "offsets");
  ExpectRefused([&](embank_feature* f) { f->offsets = falling; }, "offsets[2] is 1");
  ExpectRefused([&](embank_feature* f) { f->offsets = late; }, "offsets[0] is 1");
  ExpectRefused([&](embank_feature* f) { f->offsets = short_of_n; }, "offsets[2] is 2");
  ExpectRefused([&](embank_feature* f) { f->offsets = beyond; }, "offsets[1] is 9");
  ExpectRefused([](embank_feature* f) { f->bags = uint64_t{1} << 33; }, "bags is");
  ExpectRefused([](embank_feature* f) { f->pooling = EMBANK_POOL_NONE; }, "offsets");
  ExpectRefused([&](embank_feature* f) { f->pooling = EMBANK_POOL_SQRT_N, f->weights = weights; },
                "weights is not NULL");
  const float large[3] = {1.0f, 3e38f, 3e38f};
  ExpectRefused([&](embank_feature* f) { f->pooling = EMBANK_POOL_MEAN, f->weights = large; },
                "weights of bag 1 have an infinite sum");
  ExpectRefused([](embank_feature* f) { f->rows = nullptr; }, "rows");
  ExpectRefused([](embank_feature* f) { f->row_stride = 3; }, "row_stride is 3");
  EXPECT_EQ(embank_lookup_packed(nullptr, 1, 0, nullptr), EMBANK_INVALID_ARGUMENT);
  EXPECT_EQ(embank_lookup_packed(nullptr, 0, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_apply_gradients_packed(nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_prefetch_packed(nullptr, 0), EMBANK_OK);
  EXPECT_EQ(embank_lookup_packed(nullptr, 0, 9, nullptr), EMBANK_INVALID_ARGUMENT);
}

TEST_P(PackedCalls, RefuseArraysThatAreNotOfTheirTypes) {
  const uint64_t key_bytes[3] = {};
  ExpectRefused([](embank_feature* f) { f->key_type = 4; }, "key_type is 4");
  ExpectRefused([](embank_feature* f) { f->key_type = -1; }, "key_type is -1");
  ExpectRefused([](embank_feature* f) { f->key_type = EMBANK_INDEX_I32; },
                "keys is not NULL; with key_type 3");
  ExpectRefused([](embank_feature* f) { f->key_type = EMBANK_INDEX_U32, f->keys = nullptr; },
                "typed_keys is NULL");
  ExpectRefused([&](embank_feature* f) { f->typed_keys = key_bytes; }, "typed_keys is not NULL");
  ExpectRefused([](embank_feature* f) { f->offset_type = 4; }, "offset_type is 4");
  ExpectRefused([](embank_feature* f) { f->offset_type = EMBANK_INDEX_I64; },
                "offsets is not NULL");
  ExpectRefused([](embank_feature* f) { f->offset_type = EMBANK_INDEX_I64, f->offsets = nullptr; },
                "typed_offsets is NULL");
  const int32_t negative[] = {0, -1, 3};
  ExpectRefused(
      [&](embank_feature* f) {
        f->offset_type = EMBANK_INDEX_I32, f->offsets = nullptr, f->typed_offsets = negative;
      },
      "typed_offsets[1] is -1");
  // The weights at such a place are not looked at: NaN is in front of the caller's.
  std::vector<float> all_weights(10, std::nanf(""));
  std::fill_n(all_weights.begin() + 7, 3, 1.0f);
  const float* const weights = &all_weights[7];
  const int64_t before[] = {-7, -6, -4};
  ExpectRefused(
      [&](embank_feature* f) {
        f->offset_type = EMBANK_INDEX_I64, f->offsets = nullptr, f->typed_offsets = before;
        f->flags = EMBANK_FEATURE_ABSOLUTE, f->weights = weights;
      },
      "typed_offsets[0] is -7; it must be 0 to");
  const uint64_t nowhere[] = {uint64_t{1} << 61, (uint64_t{1} << 61) + 1, (uint64_t{1} << 61) + 3};
  ExpectRefused(
      [&](embank_feature* f) {
        f->offsets = nowhere, f->flags = EMBANK_FEATURE_ABSOLUTE, f->weights = weights;
      },
      "offsets[0] is 2305843009213693952; it must be 0 to");
  TestFeature far;
  far.pooling = EMBANK_POOL_SUM;
  far.keys = {1, 2, 3};
  far.offsets.assign(std::begin(nowhere), std::end(nowhere));
  embank_feature prefetched = far.Of(twins_[0].table, nullptr);
  prefetched.flags = EMBANK_FEATURE_ABSOLUTE;
  EXPECT_EQ(embank_prefetch_packed(&prefetched, 1), EMBANK_INVALID_ARGUMENT);
  const uint64_t wrapped[] = {~uint64_t{0} - 1, ~uint64_t{0}, 1};
  ExpectRefused(
      [&](embank_feature* f) { f->offsets = wrapped, f->flags = EMBANK_FEATURE_ABSOLUTE; },
      "offsets[0] is 18446744073709551614");
  const uint64_t too_few[] = {5, 6, 7};
  ExpectRefused(
      [&](embank_feature* f) { f->offsets = too_few, f->flags = EMBANK_FEATURE_ABSOLUTE; },
      "offsets[2] is 7; offsets begin with 5, never fall, and end with that + n, which is 8");
  ExpectRefused([](embank_feature* f) { f->flags = 4; }, "flags is 4");
  ExpectRefused([](embank_feature* f) { f->padding_key = 9; }, "padding_key is 9");
  ExpectRefused([](embank_feature* f) { f->reserved = 1; }, "reserved is 1");
  ExpectRefused(
      [](embank_feature* f) {
        f->pooling = EMBANK_POOL_NONE, f->offsets = nullptr, f->bags = 0;
        f->flags = EMBANK_FEATURE_ABSOLUTE;
      },
      "flags: EMBANK_FEATURE_ABSOLUTE");
  ExpectRefused([](embank_feature* f) { f->struct_size = 72; },
                "struct_size is 72; that of features[0]");
  // As many bytes are not there: the array ends with this struct.
  ExpectRefused([](embank_feature* f) { f->struct_size = 4088; },
                "struct_size is 4088; that of features[0]");
}

// Bags of one table whose weights have the sums 4, 0 (of 1 and -1), 0 (of zeros) and 3, of which
// padding has 1,000.
TEST_P(PackedCalls, DivideByTheSumOfTheWeights) {
  Random random(5);
  std::deque<TestFeature> features(1);
  features[0].pooling = EMBANK_POOL_MEAN;
  features[0].keys = {1, 2, 3, 4, 5, 9, 6};
  features[0].offsets = {0, 2, 4, 5, 7};
  features[0].weights = {1, 3, 1, -1, 0, 1000, 3};
  features[0].padding = 9;
  ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE, &random));
  float rows[16 * 7] = {};
  const uint64_t* const keys = features[0].keys.data();
  ASSERT_EQ(embank_lookup(twins_[0].table, keys, 7, EMBANK_MISSING_ZERO, rows, 0, nullptr),
            EMBANK_OK);
  const auto* const sums = reinterpret_cast<const float*>(features[0].rows.data());
  EXPECT_EQ(sums[0], (rows[0] + 3 * rows[16]) / 4);
  EXPECT_EQ(sums[16], 0.0f);
  EXPECT_EQ(sums[32], 0.0f);
  EXPECT_EQ(sums[48], 3 * rows[16 * 6] / 3);
  twins_[0].oracle.Lookup(keys, 5, EMBANK_MISSING_ZERO, rows, 0, nullptr);
  twins_[0].oracle.Lookup(keys + 6, 1, EMBANK_MISSING_ZERO, rows, 0, nullptr);
  ASSERT_NO_FATAL_FAILURE(ApplyGradients(&features, &random));
  ASSERT_NO_FATAL_FAILURE(CompareTables());
}

// The shape of the click models of today: one table, 256 to 1,024 keys a sample in the order of
// time, without pooling, padded at their ends to one length.
TEST_P(PackedCalls, TakeLongSequencesWithPaddedEnds) {
  constexpr uint64_t kSamples = 12;
  constexpr uint64_t kLength = 1024;
  Random random(6);
  Add("items", 32, EMBANK_F32, EMBANK_OPT_ROWWISE_ADAGRAD);
  for (int step = 0; step < 3; ++step) {
    std::deque<TestFeature> features(1);
    features[0].table = twins_.size() - 1;
    features[0].padding = ~uint64_t{0};
    for (uint64_t sample = 0; sample < kSamples; ++sample) {
      const uint64_t keys = random.Between(256, kLength);
      const uint64_t now = 1000 * static_cast<uint64_t>(step) + random.Below(500);
      for (uint64_t i = 0; i < keys; ++i) {
        features[0].keys.push_back(now + random.Below(i + 1));
      }
      features[0].keys.resize((sample + 1) * kLength, ~uint64_t{0});
    }
    ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE, &random));
    ASSERT_NO_FATAL_FAILURE(ApplyGradients(&features, &random));
    ASSERT_NO_FATAL_FAILURE(CompareTables());
  }
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
  Random random(2);
  ASSERT_NO_FATAL_FAILURE(LookUp(&features, EMBANK_MISSING_CREATE, &random));
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
