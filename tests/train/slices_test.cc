#include "train/dense/slices.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

#include "tests/support/random.h"
#include "tests/support/simulated_executor.h"

namespace embank::test::slices_test {
namespace {

TEST(Slices, CutABatchIntoEqualParts) {
  for (const uint32_t samples : {0u, 1u, 7u, 8u, 1023u, 4'294'967'295u}) {
    for (const uint32_t slices : {1u, 3u, 8u}) {
      uint32_t next = 0;
      for (uint32_t slice = 0; slice < slices; ++slice) {
        const SampleRange range = SliceOf(samples, slices, slice);
        EXPECT_EQ(range.begin, next);
        const uint32_t size = range.end - range.begin;
        EXPECT_TRUE(size == samples / slices || size == samples / slices + 1) << size;
        next = range.end;
      }
      EXPECT_EQ(next, samples);
    }
  }
}

// Values whose sum depends on the order of additions.
std::vector<float> RoughValues(uint64_t count) {
  Random random(29);
  std::vector<float> values(count);
  for (float& x : values) x = random.Signed() * (random.OneIn(2) ? 1e6f : 1.0f);
  return values;
}

TEST(Slices, AreAddedAsABalancedTree) {
  constexpr uint64_t kSize = 9'001;
  const std::vector<float> before = RoughValues(8 * kSize);
  std::vector<float> arrays = before;
  const std::unique_ptr<Executor> executor = MakeThreadPool(2);
  SumSlices(executor.get(), 8, arrays);
  uint64_t different = 0;
  for (uint64_t i = 0; i < kSize; ++i) {
    auto x = [&](uint64_t slice) { return before[slice * kSize + i]; };
    ASSERT_EQ(arrays[i], ((x(0) + x(1)) + (x(2) + x(3))) + ((x(4) + x(5)) + (x(6) + x(7))));
    const float in_order = x(0) + x(1) + x(2) + x(3) + x(4) + x(5) + x(6) + x(7);
    different += arrays[i] != in_order ? 1 : 0;
  }
  EXPECT_GT(different, kSize / 4);  // otherwise the values would not tell the orders apart
}

TEST(Slices, MayBeAnyNumber) {
  const std::vector<float> x = RoughValues(7);
  const std::unique_ptr<Executor> executor = MakeThreadPool(1);
  std::vector<float> seven = x, three(x.begin(), x.begin() + 3), one(x.begin(), x.begin() + 1);
  SumSlices(executor.get(), 7, seven);
  EXPECT_EQ(seven[0], ((x[0] + x[1]) + (x[2] + x[3])) + ((x[4] + x[5]) + x[6]));
  SumSlices(executor.get(), 3, three);
  EXPECT_EQ(three[0], (x[0] + x[1]) + x[2]);
  SumSlices(executor.get(), 1, one);
  EXPECT_EQ(one[0], x[0]);
}

TEST(Slices, HaveTheSameSumForAnyOrderOfThreads) {
  constexpr uint64_t kSize = 50'000;
  const std::vector<float> before = RoughValues(8 * kSize);
  std::vector<float> expected = before;
  SumSlices(MakeThreadPool(1).get(), 8, expected);
  for (const uint32_t threads : {2u, 3u, 8u}) {
    std::vector<float> arrays = before;
    SumSlices(MakeThreadPool(threads).get(), 8, arrays);
    EXPECT_EQ(arrays, expected) << threads;
  }
  for (const uint64_t seed : {1u, 2u, 3u}) {
    std::vector<float> arrays = before;
    SimulatedExecutor executor(seed);
    SumSlices(&executor, 8, arrays);
    EXPECT_EQ(arrays, expected) << seed;
  }
}

TEST(Slices, TellWhetherAllSumsAreFinite) {
  constexpr uint64_t kSize = 9'001;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  constexpr float kMax = std::numeric_limits<float>::max();
  const std::unique_ptr<Executor> executor = MakeThreadPool(2);
  const std::vector<float> before = RoughValues(3 * kSize);
  for (const uint64_t at : {uint64_t{0}, kSize / 2, kSize - 1}) {
    std::vector<float> arrays = before;
    EXPECT_TRUE(SumSlices(executor.get(), 3, arrays));
    arrays = before;
    arrays[kSize + at] = kNan;
    EXPECT_FALSE(SumSlices(executor.get(), 3, arrays)) << at;
    arrays = before;
    arrays[at] = arrays[2 * kSize + at] = kMax;  // finite, and their sum is not
    EXPECT_FALSE(SumSlices(executor.get(), 3, arrays)) << at;
  }
}

TEST(Slices, AddOneValueOfEachByTheSameTree) {
  const std::vector<double> x = {1e16, 1.0, -1e16, 1.0, 3.0};
  EXPECT_EQ(SumSlices(x), ((x[0] + x[1]) + (x[2] + x[3])) + x[4]);
}

}  // namespace
}  // namespace embank::test::slices_test
