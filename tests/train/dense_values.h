// Matrices for tests of dense layers: whole numbers, whose sums and products float32 computes
// exactly in any order, and gradients by differences.
#ifndef EMBANK_TESTS_TRAIN_DENSE_VALUES_H_
#define EMBANK_TESTS_TRAIN_DENSE_VALUES_H_

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tests/support/random.h"
#include "train/dense/tensor.h"

namespace embank::test {

// A matrix with its memory. Rows are `padding` floats further apart than they are wide, and the
// padding holds a number that no result may have or change.
class OwnedMatrix {
 public:
  static constexpr float kPadding = -12345.0f;

  OwnedMatrix(uint32_t rows, uint32_t columns, uint32_t padding = 0)
      : rows_(rows),
        columns_(columns),
        stride_(columns + padding),
        values_(uint64_t{rows} * stride_ + 1, kPadding) {}

  Matrix view() { return {values_.data(), rows_, columns_, stride_}; }
  float& At(uint32_t row, uint32_t column) { return view().Row(row)[column]; }

  // Fills it with whole numbers from -limit to limit.
  OwnedMatrix& FillWhole(Random* random, uint64_t limit) {
    return Fill([&] {
      return static_cast<float>(random->Below(2 * limit + 1)) - static_cast<float>(limit);
    });
  }
  // Fills it with numbers in (-1, 1).
  OwnedMatrix& FillSigned(Random* random) {
    return Fill([&] { return random->Signed(); });
  }

  void ExpectPaddingIntact() {
    for (uint32_t i = 0; i < rows_; ++i) {
      for (uint32_t j = columns_; j < stride_; ++j) {
        ASSERT_EQ(values_[uint64_t{i} * stride_ + j], kPadding) << "row " << i;
      }
    }
  }

 private:
  template <typename Draw>
  OwnedMatrix& Fill(Draw draw) {
    for (uint32_t i = 0; i < rows_; ++i) {
      for (float& x : view().Row(i)) x = draw();
    }
    return *this;
  }

  uint32_t rows_, columns_, stride_;
  std::vector<float> values_;
};

// Sum of values times weights: a loss whose gradient by the values is `weights`.
inline double WeightedSum(ConstMatrix values, ConstMatrix weights) {
  double sum = 0.0;
  for (uint32_t i = 0; i < values.rows; ++i) {
    for (uint32_t j = 0; j < values.columns; ++j) {
      sum += static_cast<double>(values.Row(i)[j]) * static_cast<double>(weights.Row(i)[j]);
    }
  }
  return sum;
}

// Expects the central difference of `loss` by each value of `argument` to be near `gradient`.
inline void ExpectDifferences(Matrix argument, ConstMatrix gradient,
                              const std::function<double()>& loss, double tolerance,
                              float step = 0x1p-6f) {
  ASSERT_TRUE(argument.HasShapeOf(gradient));
  for (uint32_t i = 0; i < argument.rows; ++i) {
    for (uint32_t j = 0; j < argument.columns; ++j) {
      float& x = argument.Row(i)[j];
      const float before = x;
      x = before + step;
      const double above = loss();
      x = before - step;
      const double below = loss();
      x = before;
      EXPECT_NEAR(gradient.Row(i)[j], (above - below) / (2.0 * static_cast<double>(step)),
                  tolerance)
          << i << ", " << j;
    }
  }
}

}  // namespace embank::test

#endif  // EMBANK_TESTS_TRAIN_DENSE_VALUES_H_
