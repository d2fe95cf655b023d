// Packed calls whose rows are in device memory, on the host twin: the bits of the oracle, and the
// order among the work of the caller's streams.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "tests/bindings/device_calls.h"
#include "tests/bindings/device_rows.h"
#include "tests/support/manual_clock.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/oracle_packed.h"
#include "tests/support/packed_feature.h"

namespace embank::test::device_packed_test {
namespace {

using ::testing::HasSubstr;

class PackedDeviceCalls : public DeviceCalls {
 protected:
  // A feature of one of the tables, with its caller's rows.
  struct Passed {
    Twin* made;
    oracle::Feature feature;
    std::deque<PassedFeature> arrays;  // one
    std::deque<RowBuffer> before;      // one
    std::deque<DeviceRows> rows;       // one

    uint64_t row_count() const {
      return feature.pooling == EMBANK_POOL_NONE ? feature.keys.size() : feature.bags();
    }
  };

  // Draws features of both tables, and rows of them, random floats.
  void Draw(std::vector<Twin*> made, bool are_gradients) {
    passed_.clear();
    features_.clear();
    outcomes_.clear();
    for (uint64_t i = random_.Between(1, 5); i > 0; --i) {
      Passed& passed = passed_.emplace_back();
      passed.made = made[random_.Below(made.size())];
      passed.feature =
          RandomFeature(&random_, [&](Random* random) { return MixedKeys(1, in_hbm_, random)[0]; });
      const oracle::Table& oracle = passed.made->oracle;
      const bool is_native = passed.feature.pooling == EMBANK_POOL_NONE && !are_gradients;
      const uint64_t value_bytes =
          is_native ? oracle::ValueBytes(oracle.options().value_type) : sizeof(float);
      const uint64_t row_bytes = oracle.options().dim * value_bytes;
      RowBuffer& before = passed.before.emplace_back(passed.row_count(), row_bytes);
      for (uint64_t row = 0; row < passed.row_count() && are_gradients; ++row) {
        for (uint64_t j = 0; j < oracle.options().dim; ++j) {
          before.SetFloat(row, j, random_.Signed());
        }
      }
      const DeviceRows& rows = passed.rows.emplace_back(store_.get(), before, passed.row_count(),
                                                        row_bytes, value_bytes, &random_);
      features_.push_back(passed.arrays.emplace_back(passed.feature, &random_)
                              .Of(passed.made->table, rows.data(), rows.stride()));
      outcomes_.resize(outcomes_.size() + passed.feature.keys.size(), 0xEE);
    }
  }

  void LookUp(const std::vector<Twin*>& made, int32_t missing) {
    Draw(made, false);
    ASSERT_EQ(embank_lookup_packed_device(features_.data(), features_.size(), missing,
                                          outcomes_.data(), nullptr),
              EMBANK_OK)
        << embank_last_error();
    std::vector<uint8_t> expected;
    for (Passed& passed : passed_) {
      RowBuffer after = passed.before[0];
      ASSERT_EQ(passed.rows[0].CopyTo(&after), "");

      std::vector<uint8_t> right = passed.before[0].bytes();
      std::vector<uint8_t> outcomes;
      LookUpFeature(&passed.made->oracle, passed.feature, missing, &right, &outcomes);
      right.resize(after.bytes().size(), 0);
      const uint64_t compared =
          passed.row_count() * passed.made->oracle.options().dim *
          (passed.feature.pooling == EMBANK_POOL_NONE
               ? passed.made->oracle.row_bytes() / passed.made->oracle.options().dim
               : sizeof(float));
      ASSERT_EQ(std::memcmp(after.bytes().data(), right.data(), compared), 0)
          << "pooling " << passed.feature.pooling << ", missing " << missing;
      expected.insert(expected.end(), outcomes.begin(), outcomes.end());
    }
    ASSERT_EQ(outcomes_, expected);
  }

