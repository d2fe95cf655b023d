#include "train/dense/fm.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"

namespace embank {
namespace {

void SumVectors(std::span<const ConstMatrix> vectors, uint32_t sample, std::span<float> sum) {
  std::ranges::fill(sum, 0.0f);
  for (const ConstMatrix& vector : vectors) {
    EMBANK_CHECK(vector.columns == sum.size());
    const float* const v = vector.Row(sample).data();
    for (uint32_t d = 0; d < sum.size(); ++d) sum[d] += v[d];
  }
}

}  // namespace

void FmForward(std::span<const ConstMatrix> vectors, Matrix output) {
  EMBANK_CHECK(!vectors.empty() && output.columns == 1);
  std::vector<float> sum(vectors[0].columns);
  for (uint32_t sample = 0; sample < output.rows; ++sample) {
    SumVectors(vectors, sample, sum);
    float squares_of_vectors = 0.0f;
    for (const ConstMatrix& vector : vectors) {
      for (const float x : vector.Row(sample)) squares_of_vectors += x * x;
    }
    float square_of_sum = 0.0f;
    for (const float x : sum) square_of_sum += x * x;
    output.Row(sample)[0] = 0.5f * (square_of_sum - squares_of_vectors);
  }
}

void FmBackward(std::span<const ConstMatrix> vectors, ConstMatrix output_gradient,
                std::span<const Matrix> gradients) {
  EMBANK_CHECK(!vectors.empty() && gradients.size() == vectors.size());
  EMBANK_CHECK(output_gradient.columns == 1);
  std::vector<float> sum(vectors[0].columns);
  for (uint32_t sample = 0; sample < output_gradient.rows; ++sample) {
    SumVectors(vectors, sample, sum);
    const float g = output_gradient.Row(sample)[0];
    for (size_t v = 0; v < vectors.size(); ++v) {
      EMBANK_CHECK(gradients[v].HasShapeOf(vectors[v]));
      const float* const x = vectors[v].Row(sample).data();
      float* const out = gradients[v].Row(sample).data();
      for (uint32_t d = 0; d < sum.size(); ++d) out[d] = g * (sum[d] - x[d]);
    }
  }
}

}  // namespace embank
