// The edges of every size, key, name, stride and lifetime that embank.h states.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle.h"
#include "tests/support/random.h"
#include "tests/support/row_buffer.h"

namespace embank::test::boundaries_test {
namespace {

using testing::Each;
using testing::ElementsAre;

constexpr uint64_t kSeed = 3;

class Boundaries : public testing::Test {
 protected:
  Boundaries() {
    embank_store_options options = StoreOptions();
    options.seed = kSeed;
    store_ = OpenStore(options);
  }
  Twin Create(const std::string& name, const embank_table_options& options) {
    return CreateTwin(store_.get(), kSeed, name, options);
  }
  StorePtr store_;
};

embank_table_options DrawnOptions(uint32_t dim, int32_t optimizer) {
  embank_table_options options = TableOptions(dim, optimizer);
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_a = -1.0f;
  options.init_b = 1.0f;
  return options;
}

// Creates `keys` by a lookup on both sides; the answers must be the same bits.
void CreateByLookup(Twin* twin, const std::vector<uint64_t>& keys) {
  RowBuffer actual(keys.size(), twin->oracle.row_bytes());
  RowBuffer expected = actual;
  std::vector<uint8_t> outcomes(keys.size());
  std::vector<uint8_t> right(keys.size());
  EXPECT_EQ(embank_lookup(twin->table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                          actual.data(), 0, outcomes.data()),
            EMBANK_OK);
  twin->oracle.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, expected.data(), 0,
                      right.data());
  EXPECT_EQ(outcomes, right);
  EXPECT_TRUE(actual == expected);
}

TEST_F(Boundaries, SmallestAndLargestKeyAreKeysLikeOthers) {
  Twin twin = Create("t", DrawnOptions(3, EMBANK_OPT_ADAM));
  std::vector<uint64_t> keys = {0, ~uint64_t{0}, 1, ~uint64_t{1}, uint64_t{1} << 63};
  CreateByLookup(&twin, keys);
  std::vector<float> gradients(keys.size() * 3, 0.25f);
  EXPECT_EQ(embank_apply_gradients(twin.table, keys.data(), 5, gradients.data(), 0, nullptr),
            EMBANK_OK);
  twin.oracle.ApplyGradients(keys.data(), 5, gradients.data(), 0, nullptr);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  std::vector<uint8_t> outcomes(2);
  EXPECT_EQ(embank_erase(twin.table, keys.data(), 2, outcomes.data()), EMBANK_OK);
  EXPECT_THAT(outcomes, Each(EMBANK_ROW_FOUND));
  twin.oracle.Erase(keys.data(), 2, nullptr);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

TEST_F(Boundaries, EmptyBatchesMayPassNull) {
  Twin twin = Create("t", DrawnOptions(3, EMBANK_OPT_ADAGRAD));
  CreateByLookup(&twin, {1});
  embank_table* t = twin.table;
  for (int32_t missing = EMBANK_MISSING_CREATE; missing <= EMBANK_MISSING_SKIP; ++missing) {
    EXPECT_EQ(embank_lookup(t, nullptr, 0, missing, nullptr, 0, nullptr), EMBANK_OK);
  }
  EXPECT_EQ(embank_upsert(t, nullptr, 0, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_apply_gradients(t, nullptr, 0, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_erase(t, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_contains(t, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_prefetch(t, nullptr, 0), EMBANK_OK);
  EXPECT_EQ(embank_get_state(t, nullptr, 0, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_set_state(t, nullptr, 0, nullptr, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_get_heat(t, nullptr, 0, nullptr, nullptr), EMBANK_OK);
  EXPECT_EQ(Difference(t, twin.oracle), "");
}

TEST_F(Boundaries, TenMillionKeysInOneBatch) {
  constexpr uint64_t kKeys = 10'000'000;
  embank_table_options options = DrawnOptions(1, EMBANK_OPT_NONE);
  options.value_type = EMBANK_F16;
  Twin twin = Create("t", options);
  std::vector<uint64_t> keys = KeyRange(5, kKeys);
  std::vector<uint16_t> rows(kKeys);
  std::vector<uint8_t> outcomes(kKeys);
  ASSERT_EQ(embank_lookup(twin.table, keys.data(), kKeys, EMBANK_MISSING_CREATE, rows.data(), 0,
                          outcomes.data()),
            EMBANK_OK)
      << embank_last_error();
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), EMBANK_ROW_CREATED),
            static_cast<int64_t>(kKeys));
  EXPECT_EQ(RowCount(twin.table), kKeys);
  for (uint64_t i = 0; i < kKeys; i += 9973) {
    uint16_t expected = 0;
    twin.oracle.Lookup(&keys[i], 1, EMBANK_MISSING_DEFAULT, &expected, 0, nullptr);
    ASSERT_EQ(rows[i], expected) << "key " << keys[i];
  }
  std::vector<uint16_t> again(kKeys);
  ASSERT_EQ(embank_lookup(twin.table, keys.data(), kKeys, EMBANK_MISSING_SKIP, again.data(), 0,
                          outcomes.data()),
            EMBANK_OK);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), EMBANK_ROW_FOUND),
            static_cast<int64_t>(kKeys));
  EXPECT_TRUE(rows == again);
}

TEST_F(Boundaries, AllDimsHoldTheirRows) {
  Random random(1);
  for (uint32_t dim = 1; dim <= 4096; dim += dim < 40 ? 1 : dim < 4000 ? 137 : 24) {
    SCOPED_TRACE("dim " + std::to_string(dim));
    embank_table_options options =
        DrawnOptions(dim, static_cast<int32_t>(random.Between(EMBANK_OPT_SGD, EMBANK_OPT_FTRL)));
    options.value_type = static_cast<int32_t>(random.Below(3));
    Twin twin = Create(StrCat("dim", dim), options);
    ASSERT_NE(twin.table, nullptr);
    std::vector<uint64_t> keys = {dim, 7, dim};
    CreateByLookup(&twin, keys);
    std::vector<float> gradients(keys.size() * dim);
    for (float& g : gradients) g = random.Signed();
    EXPECT_EQ(embank_apply_gradients(twin.table, keys.data(), 3, gradients.data(), 0, nullptr),
              EMBANK_OK);
    twin.oracle.ApplyGradients(keys.data(), 3, gradients.data(), 0, nullptr);
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  }
  for (uint32_t dim : {4095u, 4096u}) {
    Twin twin = Create(StrCat("edge", dim), DrawnOptions(dim, EMBANK_OPT_ADAM));
    CreateByLookup(&twin, {1, 2, 3});
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  }
}

TEST_F(Boundaries, BatchOfOneKeyOnly) {
  Twin twin = Create("t", DrawnOptions(2, EMBANK_OPT_ADAGRAD));
  std::vector<uint64_t> keys(1000, 77);
  CreateByLookup(&twin, keys);  // the first position CREATED, the others FOUND
  std::vector<float> values(2000);
  Random random(5);
  for (float& value : values) value = random.Signed();
  std::vector<uint8_t> outcomes(1000);
  EXPECT_EQ(
      embank_apply_gradients(twin.table, keys.data(), 1000, values.data(), 0, outcomes.data()),
      EMBANK_OK);
  EXPECT_THAT(outcomes, Each(EMBANK_ROW_FOUND));
  twin.oracle.ApplyGradients(keys.data(), 1000, values.data(), 0, nullptr);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");

  EXPECT_EQ(embank_upsert(twin.table, keys.data(), 1000, values.data(), 0, outcomes.data()),
            EMBANK_OK);
  twin.oracle.Upsert(keys.data(), 1000, values.data(), 0, nullptr);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");

  EXPECT_EQ(embank_erase(twin.table, keys.data(), 1000, outcomes.data()), EMBANK_OK);
  EXPECT_EQ(outcomes[0], EMBANK_ROW_FOUND);
  EXPECT_EQ(std::count(outcomes.begin(), outcomes.end(), EMBANK_ROW_ABSENT), 999);
  EXPECT_EQ(RowCount(twin.table), 0u);
}

TEST_F(Boundaries, AbsentKeysOfAGradientBatchShareAnOutcomeAndTheRestIsDone) {
  Twin twin = Create("t", DrawnOptions(1, EMBANK_OPT_SGD));
  CreateByLookup(&twin, {1});
  std::vector<uint64_t> keys = {2, 1, 2, 1};
  std::vector<float> gradients = {1, 2, 3, 4};
  std::vector<uint8_t> outcomes(4);
  EXPECT_EQ(
      embank_apply_gradients(twin.table, keys.data(), 4, gradients.data(), 0, outcomes.data()),
      EMBANK_OK);
  EXPECT_THAT(outcomes, ElementsAre(EMBANK_ROW_ABSENT, EMBANK_ROW_FOUND, EMBANK_ROW_ABSENT,
                                    EMBANK_ROW_FOUND));
  EXPECT_EQ(embank_apply_gradients(twin.table, keys.data(), 4, gradients.data(), 0, nullptr),
            EMBANK_NOT_FOUND);
  twin.oracle.ApplyGradients(keys.data(), 4, gradients.data(), 0, nullptr);
  twin.oracle.ApplyGradients(keys.data(), 4, gradients.data(), 0, nullptr);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

TEST_F(Boundaries, PaddedAndUnalignedRowsLeaveTheGapsAlone) {
  for (int32_t type : {EMBANK_F32, EMBANK_F16, EMBANK_BF16}) {
    embank_table_options options = DrawnOptions(5, EMBANK_OPT_ADAGRAD);
    options.value_type = type;
    Twin twin = Create(StrCat("type", type), options);
    std::vector<uint64_t> keys = {4, 5, 6, 4};
    for (uint64_t misalignment = 0; misalignment < 4; ++misalignment) {
      uint64_t stride = twin.oracle.row_bytes() + misalignment * 7;
      RowBuffer actual(4, twin.oracle.row_bytes(), stride, misalignment);
      RowBuffer expected = actual;
      EXPECT_EQ(embank_lookup(twin.table, keys.data(), 4, EMBANK_MISSING_CREATE, actual.data(),
                              stride, nullptr),
                EMBANK_OK);
      twin.oracle.Lookup(keys.data(), 4, EMBANK_MISSING_CREATE, expected.data(), stride, nullptr);
      EXPECT_TRUE(actual == expected) << "type " << type << ", stride " << stride;

      RowBuffer state(4, 20, 20 + misalignment, misalignment);
      RowBuffer right = state;
      EXPECT_EQ(
          embank_get_state(twin.table, keys.data(), 4, state.floats(), state.stride(), nullptr),
          EMBANK_OK);
      twin.oracle.GetState(keys.data(), 4, right.floats(), right.stride(), nullptr);
      EXPECT_TRUE(state == right) << "type " << type << ", misalignment " << misalignment;
    }
  }
}

TEST_F(Boundaries, AScanRespectsStrideAndCap) {
  Twin twin = Create("t", DrawnOptions(3, EMBANK_OPT_NONE));
  CreateByLookup(&twin, KeyRange(0, 10));
  ScanPtr scan = OpenScan(twin.table);
  uint64_t seen = 0;
  for (uint64_t n = 1; n > 0; seen += n) {
    std::vector<uint64_t> keys(4, 999);
    RowBuffer rows(4, 12, 29, 1);
    RowBuffer expected = rows;
    ASSERT_EQ(embank_scan_next(scan.get(), keys.data(), rows.data(), 29, 4, &n), EMBANK_OK);
    ASSERT_LE(n, 4u);
    for (uint64_t i = 0; i < n; ++i) {
      ASSERT_NE(twin.oracle.Find(keys[i]), nullptr);
      std::memcpy(expected.row(i), twin.oracle.Find(keys[i])->values.data(), 12);
    }
    EXPECT_TRUE(rows == expected);
    for (uint64_t i = n; i < 4; ++i) EXPECT_EQ(keys[i], 999u);
  }
  EXPECT_EQ(seen, 10u);
  uint64_t n = 5;
  EXPECT_EQ(embank_scan_next(scan.get(), &n, nullptr, 0, 1, &n), EMBANK_INVALID_ARGUMENT);
}

TEST_F(Boundaries, AnAbsentKeyWithoutOutcomesIsNotFoundWhereTheHeaderSaysSo) {
  Twin twin = Create("t", DrawnOptions(1, EMBANK_OPT_ADAGRAD));
  CreateByLookup(&twin, {1});
  std::vector<uint64_t> keys = {1, 2};
  std::vector<float> values = {0.5f, 0.5f};
  embank_table* t = twin.table;
  EXPECT_EQ(embank_get_state(t, keys.data(), 2, values.data(), 0, nullptr), EMBANK_NOT_FOUND);
  EXPECT_EQ(values[1], 0.5f) << "the output of an absent key was written";
  EXPECT_EQ(embank_set_state(t, keys.data(), 2, values.data(), 0, nullptr), EMBANK_NOT_FOUND);
  EXPECT_EQ(embank_erase(t, &keys[1], 1, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_lookup(t, keys.data(), 2, EMBANK_MISSING_ZERO, values.data(), 0, nullptr),
            EMBANK_OK);
  uint32_t heat[2] = {99, 99};
  EXPECT_EQ(embank_get_heat(t, keys.data(), 2, heat, nullptr), EMBANK_OK);
  EXPECT_THAT(heat, ElementsAre(2u, 0u));
}

// The step count ends at 2^24, where a float stops growing; a larger one is refused.
TEST_F(Boundaries, AdamCountsToTwoToTheTwentyFour) {
  embank_table_options options = DrawnOptions(1, EMBANK_OPT_ADAM);
  options.beta1 = 0.99999994f;  // whose powers still differ at such counts
  options.beta2 = 0.99999994f;
  Twin twin = Create("t", options);
  std::vector<uint64_t> keys = {1, 2, 3};
  CreateByLookup(&twin, keys);
  for (float steps : {16777218.0f, 1e30f, -1.0f, NAN}) {
    std::vector<float> refused = {0, 0, 1, 0, 0, steps, 0, 0, 1};
    EXPECT_EQ(embank_set_state(twin.table, keys.data(), 3, refused.data(), 0, nullptr),
              EMBANK_INVALID_ARGUMENT);
    EXPECT_THAT(embank_last_error(), testing::HasSubstr("key 2 at position 1"));
  }
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  std::vector<float> state = {0, 0, 16777214, 0, 0, 16777215, 0, 0, 16777216};
  EXPECT_EQ(embank_set_state(twin.table, keys.data(), 3, state.data(), 0, nullptr), EMBANK_OK);
  twin.oracle.SetState(keys.data(), 3, state.data(), 0, nullptr);
  std::vector<float> gradients = {1, 1, 1};
  EXPECT_EQ(embank_apply_gradients(twin.table, keys.data(), 3, gradients.data(), 0, nullptr),
            EMBANK_OK);
  twin.oracle.ApplyGradients(keys.data(), 3, gradients.data(), 0, nullptr);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
}

TEST_F(Boundaries, ADroppedTableAnswersFailedPreconditionForEver) {
  Twin twin = Create("t", DrawnOptions(2, EMBANK_OPT_ADAGRAD));
  CreateByLookup(&twin, KeyRange(0, 100));
  ScanPtr scan = OpenScan(twin.table);
  ASSERT_EQ(embank_table_drop(store_.get(), "t"), EMBANK_OK);
  EXPECT_EQ(embank_table_drop(store_.get(), "t"), EMBANK_NOT_FOUND);
  embank_table* found = nullptr;
  EXPECT_EQ(embank_table_open(store_.get(), "t", &found), EMBANK_NOT_FOUND);
  EXPECT_EQ(found, nullptr);

  Twin next = Create("t", DrawnOptions(2, EMBANK_OPT_ADAGRAD));
  CreateByLookup(&next, {1, 2, 3});  // absent: nothing of the first table shows through
  embank_table* t = twin.table;
  uint64_t key = 1;
  float row[2] = {};
  uint32_t heat = 0;
  uint8_t outcome = 0;
  uint64_t n = 0;
  embank_table_info info = {};
  info.struct_size = sizeof info;
  embank_scan* new_scan = nullptr;
  EXPECT_EQ(embank_lookup(t, &key, 1, 0, row, 0, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_upsert(t, &key, 1, row, 0, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_apply_gradients(t, &key, 1, row, 0, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_erase(t, &key, 1, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_contains(t, &key, 1, &outcome), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_prefetch(t, &key, 1), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_get_state(t, &key, 1, row, 0, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_set_state(t, &key, 1, row, 0, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_get_heat(t, &key, 1, &heat, nullptr), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_set_learning_rate(t, 0.5f), EMBANK_FAILED_PRECONDITION);
  embank_table_options options = TableOptions(3);
  EXPECT_EQ(embank_table_get_options(t, &options), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_table_set_options(t, &options, 0), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_table_get_info(t, &info), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_scan_open(t, &new_scan), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(embank_scan_next(scan.get(), &key, row, 0, 1, &n), EMBANK_FAILED_PRECONDITION);
  EXPECT_EQ(Difference(next.table, next.oracle), "");
}

TEST_F(Boundaries, FourThousandAndNinetyFiveTablesAndNoMore) {
  embank_table_options options = DrawnOptions(1, EMBANK_OPT_NONE);
  std::vector<embank_table*> tables;
  for (int i = 0; i < 4095; ++i) {
    tables.push_back(CreateTable(store_.get(), StrCat("t", i), options));
    ASSERT_NE(tables.back(), nullptr) << i;
  }
  embank_table* extra = nullptr;
  EXPECT_EQ(embank_table_create(store_.get(), "extra", &options, &extra),
            EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_EQ(extra, nullptr);
  EXPECT_THAT(embank_last_error(), testing::HasSubstr("4095"));
  uint64_t key = 1;
  for (int i = 0; i < 4095; ++i) {
    oracle::Table oracle(kSeed, StrCat("t", i), options);
    float row = 0;
    float expected = 1;
    ASSERT_EQ(embank_lookup(tables[static_cast<size_t>(i)], &key, 1, 0, &row, 0, nullptr),
              EMBANK_OK);
    oracle.Lookup(&key, 1, 0, &expected, 0, nullptr);
    ASSERT_EQ(row, expected) << "table " << i;
  }
  // A dropped table makes space for another one.
  ASSERT_EQ(embank_table_drop(store_.get(), "t7"), EMBANK_OK);
  Twin again = Create("again", options);
  ASSERT_NE(again.table, nullptr);
  CreateByLookup(&again, {1, 2});
  EXPECT_EQ(Difference(again.table, again.oracle), "");
}

TEST_F(Boundaries, TableOpenGivesTheSameHandleAndNamesKeepTheirOrder) {
  std::string longest(255, 'n');
  embank_table* first = CreateTable(store_.get(), "b", TableOptions(1));
  CreateTable(store_.get(), longest, TableOptions(2));
  CreateTable(store_.get(), "a b\t\x01\xC3\xA4", TableOptions(1));
  embank_table* found = nullptr;
  EXPECT_EQ(embank_table_open(store_.get(), "b", &found), EMBANK_OK);
  EXPECT_EQ(found, first);
  std::string expected = "b\n" + longest + "\na b\t\x01\xC3\xA4\n";
  std::vector<char> names(expected.size() + 1);
  uint64_t needed = 0;
  EXPECT_EQ(embank_table_names(store_.get(), names.data(), names.size(), &needed), EMBANK_OK);
  EXPECT_EQ(needed, expected.size() + 1);
  EXPECT_EQ(std::string(names.data()), expected);
}

TEST_F(Boundaries, CloseWithLiveRowsAndTablesIsFine) {
  Twin twin = Create("t", DrawnOptions(100, EMBANK_OPT_ADAM));
  CreateByLookup(&twin, KeyRange(0, 5000));
  EXPECT_EQ(embank_store_close(store_.release()), EMBANK_OK);
  EXPECT_EQ(embank_store_close(nullptr), EMBANK_OK);
  embank_scan_close(nullptr);
}

// ---- strings out ----

// Sizing, one byte too few, exact, and an output that stays as it was when it is too small.
template <typename Call>
void ExpectTwoCallProtocol(const Call& call) {
  uint64_t needed = 0;
  ASSERT_EQ(call(nullptr, 0, &needed), EMBANK_OK) << embank_last_error();
  ASSERT_GE(needed, 1u);
  std::string untouched(needed, '#');
  std::string buffer = untouched;
  for (uint64_t cap : {uint64_t{1}, needed - 1}) {
    if (cap == 0 || cap >= needed) continue;
    uint64_t again = 0;
    EXPECT_EQ(call(buffer.data(), cap, &again), EMBANK_RESOURCE_EXHAUSTED) << "cap " << cap;
    EXPECT_EQ(again, needed);
    EXPECT_EQ(buffer, untouched);
  }
  uint64_t exact = 0;
  EXPECT_EQ(call(buffer.data(), needed, &exact), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(exact, needed);
  EXPECT_EQ(std::strlen(buffer.data()) + 1, needed);
  exact = 0;
  EXPECT_EQ(call(buffer.data(), 0, &exact), EMBANK_OK) << "a buffer with cap 0 is a sizing call";
  EXPECT_EQ(exact, needed);
}

TEST_F(Boundaries, StringsOutCanBeSizedAndFilledExactly) {
  embank_store* s = store_.get();
  auto names = [s](char* p, uint64_t cap, uint64_t* needed) {
    return embank_table_names(s, p, cap, needed);
  };
  ExpectTwoCallProtocol(names);  // "" has one byte
  CreateTable(s, "table", TableOptions(1));
  ExpectTwoCallProtocol(names);
  ExpectTwoCallProtocol([s](char* p, uint64_t cap, uint64_t* needed) {
    return embank_memory_report(s, p, cap, needed);
  });
  embank_table_options table = TableOptions(7, EMBANK_OPT_ADAM);
  uint64_t rows = 1000;
  ExpectTwoCallProtocol([&](char* p, uint64_t cap, uint64_t* needed) {
    return embank_estimate(nullptr, &table, &rows, 1, p, cap, needed);
  });
  embank_store_options options = StoreOptions();
  options.path = "not opened";
  ExpectTwoCallProtocol([&](char* p, uint64_t cap, uint64_t* needed) {
    return embank_estimate_for_hit_ratio(&options, &table, &rows, 1, 1.05, 0.9, p, cap, needed);
  });
}

TEST_F(Boundaries, MetricsAreAStringOutToo) {
  // Metrics count calls, so their size may grow from one call to the next: only bounds are asked.
  uint64_t needed = 0;
  ASSERT_EQ(embank_metrics(store_.get(), nullptr, 0, &needed), EMBANK_OK);
  char one = '#';
  uint64_t again = 0;
  EXPECT_EQ(embank_metrics(store_.get(), &one, 1, &again), EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_EQ(one, '#');
  EXPECT_GE(again, needed);
  std::string text = Metrics(store_.get());
  EXPECT_THAT(text, testing::HasSubstr("# TYPE"));
  EXPECT_EQ(text.back(), '\n');
}

// ---- structs ----

TEST_F(Boundaries, InfoIsFilledUpToTheSizeOfTheCaller) {
  Twin twin = Create("t", DrawnOptions(5, EMBANK_OPT_ADAGRAD));
  CreateByLookup(&twin, {1, 2, 3});
  embank_table_info info;
  for (uint32_t size : {4u, 8u, 16u, 24u, static_cast<uint32_t>(sizeof info)}) {
    SCOPED_TRACE(size);
    std::memset(&info, 0xA5, sizeof info);
    info.struct_size = size;
    ASSERT_EQ(embank_table_get_info(twin.table, &info), EMBANK_OK) << embank_last_error();
    EXPECT_EQ(info.struct_size, size);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&info);
    for (size_t i = size; i < sizeof info; ++i) ASSERT_EQ(bytes[i], 0xA5) << "byte " << i;
    if (size >= 8) {
      EXPECT_EQ(info.dim, 5u);
    }
    if (size >= 16) {
      EXPECT_EQ(info.value_type, EMBANK_F32);
      EXPECT_EQ(info.optimizer, EMBANK_OPT_ADAGRAD);
    }
    if (size >= 24) {
      EXPECT_EQ(info.rows, 3u);
    }
  }
  EXPECT_EQ(info.rows_dram, 3u);
  EXPECT_EQ(info.rows_hbm + info.rows_pmem + info.rows_ssd, 0u);
  EXPECT_GE(info.row_bytes, 16u + 20 + 20);
  EXPECT_LE(info.row_bytes, 64u + 20 + 20);
  EXPECT_EQ(info.row_bytes % 16, 0u);
}

TEST_F(Boundaries, InfoOfANewerCallerIsFilledAsFarAsKnown) {
  Twin twin = Create("t", TableOptions(5));
  struct Larger {
    embank_table_info info;
    uint64_t unknown;
  } larger;
  std::memset(&larger, 0, sizeof larger);
  larger.info.struct_size = sizeof larger;
  EXPECT_EQ(embank_table_get_info(twin.table, &larger.info), EMBANK_OK) << embank_last_error();
  EXPECT_EQ(larger.info.dim, 5u);
  EXPECT_EQ(larger.unknown, 0u);
}

TEST(OptionStructs, InitWritesTheSizeOfTheCallerAndNoByteMore) {
  struct Larger {
    embank_table_options options;
    uint8_t unknown[16];
  };
  for (uint32_t size = 4; size <= sizeof(Larger); size += 4) {
    Larger larger;
    std::memset(&larger, 0xA5, sizeof larger);
    embank_table_options_init(&larger.options, size);
    const auto* bytes = reinterpret_cast<const uint8_t*>(&larger);
    EXPECT_EQ(larger.options.struct_size, size);
    for (size_t i = size; i < sizeof larger; ++i) ASSERT_EQ(bytes[i], 0xA5) << size << " " << i;
    for (size_t i = sizeof(embank_table_options); i < size; ++i) ASSERT_EQ(bytes[i], 0) << i;
  }
  uint32_t word = 0xA5A5A5A5;
  embank_table_options_init(reinterpret_cast<embank_table_options*>(&word), 3);
  embank_store_options_init(reinterpret_cast<embank_store_options*>(&word), 0);
  EXPECT_EQ(word, 0xA5A5A5A5);
  embank_table_options_init(nullptr, sizeof(embank_table_options));
  embank_store_options_init(nullptr, sizeof(embank_store_options));
}

TEST(OptionStructs, DefaultsAreThoseOfTheHeader) {
  embank_store_options store = StoreOptions();
  EXPECT_EQ(store.struct_size, sizeof store);
  EXPECT_EQ(store.path, nullptr);
  EXPECT_EQ(store.dram_bytes, 0u);
  EXPECT_EQ(store.cuda_device, -1);
  EXPECT_EQ(store.durability, EMBANK_DURABLE_CHECKPOINT);
  EXPECT_EQ(store.worker_threads, 0u);
  embank_table_options table;
  embank_table_options_init(&table, sizeof table);
  EXPECT_EQ(table.value_type, EMBANK_F32);
  EXPECT_EQ(table.optimizer, EMBANK_OPT_NONE);
  EXPECT_EQ(table.learning_rate, 0.01f);
  EXPECT_EQ(table.beta1, 0.9f);
  EXPECT_EQ(table.beta2, 0.999f);
  EXPECT_EQ(table.epsilon, 1e-8f);
  EXPECT_EQ(table.weight_decay, 0.0f);
  EXPECT_EQ(table.initial_accumulator, 0.0f);
  EXPECT_EQ(table.initializer, EMBANK_INIT_ZERO);
  EXPECT_EQ(table.eviction, EMBANK_EVICT_CLOCK);
  EXPECT_EQ(table.on_full, EMBANK_FULL_REFUSE);
}

TEST_F(Boundaries, AnOlderCallerGetsDefaultsForTheFieldsItDoesNotKnow) {
  embank_table_options options = TableOptions(3, EMBANK_OPT_SGD);
  options.init_a = 5.0f;  // lies beyond what this older caller declares
  options.initializer = EMBANK_INIT_CONSTANT;
  options.struct_size = offsetof(embank_table_options, initializer);
  embank_table* table = CreateTable(store_.get(), "old", options);
  uint64_t key = 1;
  float row[3] = {9, 9, 9};
  EXPECT_EQ(embank_lookup(table, &key, 1, EMBANK_MISSING_CREATE, row, 0, nullptr), EMBANK_OK);
  EXPECT_THAT(row, Each(0.0f));
}

// A newer caller whose unknown fields are all zero asks for nothing that we do not have.
TEST_F(Boundaries, ANewerCallerWithZerosInUnknownFieldsIsServed) {
  struct Larger {
    embank_table_options options;
    uint8_t unknown[24];
  } larger;
  std::memset(&larger, 0, sizeof larger);
  embank_table_options_init(&larger.options, sizeof larger);
  larger.options.dim = 2;
  embank_table* table = nullptr;
  EXPECT_EQ(embank_table_create(store_.get(), "new", &larger.options, &table), EMBANK_OK)
      << embank_last_error();
}

TEST(About, VersionsNamesAndMessages) {
  EXPECT_STREQ(embank_version(), "0.1.0");
  EXPECT_GE(embank_abi_version(), 1u);
  EXPECT_STREQ(embank_status_name(EMBANK_OK), "OK");
  EXPECT_STREQ(embank_status_name(EMBANK_DATA_LOSS), "DATA_LOSS");
  EXPECT_STREQ(embank_status_name(EMBANK_UNKNOWN), "UNKNOWN");
  EXPECT_STREQ(embank_status_name(16), "UNKNOWN");
  EXPECT_STREQ(embank_status_name(-1), "UNKNOWN");
  EXPECT_EQ(embank_build_info(nullptr), nullptr);
  EXPECT_EQ(embank_build_info("no such part"), nullptr);
  EXPECT_EQ(embank_build_info("cuda"), nullptr);
  EXPECT_NE(embank_build_info("simd"), nullptr);
}

}  // namespace
}  // namespace embank::test::boundaries_test
