#include "store/table/pins.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/support/random.h"

namespace embank::test::pins_test {
namespace {

constexpr uint32_t kRowBytes = 100;

TEST(Pins, OutlastTheirBatches) {
  for (const uint32_t batches : {0u, 1u, 72u, Pins::kBatchesMax}) {
    MemoryBudget budget(1000);
    Pins pins(&budget, kRowBytes, batches);
    const Pins::Mark pin = pins.Add();
    for (uint32_t batch = 0; batch < (batches == 0 ? Pins::kBatches : batches); ++batch) {
      EXPECT_TRUE(pins.IsCurrent(pin)) << batch;
      EXPECT_EQ(budget.used_bytes(), kRowBytes) << batch;
      pins.EndBatch();
    }
    EXPECT_FALSE(pins.IsCurrent(pin)) << batches;
    EXPECT_EQ(budget.used_bytes(), 0u) << batches;
    EXPECT_FALSE(pins.IsCurrent(Pins::kNone));
  }
}

TEST(Pins, HaveABudgetThatTheyGiveBackOnce) {
  MemoryBudget budget(2 * kRowBytes + 50);
  Pins pins(&budget, kRowBytes);
  const Pins::Mark first = pins.Add();
  EXPECT_NE(pins.Add(), Pins::kNone);
  EXPECT_EQ(pins.Add(), Pins::kNone);
  pins.Release(first);
  EXPECT_EQ(budget.used_bytes(), kRowBytes);
  EXPECT_NE(pins.Add(), Pins::kNone);
  EXPECT_EQ(pins.Add(), Pins::kNone);
  for (uint32_t batch = 0; batch < Pins::kBatches; ++batch) pins.EndBatch();
  EXPECT_EQ(budget.used_bytes(), 0u);
  pins.Release(first);
  EXPECT_EQ(budget.used_bytes(), 0u) << "a pin that has lapsed";
}

TEST(Pins, PinsOfRowsThatWereThereLeaveHalfToOthers) {
  MemoryBudget budget(4 * kRowBytes);
  Pins pins(&budget, kRowBytes);
  const Pins::Mark first = pins.Renew(Pins::kNone);
  EXPECT_NE(first, Pins::kNone);
  EXPECT_EQ(pins.Renew(first), first) << "it has just begun";
  EXPECT_NE(pins.Renew(Pins::kNone), Pins::kNone);
  EXPECT_EQ(pins.Renew(Pins::kNone), Pins::kNone);
  const Pins::Mark third = pins.Add();
  EXPECT_NE(third, Pins::kNone);
  EXPECT_NE(pins.Add(), Pins::kNone);
  EXPECT_EQ(pins.Add(), Pins::kNone);
  EXPECT_EQ(pins.Renew(third), third);
  pins.EndBatch();
  EXPECT_EQ(pins.Renew(third), third) << "what stands is not given up";
  EXPECT_TRUE(pins.IsCurrent(third));
}

TEST(Pins, BeginAnewWhenTheyAreRenewed) {
  MemoryBudget budget(0);
  Pins pins(&budget, kRowBytes);
  Pins::Mark pin = pins.Add();
  for (uint32_t batch = 0; batch < 3 * Pins::kBatches; ++batch) {
    pins.EndBatch();
    pin = pins.Renew(pin);
    ASSERT_TRUE(pins.IsCurrent(pin));
    ASSERT_EQ(budget.used_bytes(), kRowBytes);
  }
}

// The budget is the store's: memory that one table has pinned is not there for another.
TEST(Pins, PinsOfAllTablesShareABudget) {
  MemoryBudget budget(2 * kRowBytes);
  Pins one(&budget, kRowBytes);
  Pins other(&budget, 2 * kRowBytes);
  const Pins::Mark pin = one.Add();
  EXPECT_EQ(other.Add(), Pins::kNone);
  one.Release(pin);
  EXPECT_NE(other.Add(), Pins::kNone);
}

// Beside a list of all pins, over more batches than marks can tell apart.
TEST(Pins, AgreeWithAList) {
  MemoryBudget budget(50 * kRowBytes);
  Pins pins(&budget, kRowBytes);
  struct Pin {
    Pins::Mark mark;
    uint32_t batch;
  };
  std::vector<Pin> list;
  Random random(1);
  uint64_t refused = 0;
  // Budgets that are not used hold the count of batches: here it goes on in every step.
  for (uint32_t batch = 0; batch < 40'000; ++batch) {
    for (uint64_t i = random.Between(1, 12); i > 0; --i) {
      const Pins::Mark mark = pins.Add();
      ASSERT_EQ(mark == Pins::kNone, list.size() == 50);
      refused += mark == Pins::kNone ? 1 : 0;
      if (mark != Pins::kNone) list.push_back({mark, batch});
    }
    while (list.size() > 1 && random.OneIn(2)) {
      const size_t i = random.Below(list.size());
      pins.Release(list[i].mark);
      list[i] = list.back();
      list.pop_back();
    }
    ASSERT_EQ(budget.used_bytes(), list.size() * kRowBytes);
    pins.EndBatch();
    for (const Pin& pin : list) {
      ASSERT_EQ(pins.IsCurrent(pin.mark), batch + 1 - pin.batch < Pins::kBatches) << batch;
    }
    std::erase_if(list, [&](const Pin& pin) { return batch + 1 - pin.batch >= Pins::kBatches; });
  }
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace embank::test::pins_test
