#include "train/dense/interaction.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "base/check.h"
#include "base/simd_clones.h"

namespace embank {
namespace {

// Products are added lane by lane: a row of a sample's vectors, or of its pairs, is padded to a
// multiple of so many floats. A library's product of so small matrices takes longer to call than to
// compute.
constexpr uint32_t kLanes = 16;
using Lanes = float __attribute__((vector_size(kLanes * sizeof(float))));

uint32_t Padded(uint32_t floats) { return (floats + kLanes - 1) / kLanes * kLanes; }

[[gnu::always_inline]] inline void Load(const float* from, Lanes* to) {
  std::memcpy(to, from, sizeof *to);
}
[[gnu::always_inline]] inline void Store(const Lanes& from, float* to) {
  std::memcpy(to, &from, sizeof from);
}

// So many rows of a result are summed at once: they share what is loaded.
constexpr uint32_t kTileRows = 4;

// `columns` has value d of all vectors in row d. The products of vector i and those before it go to
// `products`, one row behind the other, and up to kLanes - 1 floats behind the last one are
// overwritten. `tile` is scratch of kTileRows rows.
EMBANK_SIMD_CLONES void MultiplyPairs(uint32_t count, uint32_t dim, const float* columns,
                                      float* tile, float* products) {
  const uint32_t stride = Padded(count);
  for (uint32_t first = 0; first < count; first += kTileRows) {
    for (uint32_t j = 0; j < std::min(first + kTileRows, count); j += kLanes) {
      Lanes sums[kTileRows] = {};
      const float* column = columns;
      for (uint32_t d = 0; d < dim; ++d, column += stride) {
        Lanes others;
        Load(column + j, &others);
        for (uint32_t r = 0; r < kTileRows; ++r) sums[r] += column[first + r] * others;
      }
      for (uint32_t r = 0; r < kTileRows; ++r) Store(sums[r], tile + uint64_t{r} * stride + j);
    }
    for (uint32_t i = first; i < std::min(first + kTileRows, count); products += i, ++i) {
      const float* const row = tile + uint64_t{i - first} * stride;
      for (uint32_t j = 0; j < i; j += kLanes) {
        std::memcpy(products + j, row + j, kLanes * sizeof(float));
      }
    }
  }
}

// The gradients of some vectors: each is the sum of the others, times the gradient of their pair.
template <uint32_t kRows>
[[gnu::always_inline]] inline void AddOthers(uint32_t count, uint32_t stride, uint32_t first,
                                             const float* pairs, const float* vectors,
                                             float* gradients) {
  Lanes sums[kRows] = {};
  const float* vector = vectors;
  for (uint32_t j = 0; j < first; ++j, vector += stride) {
    Lanes other;
    Load(vector, &other);
    for (uint32_t r = 0; r < kRows; ++r) sums[r] += pairs[PairCount(first + r) + j] * other;
  }
  for (uint32_t j = first; j < first + kRows; ++j, vector += stride) {
    Lanes other;
    Load(vector, &other);
    for (uint32_t r = 0; r < kRows; ++r) {
      const uint32_t v = first + r;
      if (v != j) sums[r] += pairs[PairCount(std::max(v, j)) + std::min(v, j)] * other;
    }
  }
  uint32_t pair = PairCount(first + kRows) + first;
  for (uint32_t j = first + kRows; j < count; ++j, vector += stride) {
    Lanes other;
    Load(vector, &other);
    for (uint32_t r = 0; r < kRows; ++r) sums[r] += pairs[pair + r] * other;
    pair += j;
  }
  for (uint32_t r = 0; r < kRows; ++r) Store(sums[r], gradients + uint64_t{first + r} * stride);
}

EMBANK_SIMD_CLONES void AddAllOthers(uint32_t count, uint32_t stride, const float* pairs,
                                     const float* vectors, float* gradients) {
  for (uint32_t d = 0; d < stride; d += kLanes) {
    uint32_t first = 0;
    for (; first + kTileRows <= count; first += kTileRows) {
      AddOthers<kTileRows>(count, stride, first, pairs, vectors + d, gradients + d);
    }
    for (; first < count; ++first) {
      AddOthers<1>(count, stride, first, pairs, vectors + d, gradients + d);
    }
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
  const uint32_t stride = Padded(count);
  std::vector<float> columns(uint64_t{dim} * stride);
  std::vector<float> tile(uint64_t{kTileRows} * stride);
  std::vector<float> products(output.columns + kLanes);
  for (uint32_t sample = 0; sample < output.rows; ++sample) {
    for (uint32_t v = 0; v < count; ++v) {
      const float* const vector = vectors[v].Row(sample).data();
      float* column = columns.data() + v;
      for (uint32_t d = 0; d < dim; ++d, column += stride) *column = vector[d];
    }
    MultiplyPairs(count, dim, columns.data(), tile.data(), products.data());
    std::copy_n(products.begin(), output.columns, output.Row(sample).begin());
  }
}

void DotInteractionBackward(std::span<const ConstMatrix> vectors, ConstMatrix output_gradient,
                            std::span<const Matrix> gradients) {
  CheckVectors(vectors, output_gradient.rows, output_gradient.columns);
  EMBANK_CHECK(gradients.size() == vectors.size());
  const auto count = static_cast<uint32_t>(vectors.size());
  const uint32_t dim = vectors[0].columns;
  const uint32_t stride = Padded(dim);
  std::vector<float> gathered(uint64_t{count} * stride), results(gathered.size());
  for (uint32_t sample = 0; sample < output_gradient.rows; ++sample) {
    for (uint32_t v = 0; v < count; ++v) {
      std::ranges::copy(vectors[v].Row(sample), gathered.data() + uint64_t{v} * stride);
    }
    AddAllOthers(count, stride, output_gradient.Row(sample).data(), gathered.data(),
                 results.data());
    for (uint32_t v = 0; v < count; ++v) {
      EMBANK_CHECK(gradients[v].HasShapeOf(vectors[v]));
      std::copy_n(results.data() + uint64_t{v} * stride, dim, gradients[v].Row(sample).begin());
    }
  }
}

}  // namespace embank
