#include "store/new_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "store/lookup.h"
#include "tests/support/inverse_mix.h"
#include "tests/support/store_world.h"

namespace embank::test {
namespace {

constexpr uint32_t kDim = 4096;  // few slots to a page, so that one more shows

class NewRowsTest : public testing::Test {
 protected:
  // The i-th row whose hash lies in shard 9.
  RowId IdOf(uint32_t i) const {
    const KeyHash hash = (uint64_t{9} << 58) | (uint64_t{i} << 30) | i;
    return table_->IdOf(KeyWithHash(TableHash(table_->name()), hash), hash);
  }
  KeyIndex::Shard* shard() { return table_->parts().index->shard(9); }
  DramTier* tier() { return table_->parts().tier; }
  uint64_t SlotsPerPage() const { return DramTier::SlotsPerPage(table_->layout().row_bytes); }
  bool Holds(const RowId& id) {
    uint8_t outcome = 0;
    EXPECT_TRUE(Contains(table_, {&id.key, 1}, {&outcome, 1}).ok());
    return outcome == static_cast<uint8_t>(Outcome::kFound);
  }

  StoreWorld store_;
  Table* table_ = store_.Create("t", OptionsOf(kDim));
};

TEST_F(NewRowsTest, WritesTheHeaderAndCountsTheRow) {
  const RowId id = IdOf(1);
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1);
    std::byte* const row = new_rows.Add(id, 5);
    ASSERT_NE(row, nullptr);
    const RowHeader* const header = table_->layout().Header(row);
    EXPECT_EQ(header->key, id.key);
    EXPECT_EQ(header->identity, table_->id()) << "version 0";
    EXPECT_EQ(header->usage, PackUsage(0, 5, table_->heat_epoch()));
    EXPECT_EQ(table_->parts().tier->Row(table_->parts().index->Find(*shard(), id)), row);
  }
  EXPECT_EQ(table_->rows(), 1u);
  EXPECT_TRUE(Holds(id));
}

TEST_F(NewRowsTest, GivesBackTheSlotsItDidNotUse) {
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1000);
    ASSERT_NE(new_rows.Add(IdOf(1), 0), nullptr);
  }
  const uint64_t bytes = tier()->committed_bytes();
  std::vector<Location> rest(SlotsPerPage() * (bytes / DramTier::kPageBytes) - 1);
  EXPECT_EQ(tier()->Allocate(table_->slot_class(), rest), rest.size());
  EXPECT_EQ(tier()->committed_bytes(), bytes) << "a slot was not given back";
  tier()->Free(table_->slot_class(), rest);
}

TEST_F(NewRowsTest, TakesNoMoreSlotsThanRowsWillCome) {
  MutexLock lock(&shard()->mutex);
  NewRows new_rows(table_, shard(), 2);
  ASSERT_NE(new_rows.Add(IdOf(1), 0), nullptr);
  std::vector<Location> rest(SlotsPerPage());
  ASSERT_EQ(tier()->Allocate(table_->slot_class(), std::span(rest).first(SlotsPerPage() - 2)),
            SlotsPerPage() - 2);
  EXPECT_EQ(tier()->committed_bytes(), DramTier::kPageBytes);
  tier()->Free(table_->slot_class(), std::span(rest).first(SlotsPerPage() - 2));
}

TEST_F(NewRowsTest, WithoutMemoryAddsNothing) {
  store_.memory()->FailEveryCall(true);
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 3);
    EXPECT_EQ(new_rows.Add(IdOf(1), 0), nullptr);
    EXPECT_EQ(new_rows.Add(IdOf(2), 0), nullptr);
    EXPECT_EQ(shard()->rows, 0u);
  }
  EXPECT_EQ(table_->rows(), 0u);
  EXPECT_FALSE(Holds(IdOf(1)));
  store_.memory()->FailEveryCall(false);
  MutexLock lock(&shard()->mutex);
  NewRows new_rows(table_, shard(), 1);
  EXPECT_NE(new_rows.Add(IdOf(1), 0), nullptr);
}

TEST_F(NewRowsTest, WithoutRoomInTheIndexTakesNoSlot) {
  constexpr uint32_t kShardRowsMax = 384;
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), kShardRowsMax);
    for (uint32_t i = 0; i < kShardRowsMax; ++i) ASSERT_NE(new_rows.Add(IdOf(i), 0), nullptr);
  }
  const uint64_t bytes = tier()->committed_bytes();
  store_.memory()->FailEveryCall(true);
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1);
    EXPECT_EQ(new_rows.Add(IdOf(kShardRowsMax), 0), nullptr);
  }
  EXPECT_EQ(table_->rows(), kShardRowsMax);
  EXPECT_EQ(tier()->committed_bytes(), bytes);
  for (uint32_t i = 0; i < kShardRowsMax; ++i) ASSERT_TRUE(Holds(IdOf(i))) << i;
}

TEST_F(NewRowsTest, MayBeAskedForMoreThanWasAnnounced) {
  {
    MutexLock lock(&shard()->mutex);
    NewRows new_rows(table_, shard(), 1);
    for (uint32_t i = 0; i < 5; ++i) ASSERT_NE(new_rows.Add(IdOf(i), 0), nullptr);
  }
  EXPECT_EQ(table_->rows(), 5u);
}

TEST_F(NewRowsTest, CallsForTheShardsLock) {
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(NewRows(table_, shard(), 1).Add(IdOf(1), 0), "");
}

}  // namespace
}  // namespace embank::test
