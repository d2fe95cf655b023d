// The optimizer of dense parameters: one step on all of them, with the formulas of rows
// (docs/arithmetic.md), element by element. max_gradient_norm is that of the whole gradient.
#ifndef EMBANK_TRAIN_DENSE_OPTIMIZER_H_
#define EMBANK_TRAIN_DENSE_OPTIMIZER_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "base/threads/executor.h"
#include "base/types.h"
#include "tiers/row/update_rule.h"

namespace embank {

// The floats of the state of an optimizer of so many parameters (DenseOptimizer::state).
uint64_t DenseStateFloats(Optimizer kind, uint64_t parameters);

// One thread at a time.
class DenseOptimizer {
 public:
  // Makes an optimizer of `parameters` floats in its first state.
  // INVALID_ARGUMENT: `kind` is none of SGD, Adagrad and Adam.
  static StatusOr<DenseOptimizer> Create(Optimizer kind, const UpdateRule& rule,
                                         uint64_t parameters);

  // Does one step. Both arrays have a float for each parameter. The bits do not depend on the
  // number of threads.
  void Step(Executor* executor, std::span<const float> gradients, std::span<float> weights);

  // The learning rate of the next steps.
  void set_learning_rate(float learning_rate) { rule_.learning_rate = learning_rate; }

  // The state, to be saved and restored. Adagrad: s of each parameter. Adam: m of each, v of each,
  // and the number of steps.
  std::span<float> state() { return state_; }

 private:
  DenseOptimizer(Optimizer kind, const UpdateRule& rule, uint64_t parameters);
  double ScaleOf(Executor* executor, std::span<const float> gradients);
  const float* Changed(std::span<const float> gradients, std::span<const float> weights,
                       double scale, uint64_t begin);
  void StepRange(AdamStep step, double scale, uint64_t begin, std::span<const float> gradients,
                 std::span<float> weights);

  const Optimizer kind_;
  UpdateRule rule_;
  const uint64_t parameters_;
  std::vector<float> state_;
  std::vector<float> changed_;  // gradients after clipping and decay, if there are any
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_OPTIMIZER_H_
