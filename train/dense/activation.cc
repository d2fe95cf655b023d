#include "train/dense/activation.h"

#include "base/check.h"
#include "base/numeric.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

EMBANK_SIMD_CLONES void Relu(uint32_t count, float* x) {
  for (uint32_t i = 0; i < count; ++i) x[i] = x[i] < 0.0f ? 0.0f : x[i];
}

EMBANK_SIMD_CLONES void ZeroWhereOff(uint32_t count, const float* __restrict y,
                                     float* __restrict g) {
  for (uint32_t i = 0; i < count; ++i) g[i] = y[i] > 0.0f ? g[i] : 0.0f;
}

}  // namespace

void ReluForward(Matrix values) {
  for (uint32_t i = 0; i < values.rows; ++i) Relu(values.columns, values.Row(i).data());
}

void ReluBackward(ConstMatrix output, Matrix gradient) {
  EMBANK_CHECK(output.HasShapeOf(gradient));
  for (uint32_t i = 0; i < output.rows; ++i) {
    ZeroWhereOff(output.columns, output.Row(i).data(), gradient.Row(i).data());
  }
}

double Sigmoid(double x) {
  // e^-|x| never overflows.
  const double e = Exponential(x < 0.0 ? x : -x);
  return x < 0.0 ? e / (1.0 + e) : 1.0 / (1.0 + e);
}

void SigmoidForward(Matrix values) {
  for (uint32_t i = 0; i < values.rows; ++i) {
    for (float& x : values.Row(i)) x = static_cast<float>(Sigmoid(static_cast<double>(x)));
  }
}

void SigmoidBackward(ConstMatrix output, Matrix gradient) {
  EMBANK_CHECK(output.HasShapeOf(gradient));
  for (uint32_t i = 0; i < output.rows; ++i) {
    const float* const y = output.Row(i).data();
    float* const g = gradient.Row(i).data();
    for (uint32_t j = 0; j < output.columns; ++j) g[j] = g[j] * (y[j] * (1.0f - y[j]));
  }
}

}  // namespace embank