  void ApplyGradients(const std::vector<Twin*>& made) {
    Draw(made, true);
    ASSERT_EQ(embank_apply_gradients_packed_device(features_.data(), features_.size(),
                                                   outcomes_.data(), nullptr),
              EMBANK_OK)
        << embank_last_error();
    for (Twin* const twin : made) {
      std::vector<uint64_t> keys;
      std::vector<float> gradients;
      std::vector<uint8_t> actual;
      size_t first_key = 0;
      for (const Passed& passed : passed_) {
        const oracle::Feature& feature = passed.feature;
        for (size_t k = 0; k < feature.keys.size() && passed.made == twin; ++k) {
          if (!feature.IsPadding(k)) actual.push_back(outcomes_[first_key + k]);
        }
        if (passed.made == twin) {
          AppendGradients(twin->oracle, feature, passed.before[0].floats(), &keys, &gradients);
        }
        first_key += feature.keys.size();
      }
      std::vector<uint8_t> expected(keys.size());
      twin->oracle.ApplyGradients(keys.data(), keys.size(), gradients.data(), 0, expected.data());
      ASSERT_EQ(actual, expected);
    }
  }

  std::deque<Passed> passed_;
  std::vector<embank_feature> features_;
  std::vector<uint8_t> outcomes_;
};

TEST_F(PackedDeviceCalls, GiveTheBitsOfTheOracleForEveryRuleAndType) {
  for (int32_t optimizer = EMBANK_OPT_SGD; optimizer <= EMBANK_OPT_FTRL; ++optimizer) {
    for (const int32_t type : {EMBANK_F32, EMBANK_F16, EMBANK_BF16}) {
      const std::string name = std::to_string(optimizer) + std::to_string(type);
      SCOPED_TRACE(name);
      Twin hot = Make("hot" + name, type == EMBANK_F32 ? 24 : 7, optimizer, type);
      embank_table_options options = hot.oracle.options();
      Twin cold = CreateTwin(store_.get(), kSeed, "cold" + name, options);
      const std::vector<Twin*> both = {&hot, &cold};
      for (int round = 0; round < 3; ++round) {
        for (int32_t missing = EMBANK_MISSING_CREATE; missing <= EMBANK_MISSING_SKIP; ++missing) {
          ASSERT_NO_FATAL_FAILURE(LookUp(both, missing));
        }
        ASSERT_NO_FATAL_FAILURE(ApplyGradients(both));
      }
      EXPECT_EQ(Difference(hot.table, hot.oracle), "");
      EXPECT_EQ(Difference(cold.table, cold.oracle), "");
      for (const Twin* const twin : both) {
        EXPECT_EQ(embank_table_drop(store_.get(), twin->oracle.name().c_str()), EMBANK_OK);
      }
    }
  }
}

// More rows than a staging buffer takes: 10,000 bags, and as many keys.
TEST_F(PackedDeviceCalls, TakeRowsInManyPieces) {
  constexpr uint64_t kRows = 10'000;
  Twin made = Make("t", 64, EMBANK_OPT_SGD, EMBANK_F32);
  oracle::Feature feature;
  for (uint64_t i = 0; i < kRows; ++i) feature.keys.push_back(1 + i % (in_hbm_ + 100));
  feature.padding = 7;
  for (const int32_t pooling : {EMBANK_POOL_NONE, EMBANK_POOL_SUM}) {
    feature.pooling = pooling;
    if (pooling == EMBANK_POOL_SUM) feature.offsets = KeyRange(0, kRows + 1);
    RowBuffer rows(kRows, 256);
    for (uint64_t i = 0; i < kRows * 64; ++i) rows.SetFloat(i / 64, i % 64, random_.Signed());
    DeviceRows memory(store_.get(), rows, kRows, 256, 4, &random_);
    const PassedFeature arrays(feature, &random_);
    const embank_feature passed = arrays.Of(made.table, memory.data(), memory.stride());
    std::vector<uint8_t> outcomes(kRows);
    ASSERT_EQ(embank_apply_gradients_packed_device(&passed, 1, outcomes.data(), nullptr),
              EMBANK_OK);
    std::vector<uint64_t> keys;
    std::vector<float> gradients;
    AppendGradients(made.oracle, feature, rows.floats(), &keys, &gradients);
    std::vector<uint8_t> right(keys.size());
    made.oracle.ApplyGradients(keys.data(), keys.size(), gradients.data(), 0, right.data());
    ASSERT_EQ(
        embank_lookup_packed_device(&passed, 1, EMBANK_MISSING_CREATE, outcomes.data(), nullptr),
        EMBANK_OK);
    std::vector<uint8_t> expected(kRows * 256);
    LookUpFeature(&made.oracle, feature, EMBANK_MISSING_CREATE, &expected, &right);
    EXPECT_EQ(outcomes, right);
    ASSERT_EQ(memory.CopyTo(&rows), "");
    EXPECT_EQ(std::memcmp(rows.data(), expected.data(), expected.size()), 0);
    EXPECT_EQ(Difference(made.table, made.oracle), "");
  }
}

// One gather: HBM rows do not come to the host. With a pooling, they do: one gather to the host,
// and one row to the device.
TEST_F(PackedDeviceCalls, EnqueueFewPiecesOfWork) {
  Twin made = Make("t", 16, EMBANK_OPT_ADAGRAD, EMBANK_F32);
  std::byte* const rows = Allocate(80 * 64);
  oracle::Feature feature;
  feature.keys = KeyRange(in_hbm_ - 39, 60);
  const auto work_of = [&] {
    const uint64_t before = twin_->enqueued_work();
    embank_feature passed = PlainFeature(made.table, feature.keys, rows, 0);
    passed.pooling = feature.pooling;
    passed.bags = feature.bags();
    if (!feature.offsets.empty()) passed.offsets = feature.offsets.data();
    EXPECT_EQ(embank_lookup_packed_device(&passed, 1, EMBANK_MISSING_ZERO, nullptr, nullptr),
              EMBANK_OK)
        << embank_last_error();
    return twin_->enqueued_work() - before;
  };
  EXPECT_EQ(work_of(), 1u);
  feature.pooling = EMBANK_POOL_SUM;
  feature.offsets = {0, 60};
  EXPECT_EQ(work_of(), 2u);
}

// The stream's earlier work writes the gradients, and its later work reads the rows.
TEST_F(PackedDeviceCalls, AreInTheOrderOfTheCallersStream) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const uint64_t offsets[2] = {0, 1};
  for (const uint64_t key : {uint64_t{1}, in_hbm_ + 1}) {
    for (const int32_t pooling : {EMBANK_POOL_NONE, EMBANK_POOL_SUM}) {
      SCOPED_TRACE((key == 1 ? "hot, pooling " : "in DRAM, pooling ") + std::to_string(pooling));
      std::byte* const memory = Allocate(16);
      const float zeros[4] = {};
      const float ones[4] = {1, 1, 1, 1};
      ASSERT_EQ(embank_device_copy(store_.get(), memory, zeros, 16, nullptr), EMBANK_OK);
      const std::vector<uint64_t> keys = {key};
      embank_feature feature = PlainFeature(made.table, keys, memory, 0);
      feature.pooling = pooling;
      feature.offsets = pooling == EMBANK_POOL_NONE ? nullptr : offsets;
      feature.bags = pooling == EMBANK_POOL_NONE ? 0 : 1;
      float before[4] = {};
      ASSERT_EQ(embank_lookup(made.table, &key, 1, EMBANK_MISSING_ZERO, before, 0, nullptr),
                EMBANK_OK);
      void* const stream = twin_->callers().Add();
      std::byte* const real = twin_->RealAddress(memory);
      twin_->callers().Enqueue(stream, [&] { std::memcpy(real, ones, 16); });
      ASSERT_EQ(embank_apply_gradients_packed_device(&feature, 1, nullptr, stream), EMBANK_OK);
      ASSERT_EQ(embank_lookup_packed_device(&feature, 1, EMBANK_MISSING_ZERO, nullptr, stream),
                EMBANK_OK);
      float seen[4] = {};
      twin_->callers().Enqueue(stream, [&] { std::memcpy(seen, real, 16); });
      twin_->callers().WaitFor(stream);
      EXPECT_EQ(seen[0], before[0] - 0.1f);
      EXPECT_EQ(embank_device_free(store_.get(), memory), EMBANK_OK);
    }
  }
}

// The twin runs the caller's work when somebody waits for it.
TEST_F(PackedDeviceCalls, PoolWithoutAWaitForTheCallersStream) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  Twin other = CreateTwin(store_.get(), kSeed, "other", made.oracle.options());
  const std::vector<uint64_t> keys = {1, in_hbm_ + 1};
  float expected[8] = {};
  ASSERT_EQ(embank_lookup(made.table, keys.data(), 2, EMBANK_MISSING_ZERO, expected, 0, nullptr),
            EMBANK_OK);
  std::byte* const memory = Allocate(64);
  const auto lookup = [&](Twin* last, bool has_call_before = false) {
    const uint64_t offsets[3] = {0, 1, 2};
    embank_feature features[2] = {PlainFeature(made.table, keys, memory, 0),
                                  PlainFeature(last->table, keys, memory + 32, 0)};
    // Without pooling, the store's stream writes the caller's rows: last.
    embank_feature& pooled = features[last == &made ? 1 : 0];
    pooled.pooling = EMBANK_POOL_SUM;
    pooled.bags = 2;
    pooled.offsets = offsets;
    void* const stream = twin_->callers().Add();
    std::byte* const real = twin_->RealAddress(memory);
    bool has_run = false;
    twin_->callers().Enqueue(stream, [&] {
      std::memset(real, 0x5A, 64);
      has_run = true;
    });
    if (has_call_before) {
      EXPECT_EQ(embank_lookup_device(made.table, keys.data(), 2, EMBANK_MISSING_ZERO, memory, 0,
                                     nullptr, stream),
                EMBANK_OK);
      EXPECT_FALSE(has_run);
    }
    EXPECT_EQ(embank_lookup_packed_device(features, 2, EMBANK_MISSING_CREATE, nullptr, stream),
              EMBANK_OK);
    const bool has_waited = has_run;
    twin_->callers().WaitFor(stream);
    const uint64_t at = last == &made ? 32 : 0;
    EXPECT_EQ(std::memcmp(real + at, expected, 32), 0) << "the caller's work came later";
    return has_waited;
  };
  EXPECT_FALSE(lookup(&other));
  EXPECT_TRUE(lookup(&other, /*has_call_before=*/true)) << "a call before has joined the stream";
  EXPECT_TRUE(lookup(&made)) << "the first feature of the table has no pooling";
}

