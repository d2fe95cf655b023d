// The plan of a step: packs, their groups, and micro-batches. Warm-up steps count the ids of
// features first, as in PICASSO (Zhang et al. 2022), section III.
#ifndef EMBANK_TRAIN_STEP_PLAN_H_
#define EMBANK_TRAIN_STEP_PLAN_H_

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "train/pipeline/embedding_pass.h"
#include "train/pipeline/pack_plan.h"
#include "train/trainer_options.h"

namespace embank {

// How a step is done. Features of a pack are numbers among those of the plan.
struct StepLayout {
  std::vector<Pack> packs;
  std::vector<uint32_t> groups;  // of each pack
  std::vector<SliceRange> micro_batches;
};

// No bit of a result depends on it. One thread.
class StepPlan {
 public:
  // During the warm-up each dim is one pack.
  // Micro-batches are of the slices of a rank: those of `own`.
  StepPlan(const TrainerOptions& options, std::span<const FeatureTable> features, SliceRange own);

  // Counts a step of the warm-up, and plans anew at its end. All of the batch counts, so that all
  // ranks plan the same.
  void Count(const ClickBatch& batch);

  // The layout of steps that begin now. Those that are under way keep theirs.
  std::shared_ptr<const StepLayout> layout() const { return layout_; }
  std::span<const Pack> packs() const { return layout_->packs; }
  std::span<const uint32_t> groups() const { return layout_->groups; }
  std::span<const SliceRange> micro_batches() const { return layout_->micro_batches; }
  // How many micro-batches Eq 2 asks for after the warm-up; a step has at most kMicroBatchesMax.
  uint32_t micro_batches_wanted() const { return micro_batches_wanted_; }
  bool is_warm() const { return steps_ >= options_.packs.warmup_steps; }
  // The counts of the warm-up so far.
  std::span<const FeatureTraffic> traffic() const { return traffic_; }

 private:
  void Plan();
  uint32_t MicroBatchesByBytes() const;
  double GroupVolumeByBytes() const;

  const TrainerOptions options_;
  const SliceRange own_;
  std::vector<uint32_t> columns_;        // of each feature
  std::vector<FeatureTraffic> traffic_;  // of each feature
  uint64_t steps_ = 0;
  uint64_t samples_ = 0;
  std::shared_ptr<const StepLayout> layout_;
  uint32_t micro_batches_wanted_ = 1;
};

}  // namespace embank

#endif  // EMBANK_TRAIN_STEP_PLAN_H_
