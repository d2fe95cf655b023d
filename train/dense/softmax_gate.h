// The gate of a mixture of experts (MMoE): a sum of the experts' outputs, weighted by the softmax
// of one logit per expert.
#ifndef EMBANK_TRAIN_DENSE_SOFTMAX_GATE_H_
#define EMBANK_TRAIN_DENSE_SOFTMAX_GATE_H_

#include <span>

#include "train/dense/tensor.h"

namespace embank {

// Shapes: logits and weights (n, experts), each expert and the output (n, dim). Writes the softmax
// of the logits to `weights`, which the backward pass needs. Thread-safe.
void SoftmaxGateForward(ConstMatrix logits, std::span<const ConstMatrix> experts, Matrix weights,
                        Matrix output);

// The gradients of a gate. That of the logits is overwritten. Those of the experts are added to,
// because gates of several tasks have the same experts.
struct SoftmaxGateGradients {
  Matrix logits;
  std::span<const Matrix> experts;
};

// Computes the gradients from that of the output. Thread-safe; allocates.
void SoftmaxGateBackward(ConstMatrix weights, std::span<const ConstMatrix> experts,
                         ConstMatrix output_gradient, const SoftmaxGateGradients& gradients);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_SOFTMAX_GATE_H_
