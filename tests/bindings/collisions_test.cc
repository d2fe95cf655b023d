// Keys whose hashes agree in most bits, which no random suite meets: docs/arithmetic.md says how a
// key is hashed, and the mixer can be run backwards.
#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "base/str_cat.h"
#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/oracle.h"
#include "tests/support/oracle_numbers.h"
#include "tests/support/oracle_packed.h"
#include "tests/support/packed_feature.h"
#include "tests/support/row_buffer.h"

namespace embank::test::collisions_test {
namespace {

constexpr uint64_t kSeed = 1;

// Keys of a table whose hashes differ in bits 24 to 39 only: the same range, the same home in any
// array of up to 2^18 buckets per shard, and the same low bits.
std::vector<uint64_t> CollidingKeys(const std::string& table, uint64_t high, uint64_t n) {
  std::vector<uint64_t> keys;
  for (uint64_t i = 0; i < n; ++i) {
    uint64_t hash = (high << 40) | (i << 24) | 0xABCDEF;
    keys.push_back(KeyWithHash(oracle::TableHash(table), hash));
    EXPECT_EQ(oracle::Mix(keys.back() ^ oracle::TableHash(table)), hash);
  }
  return keys;
}

class Collisions : public testing::Test {
 protected:
  Collisions() {
    embank_store_options options = StoreOptions();
    options.seed = kSeed;
    store_ = OpenStore(options);
  }
  Twin Create(const std::string& name) {
    embank_table_options options = TableOptions(3, EMBANK_OPT_ADAGRAD);
    options.initializer = EMBANK_INIT_UNIFORM;
    options.init_b = 1.0f;
    return CreateTwin(store_.get(), kSeed, name, options);
  }

  static void Lookup(Twin* twin, const std::vector<uint64_t>& keys, int32_t missing) {
    RowBuffer actual(keys.size(), 12);
    RowBuffer expected = actual;
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    EXPECT_EQ(embank_lookup(twin->table, keys.data(), keys.size(), missing, actual.data(), 0,
                            outcomes.data()),
              EMBANK_OK);
    // A place of the index has space for so many keys; the others are refused, by name.
    twin->oracle.Lookup(keys.data(), keys.size(), missing, expected.data(), 0, right.data(),
                        outcomes.data());
    EXPECT_EQ(outcomes, right);
    EXPECT_TRUE(actual == expected);
  }
  static void Step(Twin* twin, const std::vector<uint64_t>& keys) {
    std::vector<float> gradients(keys.size() * 3);
    for (size_t i = 0; i < gradients.size(); ++i) gradients[i] = static_cast<float>(i % 7) - 3;
    std::vector<uint8_t> outcomes(keys.size());
    std::vector<uint8_t> right(keys.size());
    EXPECT_EQ(embank_apply_gradients(twin->table, keys.data(), keys.size(), gradients.data(), 0,
                                     outcomes.data()),
              EMBANK_OK);
    twin->oracle.ApplyGradients(keys.data(), keys.size(), gradients.data(), 0, right.data());
    EXPECT_EQ(outcomes, right);
  }
  static void Erase(Twin* twin, const std::vector<uint64_t>& keys) {
    EXPECT_EQ(embank_erase(twin->table, keys.data(), keys.size(), nullptr), EMBANK_OK);
    twin->oracle.Erase(keys.data(), keys.size(), nullptr);
  }

