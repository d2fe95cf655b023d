// The second-order term of a factorization machine: the sum of the inner products of all pairs of a
// sample's vectors, as 0.5 ((sum v)^2 - sum v^2), summed over the dimensions.
#ifndef EMBANK_TRAIN_DENSE_FM_H_
#define EMBANK_TRAIN_DENSE_FM_H_

#include <span>

#include "train/dense/tensor.h"

namespace embank {

// Each of `vectors` is a matrix (n, dim), which has one vector of each sample; the output is (n,
// 1). Thread-safe; allocates.
void FmForward(std::span<const ConstMatrix> vectors, Matrix output);

// Overwrites a gradient for each of the vectors. Thread-safe; allocates.
void FmBackward(std::span<const ConstMatrix> vectors, ConstMatrix output_gradient,
                std::span<const Matrix> gradients);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_FM_H_
