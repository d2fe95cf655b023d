// The dense part of a step: slices forward and backward, then one step of the optimizer.
#ifndef EMBANK_TRAIN_DENSE_PASS_H_
#define EMBANK_TRAIN_DENSE_PASS_H_

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "base/threads/executor.h"
#include "train/dense/optimizer.h"
#include "train/dense/tensor.h"
#include "train/models/graph_run.h"
#include "train/models/layer_graph.h"
#include "train/trainer_options.h"

namespace embank {

// A slice of a batch, in the caller's memory.
struct DenseSlice {
  uint32_t number = 0;  // among those of the pass
  uint32_t batch_samples = 0;
  SliceInput input;
  std::span<const float> labels;             // may be empty for forward alone
  std::span<const Matrix> vector_gradients;  // of each feature; empty: only forward
  std::span<float> logits;                   // written
};

// It owns the dense parameters. Its memory is that of one slice for each thread, and, unless the
// store is read-only, the gradients of the parameters for each slice.
class DensePass {
 public:
  // The graph outlives it. It does `slices` slices of each batch.
  static StatusOr<DensePass> Create(const TrainerOptions& options, const LayerGraph* graph,
                                    uint32_t slices, uint32_t threads);

  // Computes a slice forward and, where it has vector gradients, backward: they become those of the
  // mean loss of the batch. Returns the sum of its losses. Slices may run at once on different
  // threads; `thread` is below that of Create. It calls done(bucket) once for each bucket whose
  // gradients of this slice are there, also where it throws.
  using BucketDone = std::function<void(uint32_t bucket)>;
  double RunSlice(const DenseSlice& slice, uint32_t thread, const BucketDone& done = nullptr);

  // Adds the gradients of all slices as a tree. Returns whether all sums are finite.
  bool SumGradients(Executor* executor);
  // The same for a bucket, a run of the parameters, which other ranks add to. Returns its sums.
  // AreSumsFinite looks at all of them.
  uint32_t buckets() const;
  std::span<float> SumBucket(uint32_t bucket);
  bool AreSumsFinite(Executor* executor) const;
  // Makes a step of the optimizer with these sums.
  void Step(Executor* executor);
  // The learning rate of the next steps.
  void set_learning_rate(float rate) { optimizer_.set_learning_rate(rate); }

  std::span<float> weights() { return weights_; }
  std::span<const float> weights() const { return weights_; }
  std::span<float> optimizer_state() { return optimizer_.state(); }

 private:
  DensePass(const TrainerOptions& options, const LayerGraph* graph, uint32_t slices,
            uint32_t threads, DenseOptimizer optimizer);
  double RunForwardBackward(const DenseSlice& slice, uint32_t thread,
                            const GraphRun::WeightsDone& done);
  uint64_t BucketBegin(uint32_t bucket) const;

  const uint32_t slices_;
  const uint64_t stride_;  // of the gradients of a slice, in floats: units of exchanges
  DenseOptimizer optimizer_;
  std::vector<float> weights_;
  std::vector<float> weight_gradients_;  // of each slice
  std::vector<GraphRun> runs_;           // of each thread
};

}  // namespace embank

#endif  // EMBANK_TRAIN_DENSE_PASS_H_