  StorePtr store_;
};

// In the middle of the hashes, at their end and at their begin.
TEST_F(Collisions, KeysThatDifferInFewHashBitsAreKeptApart) {
  for (uint64_t high : {uint64_t{0x5A5A5A}, uint64_t{0xFFFFFF}, uint64_t{0}}) {
    Twin twin = Create(StrCat("t", high));
    std::vector<uint64_t> all = CollidingKeys(twin.oracle.name(), high, 600);
    std::vector<uint64_t> present(all.begin(), all.begin() + 500);
    Lookup(&twin, present, EMBANK_MISSING_CREATE);
    Lookup(&twin, all, EMBANK_MISSING_ZERO);
    Step(&twin, present);
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
    std::vector<uint64_t> every_third;
    for (size_t i = 0; i < present.size(); i += 3) every_third.push_back(present[i]);
    Erase(&twin, every_third);
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
    Lookup(&twin, all, EMBANK_MISSING_CREATE);
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
    Erase(&twin, all);
    EXPECT_EQ(RowCount(twin.table), 0u);
  }
}

// Most rows are not where the index is looked at first. The second feature of a table is summed
// from the slots of its rows; in the second round, each with its weight.
TEST_F(Collisions, RowsFarFromTheirHomesAreSummedAndCounted) {
  embank_table_options options = TableOptions(16, EMBANK_OPT_ADAGRAD);
  options.initializer = EMBANK_INIT_UNIFORM;
  options.init_b = 1.0f;
  Twin twin = CreateTwin(store_.get(), kSeed, "sums", options);
  oracle::Feature feature;
  feature.pooling = EMBANK_POOL_SUM;
  feature.keys = CollidingKeys("sums", 0x5A5A5A, 50);
  for (uint64_t begin = 0; begin <= 50; begin += 5) feature.offsets.push_back(begin);
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 50 * round; ++i) feature.weights.push_back(static_cast<float>(i) - 7.5f);
    const PassedFeature passed(feature);
    std::vector<uint8_t> expected(10 * 64);
    RowBuffer sums[] = {RowBuffer(10, 64), RowBuffer(10, 64)};
    const embank_feature features[] = {passed.Of(twin.table, sums[0].data(), 0),
                                       passed.Of(twin.table, sums[1].data(), 0)};
    ASSERT_EQ(embank_lookup_packed(features, 2, EMBANK_MISSING_CREATE, nullptr), EMBANK_OK)
        << embank_last_error();
    for (const RowBuffer& of : sums) {
      std::vector<uint8_t> outcomes;
      LookUpFeature(&twin.oracle, feature, EMBANK_MISSING_CREATE, &expected, &outcomes);
      for (uint64_t bag = 0; bag < 10; ++bag) {
        ASSERT_EQ(std::memcmp(of.row(bag), &expected[bag * 64], 64), 0) << "bag " << bag;
      }
    }
    EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  }
}

// Names found by search: key 0 of one table and key 0 of the other have hashes with equal upper 16
// and lower 24 bits.
TEST_F(Collisions, OneKeyOfTwoTablesIsTwoRows) {
  const std::pair<std::string, std::string> pairs[] = {{"t570544", "t589079"},
                                                       {"t1742729", "t2532255"}};
  for (const auto& [first_name, second_name] : pairs) {
    uint64_t difference =
        oracle::Mix(oracle::TableHash(first_name)) ^ oracle::Mix(oracle::TableHash(second_name));
    ASSERT_EQ(difference & 0xFFFF000000FFFFFF, 0u);
    Twin first = Create(first_name);
    Twin second = Create(second_name);
    Lookup(&first, {0}, EMBANK_MISSING_CREATE);
    Lookup(&second, {0}, EMBANK_MISSING_SKIP);
    Lookup(&second, {0}, EMBANK_MISSING_CREATE);
    Step(&first, {0});
    EXPECT_EQ(Difference(first.table, first.oracle), "");
    EXPECT_EQ(Difference(second.table, second.oracle), "");
    Erase(&first, {0});
    EXPECT_EQ(Difference(second.table, second.oracle), "");
  }
}

// Far more keys than one place of the index has space for: some are refused, nothing else suffers.
TEST_F(Collisions, AFloodedPlaceRefusesByNameAndKeepsAllElse) {
  Twin twin = Create("t");
  std::vector<uint64_t> others(20'000);
  for (size_t i = 0; i < others.size(); ++i) others[i] = i;
  std::vector<uint64_t> flood = CollidingKeys("t", 0xFFFFFF, 5000);
  Lookup(&twin, others, EMBANK_MISSING_CREATE);
  Lookup(&twin, flood, EMBANK_MISSING_CREATE);
  const uint64_t kept = RowCount(twin.table) - others.size();
  EXPECT_GE(kept, 50u);
  EXPECT_LT(kept, flood.size());
  // The index does not grow for keys that have no place in it either.
  EXPECT_LT(JsonNumber(MemoryReport(store_.get()), "index"), 16e6);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  Erase(&twin, others);
  Lookup(&twin, flood, EMBANK_MISSING_ZERO);
  EXPECT_EQ(Difference(twin.table, twin.oracle), "");
  EXPECT_EQ(embank_lookup(twin.table, flood.data(), flood.size(), EMBANK_MISSING_CREATE,
                          RowBuffer(flood.size(), 12).data(), 0, nullptr),
            EMBANK_RESOURCE_EXHAUSTED);
  EXPECT_THAT(embank_last_error(), testing::HasSubstr("keys with nearly the same hash"));
}

}  // namespace
}  // namespace embank::test::collisions_test
