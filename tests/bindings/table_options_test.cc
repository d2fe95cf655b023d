// The options of tables through the C API: structs of earlier versions, reading back, changing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"

namespace embank::test::table_options_test {
namespace {

using ::testing::HasSubstr;

// The struct of the first version had 64 bytes, which are also the distance of two in an array.
TEST(TableOptionsOfC, AnArrayOfTheFirstVersionsTableOptionsIsRead) {
  const StorePtr store = OpenStore();
  constexpr uint32_t kFirstBytes = 64;
  alignas(embank_table_options) uint8_t bytes[3 * kFirstBytes + sizeof(embank_table_options)];
  std::memset(bytes, 0xFF, sizeof bytes);  // nothing behind the third is looked at
  const uint64_t rows[] = {1000, 1000, 1000};
  for (uint32_t i = 0; i < 3; ++i) {
    auto* const options = reinterpret_cast<embank_table_options*>(bytes + i * kFirstBytes);
    embank_table_options_init(options, kFirstBytes);
    options->dim = 100 * (i + 1);
  }
  const auto* const first = reinterpret_cast<const embank_table_options*>(bytes);
  char old_text[1024];
  char new_text[1024];
  uint64_t needed = 0;
  ASSERT_EQ(embank_estimate(nullptr, first, rows, 3, old_text, sizeof old_text, &needed), EMBANK_OK)
      << embank_last_error();
  const embank_table_options today[] = {TableOptions(100), TableOptions(200), TableOptions(300)};
  ASSERT_EQ(embank_estimate(nullptr, today, rows, 3, new_text, sizeof new_text, &needed),
            EMBANK_OK);
  EXPECT_STREQ(old_text, new_text);
  embank_table* const table = CreateTable(store.get(), "first", *first);
  embank_table_options read = {};
  read.struct_size = sizeof read;
  ASSERT_EQ(embank_table_get_options(table, &read), EMBANK_OK);
  EXPECT_EQ(read.dim, 100u);
  EXPECT_EQ(read.max_gradient_norm, 0.0f);
  EXPECT_EQ(read.rounding, EMBANK_ROUNDING_NEAREST);
}

TEST(TableOptionsOfC, AreReadBackAndChangedByField) {
  const StorePtr store = OpenStore();
  embank_table_options options = TableOptions(3, EMBANK_OPT_ADAM);
  options.value_type = EMBANK_BF16;
  options.beta1 = 0.5f;
  options.init_b = 2.0f;
  options.expected_rows_log2 = 10;
  options.decoupled_weight_decay = 0.125f;
  options.eviction = EMBANK_EVICT_LFU;
  embank_table* const table = CreateTable(store.get(), "t", options);
  embank_table_options read = {};
  const auto expect = [&](const embank_table_options& expected) {
    read.struct_size = sizeof read;
    ASSERT_EQ(embank_table_get_options(table, &read), EMBANK_OK) << embank_last_error();
    EXPECT_EQ(std::memcmp(&read, &expected, sizeof read), 0);
  };
  expect(options);
  embank_table_options change = options;
  change.dim = 77;  // fields that are not named are not looked at
  change.epsilon = -1.0f;
  change.learning_rate = 0.5f;
  change.beta2 = options.beta2 = 0.25f;
  change.max_gradient_norm = options.max_gradient_norm = 3.0f;
  change.rounding = options.rounding = EMBANK_ROUNDING_STOCHASTIC;
  const uint32_t fields = EMBANK_SET_BETAS | EMBANK_SET_CLIPPING | EMBANK_SET_ROUNDING;
  ASSERT_EQ(embank_table_set_options(table, &change, fields), EMBANK_OK) << embank_last_error();
  expect(options);
  ASSERT_EQ(embank_table_set_options(table, &change, 0), EMBANK_OK);
  expect(options);
  // One of several fields is wrong: none is changed.
  EXPECT_EQ(embank_table_set_options(table, &change, EMBANK_SET_EPSILON | EMBANK_SET_LEARNING_RATE),
            EMBANK_INVALID_ARGUMENT);
  expect(options);
  // A struct of the first version ends before some fields, and changes the others.
  change.struct_size = 64;
  change.max_gradient_norm = 9.0f;
  EXPECT_EQ(embank_table_set_options(table, &change, EMBANK_SET_CLIPPING), EMBANK_INVALID_ARGUMENT);
  EXPECT_THAT(embank_last_error(), HasSubstr("EMBANK_SET_CLIPPING, and struct_size is 64; it must "
                                             "be at least 72"));
  EXPECT_EQ(embank_table_set_options(table, &change, EMBANK_SET_WEIGHT_DECAY),
            EMBANK_INVALID_ARGUMENT);
  expect(options);
  options.learning_rate = change.learning_rate;
  ASSERT_EQ(embank_table_set_options(table, &change, EMBANK_SET_LEARNING_RATE), EMBANK_OK);
  expect(options);
  read.struct_size = 8;
  EXPECT_EQ(embank_table_set_options(table, &read, EMBANK_SET_LEARNING_RATE),
            EMBANK_INVALID_ARGUMENT);
  read.value_type = 77;
  ASSERT_EQ(embank_table_get_options(table, &read), EMBANK_OK);
  EXPECT_EQ(read.dim, 3u);
  EXPECT_EQ(read.value_type, 77) << "wrote behind the caller's struct";
}

// Two members each, of tables with other optimizers.
TEST(TableOptionsOfC, PenaltiesAndDecayAreChangedByThemselves) {
  const StorePtr store = OpenStore();
  const auto change = [&](int32_t optimizer, uint32_t fields, auto set) {
    embank_table_options options = TableOptions(3, optimizer);
    embank_table* const table = CreateTable(store.get(), StrCat("t", optimizer), options);
    embank_table_options passed = options;
    passed.learning_rate = 0.75f;  // is not named
    set(&passed);
    set(&options);
    ASSERT_EQ(embank_table_set_options(table, &passed, fields), EMBANK_OK) << embank_last_error();
    embank_table_options read = {};
    read.struct_size = sizeof read;
    ASSERT_EQ(embank_table_get_options(table, &read), EMBANK_OK);
    EXPECT_EQ(std::memcmp(&read, &options, sizeof read), 0) << optimizer;
  };
  change(EMBANK_OPT_FTRL, EMBANK_SET_FTRL,
         [](embank_table_options* o) { o->ftrl_l1 = 0.5f, o->ftrl_l2 = 0.25f; });
  change(EMBANK_OPT_SGD, EMBANK_SET_WEIGHT_DECAY, [](embank_table_options* o) {
    o->weight_decay = 0.5f, o->decoupled_weight_decay = 0.25f;
  });
}

}  // namespace
}  // namespace embank::test::table_options_test
