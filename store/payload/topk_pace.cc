#include "store/payload/topk_pace.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/check.h"

namespace embank {
namespace {

// The usual hit ratio is the mean of this many looks: those of one flush of steady traffic.
constexpr uint64_t kUsualLooks = 10;
// A smaller fall is no drift: flushes and batches of steady traffic differ by as much.
constexpr double kFallMin = 0.05;
// By chance one look in 30,000 is further off, if lookups are independent. Those of one batch are
// not quite independent.
constexpr double kDeviations = 4.0;
constexpr double kFallPerEpoch = 0.1;

}  // namespace

TopkPace::TopkPace(uint64_t flush_batches)
    : look_batches_(std::max<uint64_t>(1, flush_batches / kLooksPerFlush)),
      flush_looks_(flush_batches / look_batches_),
      looks_to_flush_(flush_looks_) {
  EMBANK_CHECK(flush_batches > 0);
}

TopkStep TopkPace::Look(HitFigures figures) {
  EMBANK_CHECK(figures.hits <= figures.lookups);
  pending_.lookups += figures.lookups;
  pending_.hits += figures.hits;
  ++looks_;
  TopkStep step;
  if (pending_.lookups >= kLookupsMin) {
    const HitFigures seen = std::exchange(pending_, {});
    const double ratio = static_cast<double>(seen.hits) / static_cast<double>(seen.lookups);
    step.epochs = EpochsFor(ratio, seen.lookups);
    if (step.epochs > 0) usual_looks_ = 0;
    Remember(ratio);
  }
  if (step.epochs > 0) {
    looks_to_flush_ = 1;
  } else if (looks_ >= looks_to_flush_) {
    looks_to_flush_ = std::min(2 * looks_to_flush_, flush_looks_);
  } else {
    return {};
  }
  looks_ = 0;
  step.flush = true;
  return step;
}

// How many epochs end early because of this hit ratio.
uint32_t TopkPace::EpochsFor(double hit_ratio, uint64_t lookups) const {
  if (usual_looks_ == 0 || usual_ratio_ <= hit_ratio) return 0;
  const double variance = usual_ratio_ * (1.0 - usual_ratio_) / static_cast<double>(lookups);
  const double fall = usual_ratio_ - hit_ratio;
  if (fall < kFallMin * usual_ratio_ + kDeviations * std::sqrt(variance)) return 0;
  const double epochs = 1.0 + fall / usual_ratio_ / kFallPerEpoch;
  return std::min(static_cast<uint32_t>(epochs), kEpochsMax);
}

void TopkPace::Remember(double hit_ratio) {
  usual_looks_ = std::min(usual_looks_ + 1, kUsualLooks);
  usual_ratio_ += (hit_ratio - usual_ratio_) / static_cast<double>(usual_looks_);
}

}  // namespace embank
