#include "train/dense/linear.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"
#include "base/hash.h"
#include "base/numeric.h"
#include "base/random.h"
#include "base/simd_clones.h"
#include "train/dense/gemm.h"

namespace embank {
namespace {

EMBANK_SIMD_CLONES void AddRow(uint32_t count, const float* __restrict row,
                               float* __restrict sums) {
  for (uint32_t i = 0; i < count; ++i) sums[i] += row[i];
}

void SumRows(ConstMatrix rows, std::span<float> sums) {
  std::ranges::fill(sums, 0.0f);
  for (uint32_t i = 0; i < rows.rows; ++i) AddRow(rows.columns, rows.Row(i).data(), sums.data());
}

void DrawNormal(CounterRandom random, uint64_t first, double deviation, std::span<float> values) {
  for (uint64_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(deviation * NormalQuantile(random.UnitDouble(first + i)));
  }
}

}  // namespace

void LinearForward(ConstMatrix input, ConstMatrix weights, std::span<const float> bias,
                   Matrix output) {
  EMBANK_CHECK(bias.size() == weights.rows);
  for (uint32_t i = 0; i < output.rows; ++i) {
    std::copy(bias.begin(), bias.end(), output.Row(i).begin());
  }
  MultiplyTransposed(input, weights, Accumulation::kAdd, output);
}

void LinearBackward(ConstMatrix input, ConstMatrix weights, ConstMatrix output_gradient,
                    const LinearGradients& gradients) {
  EMBANK_CHECK(gradients.weights.HasShapeOf(weights));
  EMBANK_CHECK(gradients.bias.size() == weights.rows);
  TransposedMultiply(output_gradient, input, Accumulation::kReplace, gradients.weights);
  SumRows(output_gradient, gradients.bias);
  if (gradients.input.data == nullptr) return;
  EMBANK_CHECK(gradients.input.HasShapeOf(input));
  Multiply(output_gradient, weights, Accumulation::kReplace, gradients.input);
}

void InitializeLinear(uint64_t seed, Matrix weights, std::span<float> bias) {
  EMBANK_CHECK(weights.rows == bias.size() && weights.rows > 0);
  const CounterRandom random(Mix(seed + kGoldenRatio));
  const auto outputs = static_cast<double>(weights.rows);
  const double deviation = std::sqrt(2.0 / (outputs + static_cast<double>(weights.columns)));
  for (uint32_t i = 0; i < weights.rows; ++i) {
    DrawNormal(random, uint64_t{i} * weights.columns, deviation, weights.Row(i));
  }
  DrawNormal(random, uint64_t{weights.rows} * weights.columns, std::sqrt(1.0 / outputs), bias);
}

}  // namespace embank
