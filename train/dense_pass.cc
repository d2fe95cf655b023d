#include "train/dense_pass.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "base/status_macros.h"
#include "train/dense/loss.h"
#include "train/dense/slices.h"

namespace embank {

StatusOr<DensePass> DensePass::Create(const TrainerOptions& options, const LayerGraph* graph,
                                      uint32_t threads) {
  EMBANK_ASSIGN_OR_RETURN(
      DenseOptimizer optimizer,
      DenseOptimizer::Create(options.dense.optimizer, options.dense.rule, graph->parameters()));
  return DensePass(options, graph, threads, std::move(optimizer));
}

DensePass::DensePass(const TrainerOptions& options, const LayerGraph* graph, uint32_t threads,
                     DenseOptimizer optimizer)
    : slices_(options.slices),
      optimizer_(std::move(optimizer)),
      weights_(graph->parameters()),
      weight_gradients_(options.store.read_only ? 0 : options.slices * graph->parameters()) {
  const uint32_t samples_max = (options.batch + options.slices - 1) / options.slices;
  for (uint32_t i = 0; i < threads; ++i) runs_.emplace_back(graph, samples_max);
  graph->Initialize(options.seed, weights_);
}

double DensePass::RunSlice(const DenseSlice& slice, uint32_t thread) {
  EMBANK_CHECK(thread < runs_.size() && slice.number < slices_);
  const bool trains = !slice.vector_gradients.empty();
  EMBANK_CHECK(!trains || weight_gradients_.size() == slices_ * weights_.size());
  const std::span<float> gradients =
      trains ? std::span(weight_gradients_).subspan(slice.number * weights_.size(), weights_.size())
             : std::span<float>();
  const auto samples = static_cast<uint32_t>(slice.logits.size());
  EMBANK_CHECK(slice.labels.size() == samples || (!trains && slice.labels.empty()));
  if (samples == 0) {
    if (trains) std::ranges::fill(gradients, 0.0f);
    return 0.0;
  }
  GraphRun& run = runs_[thread];
  const ConstMatrix output = run.Forward(slice.input, weights_);
  EMBANK_CHECK(output.rows == samples && output.columns == 1);
  for (uint32_t i = 0; i < samples; ++i) slice.logits[i] = output.Row(i)[0];
  if (slice.labels.empty()) return 0.0;
  if (!trains) return SumLogLoss(slice.logits, slice.labels);
  std::vector<float> output_gradient(samples);
  const double loss = SumLogLossBackward(
      slice.logits, slice.labels, 1.0f / static_cast<float>(slice.batch_samples), output_gradient);
  run.Backward(slice.input, weights_, Matrix(output_gradient.data(), samples, 1),
               {.weights = gradients, .features = slice.vector_gradients});
  return loss;
}

bool DensePass::SumGradients(Executor* executor) {
  return SumSlices(executor, slices_, weight_gradients_);
}

void DensePass::Step(Executor* executor) {
  optimizer_.Step(executor, std::span(weight_gradients_).first(weights_.size()), weights_);
}

}  // namespace embank
