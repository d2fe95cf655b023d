#include "train/dense/gemm.h"

#include <cblas.h>

#include <algorithm>

namespace embank {
namespace {

struct Operand {
  ConstMatrix matrix;
  CBLAS_TRANSPOSE transpose;

  uint32_t rows() const { return transpose == CblasNoTrans ? matrix.rows : matrix.columns; }
  uint32_t columns() const { return transpose == CblasNoTrans ? matrix.columns : matrix.rows; }
};

void Run(const Operand& a, const Operand& b, Accumulation accumulation, Matrix result) {
  EMBANK_CHECK(a.rows() == result.rows && b.columns() == result.columns);
  EMBANK_CHECK(a.columns() == b.rows());
  EMBANK_CHECK(openblas_get_num_threads() == 1);
  if (result.rows == 0 || result.columns == 0) return;
  if (a.columns() == 0) {
    if (accumulation == Accumulation::kAdd) return;
    for (uint32_t row = 0; row < result.rows; ++row) std::ranges::fill(result.Row(row), 0.0f);
    return;
  }
  cblas_sgemm(CblasRowMajor, a.transpose, b.transpose, static_cast<blasint>(result.rows),
              static_cast<blasint>(result.columns), static_cast<blasint>(a.columns()), 1.0f,
              a.matrix.data, static_cast<blasint>(a.matrix.stride), b.matrix.data,
              static_cast<blasint>(b.matrix.stride),
              accumulation == Accumulation::kAdd ? 1.0f : 0.0f, result.data,
              static_cast<blasint>(result.stride));
}

}  // namespace

Status PrepareGemm() {
  // The serial build takes its work buffers without a lock, and the OpenMP build with locks that
  // know threads of OpenMP only.
  if (openblas_get_parallel() != OPENBLAS_THREAD) {
    return FailedPreconditionError(
        "the libopenblas.so.0 that was loaded is not libopenblas0-pthread, and others are not safe "
        "when several threads call: see update-alternatives --list "
        "libopenblas.so.0-x86_64-linux-gnu");
  }
  openblas_set_num_threads(1);
  return OkStatus();
}

void Multiply(ConstMatrix a, ConstMatrix b, Accumulation accumulation, Matrix result) {
  Run({a, CblasNoTrans}, {b, CblasNoTrans}, accumulation, result);
}

void MultiplyTransposed(ConstMatrix a, ConstMatrix b, Accumulation accumulation, Matrix result) {
  Run({a, CblasNoTrans}, {b, CblasTrans}, accumulation, result);
}

void TransposedMultiply(ConstMatrix a, ConstMatrix b, Accumulation accumulation, Matrix result) {
  Run({a, CblasTrans}, {b, CblasNoTrans}, accumulation, result);
}

}  // namespace embank
