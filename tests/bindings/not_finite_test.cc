// Gradients that would leave a number that is not finite, through each call, for rows in memory and
// on the device: outcomes, statuses and counters.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/bindings/device_rows.h"
#include "tests/support/c_api.h"
#include "tests/support/row_buffer.h"

namespace embank::test::not_finite_test {
namespace {

using ::testing::HasSubstr;

constexpr uint32_t kDim = 37;
constexpr uint64_t kKeys = 12;
constexpr uint64_t kTwice = 3;   // its gradients are finite, and their sum is not
constexpr uint64_t kSquare = 5;  // the square of its gradient is not finite

enum class Call { kHost, kPacked, kDevice };

struct Place {
  const char* name;
  bool is_hot;  // rows are in device memory
  Call call;
};

class NotFiniteSteps : public testing::TestWithParam<Place> {
 protected:
  NotFiniteSteps() {
    embank_store_options options = StoreOptions();
    if (GetParam().is_hot || GetParam().call == Call::kDevice) {
      options.hbm_bytes = 1 << 20;
      options.flush_iters = UINT32_MAX;
    }
    store_ = OpenStore(options);
  }

  // A table with rows that have made a step.
  Twin Make(int32_t optimizer, int32_t type) {
    embank_table_options options = TableOptions(kDim, optimizer);
    options.value_type = type;
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    const std::string name = std::to_string(optimizer) + std::to_string(type);
    Twin twin = CreateTwin(store_.get(), StoreOptions().seed, name, options);
    const std::vector<uint64_t> keys = KeyRange(0, kKeys);
    RowBuffer rows(kKeys, twin.oracle.row_bytes());
    EXPECT_EQ(embank_lookup(twin.table, keys.data(), kKeys, EMBANK_MISSING_CREATE, rows.data(), 0,
                            nullptr),
              EMBANK_OK);
    twin.oracle.Lookup(keys.data(), kKeys, EMBANK_MISSING_CREATE, rows.data(), 0, nullptr);
    if (GetParam().is_hot) {
      EXPECT_EQ(embank_flush_hot(store_.get()), EMBANK_OK) << embank_last_error();
      embank_table_info info = {};
      info.struct_size = sizeof info;
      EXPECT_EQ(embank_table_get_info(twin.table, &info), EMBANK_OK);
      EXPECT_EQ(info.rows_hbm, kKeys);
    }
    return twin;
  }

  embank_status Apply(embank_table* table, const std::vector<uint64_t>& keys,
                      const RowBuffer& gradients, uint8_t* outcomes) {
    if (GetParam().call == Call::kHost) {
      return embank_apply_gradients(table, keys.data(), keys.size(), gradients.floats(), 0,
                                    outcomes);
    }
    if (GetParam().call == Call::kDevice) {
      Random random(1);
      const DeviceRows from(store_.get(), gradients, keys.size(), kDim * sizeof(float),
                            sizeof(float), &random);
      return embank_apply_gradients_device(table, keys.data(), keys.size(), from.floats(),
                                           from.stride(), outcomes, nullptr);
    }
    // Two features, so that the positions of a key are in both.
    embank_feature features[2] = {};
    const uint64_t half = keys.size() / 2;
    for (uint64_t i = 0; i < 2; ++i) {
      features[i].struct_size = sizeof features[i];
      features[i].table = table;
      features[i].keys = keys.data() + i * half;
      features[i].n = i == 0 ? half : keys.size() - half;
      features[i].rows = const_cast<uint8_t*>(gradients.row(i * half));
    }
    return embank_apply_gradients_packed(features, 2, outcomes);
  }

