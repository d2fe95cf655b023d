#include "store/batch/new_rows.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "store/batch/lookup.h"
#include "tests/support/index_places.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/store_world.h"

namespace embank::test::new_rows_test {
namespace {

constexpr uint32_t kDim = 4096;  // few slots to a page, so that one more shows
constexpr uint32_t kShard = 9;

class NewRowsTest : public testing::Test {
 protected:
  // The i-th row whose hash lies in shard 9, all of them in few homes.
  RowId IdOf(uint32_t i) const { return IdAt(i % 7, i); }
  RowId IdAt(uint64_t q, uint32_t unused) const {
    const KeyHash hash = HashAt(kShard, q, unused);
    return table_->IdOf(KeyWithHash(TableHash(table_->name()), hash), hash);
  }
  KeyIndex* index() { return table_->store().index; }
  KeyIndex::Shard* shard() { return index()->shard(kShard); }
  // Makes all elements of a row `value`.
  auto FillWith(float value) const {
    return [this, value](std::byte* image) {
      const std::vector<float> values(kDim, value);
      std::memcpy(table_->layout().Vector(image), values.data(), kDim * sizeof(float));
    };
  }
  DramTier* tier() { return table_->store().tier; }
  uint64_t SlotsPerPage() const { return DramTier::SlotsPerPage(table_->layout().row_bytes); }
  bool Holds(const RowId& id) {
    uint8_t outcome = 0;
    EXPECT_TRUE(Contains(table_, {&id.key, 1}, {&outcome, 1}).ok());
    return outcome == static_cast<uint8_t>(Outcome::kFound);
  }

  StoreWorld store_;
  Table* table_ = store_.Create("t", OptionsOf(kDim));
};

TEST_F(NewRowsTest, WritesHeaderAndVectorAndCountsTheRow) {
  const RowId id = IdOf(1);
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1);
    ASSERT_TRUE(new_rows.Add(id, 5, FillWith(2.5f)));
    const Match match = index()->Find(id);
    ASSERT_TRUE(match.any());
    std::byte* const row = tier()->Row(match.location());
    const RowHeader* const header = table_->layout().Header(row);
    EXPECT_EQ(header->key, id.key);
    EXPECT_EQ(TableOf(header->identity), table_->id());
    EXPECT_FALSE(IsBeingWritten(header->identity));
    EXPECT_EQ(header->usage, PackUsage(0, 5, table_->store().heat_clock->now()));
    const std::vector<float> values(kDim, 2.5f);
    EXPECT_EQ(
        std::memcmp(table_->layout().Vector(row), values.data(), table_->layout().payload_bytes()),
        0);
    EXPECT_EQ(shard()->rows, 1u);
  }
  EXPECT_EQ(table_->rows(), 1u);
  EXPECT_TRUE(Holds(id));
}

TEST_F(NewRowsTest, GivesBackTheSlotsItDidNotUse) {
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1000);
    ASSERT_TRUE(new_rows.Add(IdOf(1), 0, FillWith(1)));
  }
  const uint64_t bytes = tier()->pool()->committed_bytes();
  std::vector<Location> rest(SlotsPerPage() * (bytes / DramTier::kPageBytes) - 1);
  EXPECT_EQ(tier()->Allocate(table_->slot_class(), rest), rest.size());
  EXPECT_EQ(tier()->pool()->committed_bytes(), bytes) << "a slot was not given back";
  tier()->Free(table_->slot_class(), rest);
}

TEST_F(NewRowsTest, TakesNoMoreSlotsThanRowsWillCome) {
  MutexLock lock(&shard()->mutex);
  NewRows new_rows(table_, shard(), 2);
  ASSERT_TRUE(new_rows.Add(IdOf(1), 0, FillWith(1)));
  std::vector<Location> rest(SlotsPerPage() - 2);
  ASSERT_EQ(tier()->Allocate(table_->slot_class(), rest), rest.size());
  EXPECT_EQ(tier()->pool()->committed_bytes(), DramTier::kPageBytes);
  tier()->Free(table_->slot_class(), rest);
}

TEST_F(NewRowsTest, WithoutMemoryAddsNothing) {
  store_.memory()->FailEveryCall(true);
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 3);
    EXPECT_FALSE(new_rows.Add(IdOf(1), 0, FillWith(1)));
    EXPECT_FALSE(new_rows.Add(IdOf(2), 0, FillWith(1)));
    EXPECT_EQ(shard()->rows, 0u);
  }
  EXPECT_EQ(table_->rows(), 0u);
  EXPECT_FALSE(Holds(IdOf(1)));
  store_.memory()->FailEveryCall(false);
  MutexLock lock(&shard()->mutex);
  NewRows new_rows(table_, shard(), 1);
  EXPECT_TRUE(new_rows.Add(IdOf(1), 0, FillWith(1)));
}

TEST_F(NewRowsTest, WithoutSpaceInTheIndexTakesNoSlot) {
  constexpr uint32_t kHomeRowsMax = 8 * kBucketEntries;
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), kHomeRowsMax);
    for (uint32_t i = 0; i < kHomeRowsMax; ++i) {
      ASSERT_TRUE(new_rows.Add(IdAt(1234, i), 0, FillWith(1)));
    }
  }
  const uint64_t bytes = tier()->pool()->committed_bytes();
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1);
    EXPECT_FALSE(new_rows.Add(IdAt(1234, kHomeRowsMax), 0, FillWith(1)));
  }
  EXPECT_EQ(table_->rows(), kHomeRowsMax);
  EXPECT_EQ(tier()->pool()->committed_bytes(), bytes);
  for (uint32_t i = 0; i < kHomeRowsMax; ++i) ASSERT_TRUE(Holds(IdAt(1234, i))) << i;
}

TEST_F(NewRowsTest, MayBeAskedForMoreThanWasAnnounced) {
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1);
    for (uint32_t i = 0; i < 5; ++i) ASSERT_TRUE(new_rows.Add(IdOf(i), 0, FillWith(1)));
  }
  EXPECT_EQ(table_->rows(), 5u);
}

TEST_F(NewRowsTest, AReusedSlotGoesOnFromTheVersionItHad) {
  const RowId first = IdOf(1);
  const RowId second = IdOf(2);
  MutexLock lock(&shard()->mutex);
  uint32_t identity = 0;
  std::byte* row = nullptr;
  {
    NewRows new_rows(table_, shard(), 1);
    ASSERT_TRUE(new_rows.Add(first, 0, FillWith(1)));
  }
  {
    FreedRows freed(table_);
    const Match match = index()->Find(first);
    row = tier()->Row(match.location());
    identity = table_->layout().Header(row)->identity;
    index()->Erase(shard(), first.hash, match);
    freed.Add(shard(), match.location());
    EXPECT_EQ(TableOf(table_->layout().Header(row)->identity), kNoTable);
  }
  EXPECT_EQ(table_->rows(), 0u);
  NewRows new_rows(table_, shard(), 1);
  ASSERT_TRUE(new_rows.Add(second, 0, FillWith(2)));
  ASSERT_EQ(tier()->Row(index()->Find(second).location()), row) << "another slot";
  EXPECT_EQ(table_->layout().Header(row)->identity, identity + 4 * kVersionStep);
}

TEST_F(NewRowsTest, CallsForTheShardsLock) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(NewRows(table_, shard(), 1).Add(IdOf(1), 0, FillWith(1)), "");
}

}  // namespace
}  // namespace embank::test::new_rows_test
