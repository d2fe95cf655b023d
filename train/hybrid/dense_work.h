// The dense part of steps, as an NN worker needs it.
#ifndef EMBANK_TRAIN_HYBRID_DENSE_WORK_H_
#define EMBANK_TRAIN_HYBRID_DENSE_WORK_H_

#include <array>
#include <cstdint>
#include <span>

#include "train/dense_pass.h"

namespace embank {

// One thread.
class DenseWork {
 public:
  virtual ~DenseWork() = default;

  // Trains a slice, by its number among those of the worker, forward and backward. One without
  // samples leaves no gradients. Returns the sum of its losses.
  virtual double RunSlice(const DenseSlice& slice) = 0;
  // Sums the dense gradients of the worker's slices, as a tree. The caller replaces these sums by
  // those of all workers.
  virtual std::span<float> SumSlices() = 0;
  // Makes a step with these sums; the first of a training is 0. False: they are not finite, and
  // nothing was changed.
  virtual bool Step(uint64_t step) = 0;

  // The weights, and the state of the optimizer.
  virtual std::array<std::span<float>, 2> parameters() = 0;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_HYBRID_DENSE_WORK_H_
