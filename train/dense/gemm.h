// Products of matrices, by OpenBLAS. Each call uses one thread, and threads may call at once
// (docs/decisions/0039-slices-and-openblas.md).
//
// The bits of a result depend on the shapes and on the kernels that OpenBLAS chooses for the
// processor, and on nothing else: not on other threads.
#ifndef EMBANK_TRAIN_DENSE_GEMM_H_
#define EMBANK_TRAIN_DENSE_GEMM_H_

#include "base/status.h"
#include "train/dense/tensor.h"

namespace embank {

// A product replaces the result, or is added to it.
enum class Accumulation { kReplace, kAdd };

// Makes each call of OpenBLAS use one thread. A process calls it once, before the other functions.
// FAILED_PRECONDITION: the loader found an OpenBLAS that is not safe with several calling threads.
Status PrepareGemm();

// result = a b. Shapes: (m, k), (k, n), (m, n). The result overlaps no operand. Thread-safe.
void Multiply(ConstMatrix a, ConstMatrix b, Accumulation accumulation, Matrix result);
// result = a b^T. Shapes: (m, k), (n, k), (m, n). Thread-safe.
void MultiplyTransposed(ConstMatrix a, ConstMatrix b, Accumulation accumulation, Matrix result);
// result = a^T b. Shapes: (k, m), (k, n), (m, n). Thread-safe.
void TransposedMultiply(ConstMatrix a, ConstMatrix b, Accumulation accumulation, Matrix result);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_GEMM_H_
