// Functions of one value: ReLU and sigmoid. They work in place, and their backward passes need the
// output alone.
#ifndef EMBANK_TRAIN_DENSE_ACTIVATION_H_
#define EMBANK_TRAIN_DENSE_ACTIVATION_H_

#include "train/dense/tensor.h"

namespace embank {

// Replaces negative values by 0; NaN stays. Thread-safe.
void ReluForward(Matrix values);
// Turns the gradient of the output into that of the input. At an output of 0 it is 0. Thread-safe.
void ReluBackward(ConstMatrix output, Matrix gradient);

// 1 / (1 + e^-x), in float64 arithmetic of our own; NaN stays. Thread-safe.
double Sigmoid(double x);
// Replaces each value by its sigmoid. Thread-safe.
void SigmoidForward(Matrix values);
// Turns the gradient of the output into that of the input. Thread-safe.
void SigmoidBackward(ConstMatrix output, Matrix gradient);

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_ACTIVATION_H_
