// How much of a step runs at once: the samples of a micro-batch, and the packs of a group. PICASSO
// (Zhang et al. 2022), section III-C, Eq 2 and Eq 3.
#ifndef EMBANK_TRAIN_PIPELINE_CAPACITY_H_
#define EMBANK_TRAIN_PIPELINE_CAPACITY_H_

#include <cstdint>
#include <span>
#include <vector>

#include "train/pipeline/pack_plan.h"

namespace embank {

// The cost of an operation in the resource that limits it: bytes, or seconds of a device.
struct ResourceCost {
  double bound = 0.0;  // all there is
  double cost = 0.0;   // of one sample (Eq 2), or of one unit of volume (Eq 3); above 0
};

// Returns the samples of a micro-batch (Eq 2): the smallest bound / cost, rounded down, at least 1.
// There is at least one operation.
uint64_t MicroBatchSize(std::span<const ResourceCost> operations);

// Returns how many micro-batches of at most `size` samples a batch has: 1 to `micro_batches_max`.
uint32_t MicroBatches(uint64_t batch, uint64_t size, uint32_t micro_batches_max);

// Returns the volume of a group (Eq 3): the smallest bound / cost.
double GroupCapacity(std::span<const ResourceCost> operations);

// The group of a pack that is excluded: it waits for no group, and no group for it.
inline constexpr uint32_t kNoGroup = ~uint32_t{0};

// Returns the group of each pack: packs in order, until the next one would exceed the capacity. A
// pack above the capacity has a group of its own.
std::vector<uint32_t> GroupPacks(std::span<const Pack> packs, double capacity);

// Returns the group of each pack, for at most `groups` groups: the smallest capacity that gives so
// few.
std::vector<uint32_t> GroupPacksInto(std::span<const Pack> packs, uint32_t groups);

}  // namespace embank

#endif  // EMBANK_TRAIN_PIPELINE_CAPACITY_H_
