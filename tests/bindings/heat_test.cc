// Heat: the exact, ageing counter of docs/arithmetic.md. Ageing needs 2^20 lookups per epoch, so
// these tests use large batches of narrow rows.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "bindings/c/embank.h"
#include "tests/support/c_api.h"
#include "tests/support/oracle.h"

namespace embank::test::heat_test {
namespace {

constexpr uint64_t kEpochPositions = 1 << 20;
constexpr uint64_t kHot = 1;
constexpr uint64_t kCold = 2;

class Heat : public testing::Test {
 protected:
  Heat()
      : store_(OpenStore()),
        twin_(CreateTwin(store_.get(), StoreOptions().seed, "t", TableOptions(1))),
        row_(kEpochPositions) {}

  // Looks keys up in one batch, on both sides.
  void LookUp(const std::vector<uint64_t>& keys) {
    ASSERT_EQ(embank_lookup(twin_.table, keys.data(), keys.size(), EMBANK_MISSING_CREATE,
                            row_.data(), 0, nullptr),
              EMBANK_OK)
        << embank_last_error();
    twin_.oracle.Lookup(keys.data(), keys.size(), EMBANK_MISSING_CREATE, row_.data(), 0, nullptr);
  }
  void LookUp(uint64_t key, uint64_t times) { LookUp(std::vector<uint64_t>(times, key)); }
  uint32_t Of(uint64_t key) {
    uint32_t heat = 12345;
    EXPECT_EQ(embank_get_heat(twin_.table, &key, 1, &heat, nullptr), EMBANK_OK);
    return heat;
  }
  void ExpectSame() { EXPECT_EQ(Difference(twin_.table, twin_.oracle), ""); }