TEST_F(PackedDeviceCalls, AreRefusedWhole) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  std::byte* const memory = Allocate(64);
  const float values[16] = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_EQ(embank_device_copy(store_.get(), memory, values, 64, nullptr), EMBANK_OK);
  void* const capturing = twin_->callers().Add();
  twin_->callers().SetCapturing(capturing, true);
  const std::vector<uint64_t> keys = {1, in_hbm_ + kDramKeys + 5};
  float host[8];
  const auto refused = [&](auto change, embank_status status, const char* mention, void* stream) {
    embank_feature features[2] = {PlainFeature(made.table, keys, memory, 0),
                                  PlainFeature(made.table, keys, memory, 0)};
    change(&features[1]);
    uint8_t outcomes[4] = {9, 9, 9, 9};
    EXPECT_EQ(embank_lookup_packed_device(features, 2, EMBANK_MISSING_CREATE, outcomes, stream),
              status);
    EXPECT_THAT(embank_last_error(), HasSubstr(mention));
    EXPECT_EQ(embank_apply_gradients_packed_device(features, 2, outcomes, stream), status);
    EXPECT_THAT(embank_last_error(), HasSubstr(mention));
    EXPECT_THAT(outcomes, testing::Each(9));
  };
  const auto nothing = [](embank_feature*) {};
  constexpr embank_status kInvalid = EMBANK_INVALID_ARGUMENT;
  refused([&](embank_feature* f) { f->rows = host; }, kInvalid, "features[1].rows is not 32 bytes",
          nullptr);
  refused([&](embank_feature* f) { f->rows = memory + 2; }, kInvalid,
          "features[1].rows is not at a multiple of 4", nullptr);
  refused([&](embank_feature* f) { f->keys = reinterpret_cast<uint64_t*>(memory); }, kInvalid,
          "features[1].keys is in device memory", nullptr);
  refused(
      [&](embank_feature* f) {
        f->pooling = EMBANK_POOL_SUM, f->bags = 1, f->offset_type = EMBANK_INDEX_I32;
        f->typed_offsets = memory;
      },
      kInvalid, "features[1].typed_offsets is in device memory", nullptr);
  refused([&](embank_feature* f) { f->weights = reinterpret_cast<float*>(memory); }, kInvalid,
          "features[1].weights is in device memory", nullptr);
  refused(nothing, kInvalid, "stream", host);
  refused(nothing, EMBANK_FAILED_PRECONDITION, "capturing", capturing);
  const uint64_t offsets[2] = {0, 2};
  const auto pooled = [&](embank_feature* last) {
    for (embank_feature* const f : {last - 1, last}) {
      f->pooling = EMBANK_POOL_SUM, f->bags = 1, f->offsets = offsets;
    }
  };
  refused(pooled, EMBANK_FAILED_PRECONDITION, "capturing", capturing);
  float after[16];
  ASSERT_EQ(embank_device_copy(store_.get(), after, memory, 64, nullptr), EMBANK_OK);
  EXPECT_THAT(after, testing::ElementsAreArray(values));
  EXPECT_EQ(Difference(made.table, made.oracle), "");
  EXPECT_EQ(embank_lookup_packed_device(nullptr, 0, 0, nullptr, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_apply_gradients_packed_device(nullptr, 0, nullptr, nullptr), EMBANK_OK);
}

