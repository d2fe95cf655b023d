// The linear layer: output = input weights^T + bias. `weights` has a row for each output.
#ifndef EMBANK_TRAIN_DENSE_LINEAR_H_
#define EMBANK_TRAIN_DENSE_LINEAR_H_

#include <cstdint>
#include <span>

#include "train/dense/tensor.h"

namespace embank {

// Shapes: input (n, inputs), weights (outputs, inputs), bias outputs, output (n, outputs).
// Thread-safe.
void LinearForward(ConstMatrix input, ConstMatrix weights, std::span<const float> bias,
                   Matrix output);

// The gradients of a linear layer, which its backward pass overwrites.
struct LinearGradients {
  Matrix weights;
  std::span<float> bias;
  Matrix input;  // without data: nobody needs it
};

// Computes the gradients from that of the output. Thread-safe.
void LinearBackward(ConstMatrix input, ConstMatrix weights, ConstMatrix output_gradient,
                    const LinearGradients& gradients);

// Draws first weights as DLRM does: normal with deviation sqrt(2 / (inputs + outputs)), biases with
// sqrt(1 / outputs). Equal seeds give equal bits on every machine.
void InitializeLinear(uint64_t seed, Matrix weights, std::span<float> bias);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_LINEAR_H_
