// Binary cross entropy of logits, which is the log loss of their sigmoids. Labels are 0 or 1.
#ifndef EMBANK_TRAIN_DENSE_LOSS_H_
#define EMBANK_TRAIN_DENSE_LOSS_H_

#include <span>

namespace embank {

// Returns the sum of the losses, in float64, sample after sample. A logit that is not finite gives
// NaN or infinity. Thread-safe.
double SumLogLoss(std::span<const float> logits, std::span<const float> labels);

// Also writes the gradients of the logits for `scale` times that sum; a mean has the scale
// 1 / samples. Thread-safe.
double SumLogLossBackward(std::span<const float> logits, std::span<const float> labels, float scale,
                          std::span<float> gradients);

// Returns whether a loss is less than another one. One that is NaN is more than all that are not.
bool IsLessLoss(double loss, double other);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_LOSS_H_