  StorePtr store_;
};

INSTANTIATE_TEST_SUITE_P(Places, NotFiniteSteps,
                         testing::Values(Place{"Memory", false, Call::kHost},
                                         Place{"Packed", false, Call::kPacked},
                                         Place{"Hot", true, Call::kHost},
                                         Place{"HotPacked", true, Call::kPacked},
                                         Place{"DeviceCall", false, Call::kDevice},
                                         Place{"HotDeviceCall", true, Call::kDevice}),
                         [](const auto& param) { return param.param.name; });

TEST_P(NotFiniteSteps, AreNotMadeAndSayWhichWhileAllOthersAre) {
  for (int32_t optimizer = EMBANK_OPT_SGD; optimizer <= EMBANK_OPT_FTRL; ++optimizer) {
    for (const int32_t type : {EMBANK_F32, EMBANK_F16, EMBANK_BF16}) {
      SCOPED_TRACE("optimizer " + std::to_string(optimizer) + ", type " + std::to_string(type));
      Twin twin = Make(optimizer, type);
      std::vector<uint64_t> keys = KeyRange(0, kKeys);
      keys.push_back(kTwice);
      RowBuffer gradients(keys.size(), kDim * sizeof(float));
      for (uint64_t i = 0; i < keys.size(); ++i) {
        for (uint64_t j = 0; j < kDim; ++j) gradients.SetFloat(i, j, 0.25f);
        if (keys[i] == kTwice) gradients.SetFloat(i, 11, 3e38f);
        if (keys[i] == kSquare) gradients.SetFloat(i, kDim - 1, 1e20f);
      }
      std::vector<uint8_t> outcomes(keys.size(), 77);
      std::vector<uint8_t> expected = outcomes;
      EXPECT_EQ(Apply(twin.table, keys, gradients, outcomes.data()), EMBANK_OK)
          << embank_last_error();
      twin.oracle.ApplyGradients(keys.data(), keys.size(), gradients.floats(), 0, expected.data());
      EXPECT_EQ(outcomes, expected);
      EXPECT_EQ(outcomes[kTwice], EMBANK_ROW_NOT_FINITE);
      EXPECT_EQ(outcomes.back(), EMBANK_ROW_NOT_FINITE);
      EXPECT_EQ(outcomes[0], EMBANK_ROW_FOUND);
      EXPECT_EQ(Difference(twin.table, twin.oracle), "");
      EXPECT_EQ(Apply(twin.table, keys, gradients, nullptr), EMBANK_OUT_OF_RANGE);
      EXPECT_THAT(embank_last_error(), HasSubstr("key 3 at position 3"));
      twin.oracle.ApplyGradients(keys.data(), keys.size(), gradients.floats(), 0, nullptr);
      EXPECT_EQ(Difference(twin.table, twin.oracle), "");
    }
  }
  EXPECT_THAT(Metrics(store_.get()), HasSubstr("op=\"gradients\",outcome=\"not_finite\"}"));
}

TEST_P(NotFiniteSteps, AreNotMadeForARowThatIsNotFiniteUntilItIsWritten) {
  for (int32_t optimizer = EMBANK_OPT_SGD; optimizer <= EMBANK_OPT_FTRL; ++optimizer) {
    SCOPED_TRACE("optimizer " + std::to_string(optimizer));
    Twin twin = Make(optimizer, EMBANK_F32);
    const std::vector<uint64_t> keys = {0, 7, 8};
    const auto upsert = [&](float value) {
      RowBuffer rows(1, kDim * sizeof(float));
      for (uint64_t j = 0; j < kDim; ++j) rows.SetFloat(0, j, j == 20 ? value : 1.0f);
      EXPECT_EQ(embank_upsert(twin.table, &keys[1], 1, rows.data(), 0, nullptr), EMBANK_OK);
      twin.oracle.Upsert(&keys[1], 1, rows.data(), 0, nullptr);
    };
    RowBuffer gradients(keys.size(), kDim * sizeof(float));
    for (uint64_t i = 0; i < keys.size(); ++i) {
      for (uint64_t j = 0; j < kDim; ++j) gradients.SetFloat(i, j, 0.5f);
    }
    const auto outcome = [&] {
      std::vector<uint8_t> outcomes(keys.size(), 77);
      EXPECT_EQ(Apply(twin.table, keys, gradients, outcomes.data()), EMBANK_OK);
      twin.oracle.ApplyGradients(keys.data(), keys.size(), gradients.floats(), 0, nullptr);
      EXPECT_EQ(outcomes[0], EMBANK_ROW_FOUND);
      EXPECT_EQ(outcomes[2], EMBANK_ROW_FOUND);
      EXPECT_EQ(Difference(twin.table, twin.oracle), "");
      return outcomes[1];
    };
    upsert(INFINITY);
    EXPECT_EQ(outcome(), EMBANK_ROW_NOT_FINITE);
    EXPECT_EQ(outcome(), EMBANK_ROW_NOT_FINITE);
    upsert(2.0f);
    EXPECT_EQ(outcome(), EMBANK_ROW_FOUND);
  }
}

}  // namespace
}  // namespace embank::test::not_finite_test
