#include "train/step_plan.h"

#include <algorithm>
#include <utility>

#include "base/seeded_bug.h"
#include "base/str_cat.h"
#include "base/threads/log.h"
#include "train/dense/slices.h"
#include "train/pipeline/capacity.h"

namespace embank {

StepPlan::StepPlan(const TrainerOptions& options, std::span<const FeatureTable> features,
                   SliceRange own)
    : options_(options), own_(own) {
  for (const FeatureTable& feature : features) {
    const auto first = std::ranges::find(features, feature.name, &FeatureTable::name);
    traffic_.push_back({.dim = feature.dim,
                        .ids = 0,
                        .is_excluded = feature.is_excluded,
                        .is_replicated = feature.is_replicated,
                        .is_pooled = feature.is_pooled,
                        .table = static_cast<uint32_t>(first - features.begin())});
    columns_.push_back(feature.column);
  }
  Plan();
}

void StepPlan::Count(const ClickBatch& batch) {
  if (is_warm()) return;
  for (size_t i = 0; i < traffic_.size(); ++i) {
    traffic_[i].ids += batch.features[columns_[i]].ids.size();
  }
  samples_ += batch.samples;
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
  return MicroBatches(options_.batch, MicroBatchSize({&memory, 1}), options_.batch);
}

// A unit of volume (Eq 1) is a float of a row in the warm-up, times the ids of the warm-up.
double StepPlan::GroupVolumeByBytes() const {
  double ids = 0.0;
  for (const FeatureTraffic& feature : traffic_) ids += static_cast<double>(feature.ids);
  const double volumes_per_float = std::max(1.0, ids) * static_cast<double>(steps_);
  const ResourceCost memory = {.bound = static_cast<double>(options_.packs.group_bytes),
                               .cost = sizeof(float) / volumes_per_float};
  return GroupCapacity({&memory, 1});
}

void StepPlan::Plan() {
  const bool is_other = Seeded(SeededBug::kPlanDiffers) && own_.begin > 0;
  auto layout = std::make_shared<StepLayout>();
  layout->packs = PlanPacks(traffic_, is_other ? PackRule::kNone : options_.packs.rule);
  const bool is_counted = samples_ > 0;
  layout->groups = options_.packs.group_bytes > 0 && is_counted
                       ? GroupPacks(layout->packs, GroupVolumeByBytes())
                       : GroupPacksInto(layout->packs, options_.packs.groups);
  micro_batches_wanted_ = options_.micro_batches;
  if (options_.micro_batch_bytes > 0 && is_counted) micro_batches_wanted_ = MicroBatchesByBytes();
  const uint32_t count = std::min({micro_batches_wanted_, kMicroBatchesMax, own_.size()});
  if (options_.micro_batch_bytes > 0 && micro_batches_wanted_ > count) {
    Log(LogLevel::kWarning, StrCat("micro_batch_bytes asks for ", micro_batches_wanted_,
                                   " micro-batches, and a step has ", count, " at most"));
  }
  for (uint32_t i = 0; i < count; ++i) {
    const SampleRange slices = SliceOf(own_.size(), count, i);
    layout->micro_batches.push_back({own_.begin + slices.begin, own_.begin + slices.end});
  }
  layout_ = std::move(layout);
}

}  // namespace embank
