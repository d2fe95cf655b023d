#include "train/dense/gemm.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <vector>

#include "base/threads/executor.h"
#include "tests/train/dense_values.h"

namespace embank::test::gemm_test {
namespace {

struct Shape {
  uint32_t m, n, k;
};

class Gemm : public testing::TestWithParam<Shape> {
 protected:
  void SetUp() override { ASSERT_TRUE(PrepareGemm().ok()); }

  // Expects result = before + the plain sum of a(i, l) b(l, j).
  template <typename A, typename B>
  void ExpectProduct(Matrix result, float before, A a, B b) {
    for (uint32_t i = 0; i < result.rows; ++i) {
      for (uint32_t j = 0; j < result.columns; ++j) {
        float sum = before;
        for (uint32_t l = 0; l < GetParam().k; ++l) sum += a(i, l) * b(l, j);
        ASSERT_EQ(result.Row(i)[j], sum) << i << ", " << j;
      }
    }
  }
};

TEST_P(Gemm, IsThePlainSumOfProducts) {
  const auto [m, n, k] = GetParam();
  Random random(m + 10 * n + 100 * k);
  for (const bool is_added : {false, true}) {
    const Accumulation accumulation = is_added ? Accumulation::kAdd : Accumulation::kReplace;
    const float before = is_added ? 3.0f : 0.0f;
    auto Result = [&, m = m, n = n] {
      OwnedMatrix result(m, n, 2);
      for (uint32_t i = 0; i < m; ++i) {
        for (float& x : result.view().Row(i)) x = 3.0f;
      }
      return result;
    };
    {
      OwnedMatrix a(m, k, 3), b(k, n, 1), result = Result();
      a.FillWhole(&random, 9), b.FillWhole(&random, 9);
      Multiply(a.view(), b.view(), accumulation, result.view());
      ExpectProduct(
          result.view(), before, [&](uint32_t i, uint32_t l) { return a.At(i, l); },
          [&](uint32_t l, uint32_t j) { return b.At(l, j); });
      result.ExpectPaddingIntact();
    }
    {
      OwnedMatrix a(m, k, 3), b(n, k, 1), result = Result();
      a.FillWhole(&random, 9), b.FillWhole(&random, 9);
      MultiplyTransposed(a.view(), b.view(), accumulation, result.view());
      ExpectProduct(
          result.view(), before, [&](uint32_t i, uint32_t l) { return a.At(i, l); },
          [&](uint32_t l, uint32_t j) { return b.At(j, l); });
      result.ExpectPaddingIntact();
    }
    {
      OwnedMatrix a(k, m, 3), b(k, n, 1), result = Result();
      a.FillWhole(&random, 9), b.FillWhole(&random, 9);
      TransposedMultiply(a.view(), b.view(), accumulation, result.view());
      ExpectProduct(
          result.view(), before, [&](uint32_t i, uint32_t l) { return a.At(l, i); },
          [&](uint32_t l, uint32_t j) { return b.At(l, j); });
      result.ExpectPaddingIntact();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Gemm,
                         testing::Values(Shape{1, 1, 1}, Shape{3, 5, 7}, Shape{16, 1, 13},
                                         Shape{1, 64, 512}, Shape{27, 27, 16}, Shape{128, 130, 129},
                                         Shape{5, 4, 0}, Shape{0, 4, 3}, Shape{4, 0, 3}));

// A BLAS whose calls take their buffers without a lock fails this in nearly every run, on two
// cores.
TEST(GemmThreads, MultiplyAtOnceAsAlone) {
  ASSERT_TRUE(PrepareGemm().ok());
  constexpr uint32_t kSize = 104, kTasks = 20000;
  Random random(7);
  OwnedMatrix a(kSize, kSize), b(kSize, kSize), alone(kSize, kSize);
  a.FillWhole(&random, 9), b.FillWhole(&random, 9);
  Multiply(a.view(), b.view(), Accumulation::kReplace, alone.view());
  std::atomic<uint32_t> differences = 0;
  MakeThreadPool(8)->ParallelFor(kTasks, [&](uint32_t) {
    OwnedMatrix result(kSize, kSize);
    Multiply(a.view(), b.view(), Accumulation::kReplace, result.view());
    if (std::memcmp(result.view().data, alone.view().data, kSize * kSize * sizeof(float)) != 0) {
      ++differences;
    }
  });
  EXPECT_EQ(differences, 0u);
}

}  // namespace
}  // namespace embank::test::gemm_test
