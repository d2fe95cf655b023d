#include "bench/run_slices.h"

#include <gtest/gtest.h>

#include <cmath>

namespace embank::run_slices_test {
namespace {

TEST(RunSlices, KeepEveryBatchWhereThereAreFew) {
  RunSlices slices;
  slices.Add({100, 1'000, 500, 10, 4});
  slices.Add({50, 0, 0, 0, 0});
  ASSERT_EQ(slices.slices().size(), 2u);
  EXPECT_DOUBLE_EQ(slices.slices()[0].LookupsPerSecond(), 1e8);
  EXPECT_DOUBLE_EQ(slices.slices()[0].GradientsPerSecond(), 2e8);
  EXPECT_DOUBLE_EQ(slices.slices()[0].HitRatio(), 0.4);
  EXPECT_TRUE(std::isnan(slices.slices()[1].LookupsPerSecond()));
  EXPECT_TRUE(std::isnan(slices.slices()[1].GradientsPerSecond()));
  EXPECT_TRUE(std::isnan(slices.slices()[1].HitRatio()));
}

TEST(RunSlices, SlicesOfALongRunAreFewEqualAndLoseNothing) {
  for (const uint64_t batches : {63, 64, 65, 128, 129, 1'000, 100'000}) {
    RunSlices slices;
    for (uint64_t i = 0; i < batches; ++i) slices.Add({i, 2 * i, 3 * i, 4 * i, i});
    ASSERT_LE(slices.slices().size(), RunSlices::kSlicesMax);
    ASSERT_GT(slices.slices().size(), RunSlices::kSlicesMax / 2) << batches;
    RunSlice sum;
    for (const RunSlice& slice : slices.slices()) {
      sum.positions += slice.positions;
      sum.lookup_ns += slice.lookup_ns;
      sum.gradients_ns += slice.gradients_ns;
      sum.accesses += slice.accesses;
      sum.hits += slice.hits;
    }
    const uint64_t all = batches * (batches - 1) / 2;
    EXPECT_EQ(sum.positions, all);
    EXPECT_EQ(sum.lookup_ns, 2 * all);
    EXPECT_EQ(sum.gradients_ns, 3 * all);
    EXPECT_EQ(sum.accesses, 4 * all);
    EXPECT_EQ(sum.hits, all);
  }
}

TEST(RunSlices, HaveEquallyManyBatchesButTheLast) {
  RunSlices slices;
  for (uint64_t i = 0; i < 1'000; ++i) slices.Add({1, 1, 1, 1, 1});
  ASSERT_EQ(slices.slices().size(), 63u);
  for (size_t i = 0; i + 1 < 63; ++i) EXPECT_EQ(slices.slices()[i].positions, 16u);
  EXPECT_EQ(slices.slices().back().positions, 8u);
}

}  // namespace
}  // namespace embank::run_slices_test