  StorePtr store_;
  Twin twin_;
  std::vector<float> row_;
};

TEST_F(Heat, CountsEachPositionThatIsAnsweredAndNothingElse) {
  LookUp(kHot, 5);
  EXPECT_EQ(Of(kHot), 5u);
  float value = 1;
  uint8_t outcome = 0;
  EXPECT_EQ(embank_upsert(twin_.table, &kHot, 1, &value, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(embank_contains(twin_.table, &kHot, 1, &outcome), EMBANK_OK);
  EXPECT_EQ(embank_prefetch(twin_.table, &kHot, 1), EMBANK_OK);
  ScanAll(twin_.table, 4, 10);
  EXPECT_EQ(Of(kHot), 5u);
  for (int32_t missing = EMBANK_MISSING_DEFAULT; missing <= EMBANK_MISSING_SKIP; ++missing) {
    EXPECT_EQ(embank_lookup(twin_.table, &kHot, 1, missing, &value, 0, nullptr), EMBANK_OK);
    EXPECT_EQ(embank_lookup(twin_.table, &kCold, 1, missing, &value, 0, nullptr), EMBANK_OK);
  }
  EXPECT_EQ(Of(kHot), 8u);
  EXPECT_EQ(embank_upsert(twin_.table, &kCold, 1, &value, 0, nullptr), EMBANK_OK);
  EXPECT_EQ(Of(kCold), 0u);
  EXPECT_EQ(embank_erase(twin_.table, &kHot, 1, nullptr), EMBANK_OK);
  EXPECT_EQ(Of(kHot), 0u);
  EXPECT_EQ(embank_lookup(twin_.table, &kHot, 1, EMBANK_MISSING_CREATE, &value, 0, nullptr),
            EMBANK_OK);
  EXPECT_EQ(Of(kHot), 1u) << "an erased row left its heat behind";
}

// Unless it skips missing rows, a lookup of few keys reads the groups of 16 keys before the first
// missing row in one pass, and the others in another one.
TEST_F(Heat, IsCountedOnceWhereverTheFirstRowIsMissing) {
  uint64_t next_key = 1000;
  for (const size_t count : {1u, 2u, 15u, 16u, 17u, 33u, 64u, 65u}) {
    for (const size_t missing : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, count - 1, count}) {
      for (int32_t rule = EMBANK_MISSING_CREATE; rule <= EMBANK_MISSING_SKIP; ++rule) {
        std::vector<uint64_t> keys(count);
        std::iota(keys.begin(), keys.end(), next_key);
        next_key += count;
        LookUp(keys);
        if (missing < count) {
          EXPECT_EQ(embank_erase(twin_.table, &keys[missing], 1, nullptr), EMBANK_OK);
          twin_.oracle.Erase(&keys[missing], 1, nullptr);
        }
        std::vector<float> rows(count, 7.0f), expected_rows(count, 7.0f);
        std::vector<uint8_t> outcomes(count), expected_outcomes(count);
        ASSERT_EQ(
            embank_lookup(twin_.table, keys.data(), count, rule, rows.data(), 0, outcomes.data()),
            EMBANK_OK);
        twin_.oracle.Lookup(keys.data(), count, rule, expected_rows.data(), 0,
                            expected_outcomes.data());
        ASSERT_EQ(outcomes, expected_outcomes) << count << " keys, missing " << missing;
        ASSERT_EQ(rows, expected_rows) << count << " keys, missing " << missing;
        ASSERT_EQ(Difference(twin_.table, twin_.oracle), "") << count << ", missing " << missing;
      }
    }
  }
}

TEST_F(Heat, HalvesWithEachEpoch) {
  LookUp(kCold, 1000);
  LookUp(kHot, kEpochPositions - 1001);
  EXPECT_EQ(Of(kCold), 1000u);
  LookUp(kHot, 1);  // the position that completes the epoch
  EXPECT_EQ(Of(kCold), 500u);
  EXPECT_EQ(Of(kHot), (kEpochPositions - 1000) / 2);
  LookUp(kCold, 1);
  EXPECT_EQ(Of(kCold), 501u);
  LookUp(kHot, kEpochPositions - 1);
  EXPECT_EQ(Of(kCold), 250u);
  ExpectSame();
}

TEST_F(Heat, SaturatesAt1048575) {
  LookUp(kHot, kEpochPositions - 2);
  EXPECT_EQ(Of(kHot), 1048574u);
  LookUp(kHot, 1);
  EXPECT_EQ(Of(kHot), 1048575u);
  LookUp(kHot, kEpochPositions);  // 2^20 - 1 are counted already: ages after this batch
  EXPECT_EQ(Of(kHot), 1048575u / 2);
  ExpectSame();
}

TEST_F(Heat, OnlyTheEndOfABatchAges) {
  LookUp(kCold, 64);
  for (int i = 0; i < 3; ++i) LookUp(kHot, kEpochPositions);
  EXPECT_EQ(Of(kCold), 8u);
  for (int i = 0; i < 4; ++i) LookUp(kHot, kEpochPositions);
  EXPECT_EQ(Of(kCold), 0u);
  ExpectSame();
}

TEST_F(Heat, AllTablesOfAStoreAgeTogether) {
  embank_table* const other = CreateTable(store_.get(), "other", TableOptions(1));
  std::vector<uint64_t> keys(40, kCold);
  ASSERT_EQ(embank_lookup(other, keys.data(), keys.size(), EMBANK_MISSING_CREATE, row_.data(), 0,
                          nullptr),
            EMBANK_OK);
  LookUp(kHot, kEpochPositions - 41);
  const auto heat_of_other = [&] {
    uint32_t heat = 12345;
    EXPECT_EQ(embank_get_heat(other, &kCold, 1, &heat, nullptr), EMBANK_OK);
    return heat;
  };
  EXPECT_EQ(heat_of_other(), 40u);
  LookUp(kHot, 1);
  EXPECT_EQ(heat_of_other(), 20u);
  EXPECT_EQ(Of(kHot), (kEpochPositions - 40) / 2);
}

}  // namespace
}  // namespace embank::test::heat_test