struct OwnClock {
  ManualClock clock{1000};
};

class TimedPackedDeviceCalls : protected OwnClock, public DeviceCalls {
 protected:
  TimedPackedDeviceCalls() : DeviceCalls(&clock) {}
};

// The work of the caller's stream takes ten seconds, for which gradients wait.
TEST_F(TimedPackedDeviceCalls, HaveTheWaitForTheCallersStreamInTheirDurations) {
  constexpr uint64_t kBusySeconds = 10;
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const std::vector<uint64_t> keys = {1, in_hbm_ + 1};
  const embank_feature feature = PlainFeature(made.table, keys, Allocate(32), 0);
  const float zeros[8] = {};
  ASSERT_EQ(embank_device_copy(store_.get(), feature.rows, zeros, 32, nullptr), EMBANK_OK);
  void* const stream = twin_->callers().Add();
  twin_->callers().Enqueue(stream, [&] { clock.Advance(kBusySeconds * 1'000'000'000); });
  ASSERT_EQ(embank_apply_gradients_packed_device(&feature, 1, nullptr, stream), EMBANK_OK);
  const char* const labels = "{table=\"t\",op=\"gradients\"}";
  const auto metric = [&](const std::string& name) {
    return MetricOf(store_.get(), name + labels);
  };
  EXPECT_EQ(metric("embank_batches_total"), 1);
  EXPECT_GE(metric("embank_batch_seconds_total"), kBusySeconds);
  EXPECT_LT(metric("embank_batch_seconds_total"), kBusySeconds + 1);
}

// Gradients of padding are not read; its rows count in the number that a message names.
TEST_F(PackedDeviceCalls, NameTheRowOfTheCallerBesidePadding) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const std::vector<uint64_t> keys = {9, 1, 9, in_hbm_ + 1};
  float rows[16] = {};
  rows[0] = rows[13] = std::nanf("");
  std::byte* const memory = Allocate(sizeof rows);
  ASSERT_EQ(embank_device_copy(store_.get(), memory, rows, sizeof rows, nullptr), EMBANK_OK);
  embank_feature feature = PlainFeature(made.table, keys, rows, 0);
  feature.padding_key = 9;
  feature.flags = EMBANK_FEATURE_PADDING;
  EXPECT_EQ(embank_apply_gradients_packed(&feature, 1, nullptr), EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("row 3 of a feature"));
  feature.rows = memory;
  EXPECT_EQ(embank_apply_gradients_packed_device(&feature, 1, nullptr, nullptr),
            EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("row 3 of a feature"));
}

TEST_F(PackedDeviceCalls, ThatLoseTheDeviceSaySo) {
  Twin made = Make("t", 4, EMBANK_OPT_SGD, EMBANK_F32);
  const std::vector<uint64_t> keys = {1, in_hbm_ + 1};
  const embank_feature feature = PlainFeature(made.table, keys, Allocate(32), 0);
  twin_->LoseAt(1);  // the fetch of the gradients does not run
  uint8_t outcomes[2] = {9, 9};
  EXPECT_EQ(embank_apply_gradients_packed_device(&feature, 1, outcomes, nullptr),
            EMBANK_UNAVAILABLE);
  EXPECT_THAT(embank_last_error(), HasSubstr("lost"));
  EXPECT_THAT(outcomes, testing::Each(9));
  EXPECT_EQ(embank_lookup_packed_device(&feature, 1, EMBANK_MISSING_ZERO, outcomes, nullptr),
            EMBANK_UNAVAILABLE);
}

}  // namespace
}  // namespace embank::test::device_packed_test
