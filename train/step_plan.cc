#include "train/step_plan.h"

#include <algorithm>

#include "train/dense/slices.h"
#include "train/pipeline/capacity.h"

namespace embank {

StepPlan::StepPlan(const TrainerOptions& options, std::span<const FeatureTable> features)
    : options_(options) {
  for (const FeatureTable& feature : features) {
    traffic_.push_back({.dim = feature.dim, .ids = 0, .is_excluded = feature.is_excluded});
  }
  Plan();
}

void StepPlan::Count(const EmbeddingPass& pass, uint32_t samples) {
  if (is_warm()) return;
  for (size_t i = 0; i < traffic_.size(); ++i) traffic_[i].ids += pass.Positions(i);
  samples_ += samples;
  ++steps_;
  if (is_warm()) Plan();
}

// The bytes of a sample are its rows and sums, and its vectors and their gradients (Eq 2).
uint32_t StepPlan::MicroBatchesByBytes() const {
  double floats = 0.0;
  for (const FeatureTraffic& feature : traffic_) {
    const double ids = static_cast<double>(feature.ids) / static_cast<double>(samples_);
    floats += 2.0 * static_cast<double>(feature.dim) * (ids + 1.0);
  }
  const ResourceCost memory = {.bound = static_cast<double>(options_.micro_batch_bytes),
                               .cost = floats * sizeof(float)};
  const uint32_t micro_batches_max = std::min(kMicroBatchesMax, options_.slices);
  return MicroBatches(options_.batch, MicroBatchSize({&memory, 1}), micro_batches_max);
}

void StepPlan::Plan() {
  packs_ = options_.packing ? PlanPacks(traffic_) : PlanNoPacks(traffic_);
  groups_ = GroupPacksInto(packs_, options_.groups);
  uint32_t count = std::min(options_.micro_batches, options_.slices);
  if (options_.micro_batch_bytes > 0 && samples_ > 0) count = MicroBatchesByBytes();
  micro_batches_.clear();
  for (uint32_t i = 0; i < count; ++i) {
    const SampleRange slices = SliceOf(options_.slices, count, i);
    micro_batches_.push_back({slices.begin, slices.end});
  }
}

}  // namespace embank
