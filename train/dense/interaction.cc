#include "train/dense/interaction.h"

#include <algorithm>
#include <vector>

#include "base/check.h"
#include "train/dense/gemm.h"

namespace embank {
namespace {

// The vectors of one sample, gathered into a matrix.
void Gather(std::span<const ConstMatrix> vectors, uint32_t sample, Matrix gathered) {
  for (uint32_t v = 0; v < vectors.size(); ++v) {
    std::ranges::copy(vectors[v].Row(sample), gathered.Row(v).begin());
  }
}

void CheckVectors(std::span<const ConstMatrix> vectors, uint32_t samples, uint32_t pairs) {
  EMBANK_CHECK(vectors.size() >= 2 && PairCount(static_cast<uint32_t>(vectors.size())) == pairs);
  for (const ConstMatrix& vector : vectors) {
    EMBANK_CHECK(vector.rows == samples && vector.columns == vectors[0].columns);
  }
}

}  // namespace

void DotInteractionForward(std::span<const ConstMatrix> vectors, Matrix output) {
  CheckVectors(vectors, output.rows, output.columns);
  const auto count = static_cast<uint32_t>(vectors.size());
  const uint32_t dim = vectors[0].columns;
  std::vector<float> memory(uint64_t{count} * (dim + count));
  const Matrix gathered(memory.data(), count, dim);
  const Matrix products(memory.data() + uint64_t{count} * dim, count, count);
  for (uint32_t sample = 0; sample < output.rows; ++sample) {
    Gather(vectors, sample, gathered);
    MultiplyTransposed(gathered, gathered, Accumulation::kReplace, products);
    auto next = output.Row(sample).begin();
    for (uint32_t i = 1; i < count; ++i) next = std::copy_n(products.Row(i).begin(), i, next);
  }
}

void DotInteractionBackward(std::span<const ConstMatrix> vectors, ConstMatrix output_gradient,
                            std::span<const Matrix> gradients) {
  CheckVectors(vectors, output_gradient.rows, output_gradient.columns);
  EMBANK_CHECK(gradients.size() == vectors.size());
  const auto count = static_cast<uint32_t>(vectors.size());
  const uint32_t dim = vectors[0].columns;
  std::vector<float> memory(uint64_t{count} * (2 * dim + count));
  const Matrix gathered(memory.data(), count, dim);
  const Matrix results(gathered.data + uint64_t{count} * dim, count, dim);
  const Matrix symmetric(results.data + uint64_t{count} * dim, count, count);
  for (uint32_t sample = 0; sample < output_gradient.rows; ++sample) {
    Gather(vectors, sample, gathered);
    // The product of i and j has both gradients: that of i times j, and that of j times i.
    const float* pair = output_gradient.Row(sample).data();
    for (uint32_t i = 1; i < count; ++i) {
      for (uint32_t j = 0; j < i; ++j, ++pair) {
        symmetric.Row(i)[j] = *pair;
        symmetric.Row(j)[i] = *pair;
      }
    }
    Multiply(symmetric, gathered, Accumulation::kReplace, results);
    for (uint32_t v = 0; v < count; ++v) {
      EMBANK_CHECK(gradients[v].HasShapeOf(vectors[v]));
      std::ranges::copy(results.Row(v), gradients[v].Row(sample).begin());
    }
  }
}

}  // namespace embank
