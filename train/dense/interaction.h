// The dot interaction of DLRM: the inner products of all pairs of a sample's vectors.
#ifndef EMBANK_TRAIN_DENSE_INTERACTION_H_
#define EMBANK_TRAIN_DENSE_INTERACTION_H_

#include <cstdint>
#include <span>

#include "train/dense/tensor.h"

namespace embank {

// Returns the number of pairs of different vectors, which is the number of columns of the output.
constexpr uint32_t PairCount(uint32_t vectors) { return vectors * (vectors - 1) / 2; }

// Each of `vectors` is a matrix (n, dim), which has one vector of each sample. The output
// (n, PairCount) has the products of (1, 0), (2, 0), (2, 1), (3, 0), ... Thread-safe; allocates.
void DotInteractionForward(std::span<const ConstMatrix> vectors, Matrix output);

// Overwrites a gradient for each of the vectors. Thread-safe; allocates.
void DotInteractionBackward(std::span<const ConstMatrix> vectors, ConstMatrix output_gradient,
                            std::span<const Matrix> gradients);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_INTERACTION_H_
