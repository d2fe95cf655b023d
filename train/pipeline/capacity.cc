#include "train/pipeline/capacity.h"

#include <algorithm>
#include <cmath>

#include "base/check.h"

namespace embank {
namespace {

double SmallestQuotient(std::span<const ResourceCost> operations) {
  EMBANK_CHECK(!operations.empty());
  double smallest = 0.0;
  for (const ResourceCost& operation : operations) {
    EMBANK_CHECK(operation.cost > 0.0);
    const double quotient = operation.bound / operation.cost;
    if (&operation == operations.data() || quotient < smallest) smallest = quotient;
  }
  return smallest;
}

uint32_t CountGroups(std::span<const uint32_t> groups) {
  uint32_t count = 0;
  for (const uint32_t group : groups) {
    if (group != kNoGroup) count = std::max(count, group + 1);
  }
  return count;
}

}  // namespace

uint64_t MicroBatchSize(std::span<const ResourceCost> operations) {
  const double size = std::floor(SmallestQuotient(operations));
  return size < 1.0 ? 1 : static_cast<uint64_t>(std::min(size, 0x1p62));
}

uint32_t MicroBatches(uint64_t batch, uint64_t size, uint32_t micro_batches_max) {
  EMBANK_CHECK(size > 0 && micro_batches_max > 0);
  const uint64_t wanted = batch / size + (batch % size == 0 ? 0 : 1);
  return static_cast<uint32_t>(std::clamp<uint64_t>(wanted, 1, micro_batches_max));
}

double GroupCapacity(std::span<const ResourceCost> operations) {
  return SmallestQuotient(operations);
}

std::vector<uint32_t> GroupPacks(std::span<const Pack> packs, double capacity) {
  std::vector<uint32_t> groups;
  uint32_t group = 0;
  double filled = 0.0;
  bool is_empty = true;
  for (const Pack& pack : packs) {
    if (pack.is_excluded) {
      groups.push_back(kNoGroup);
      continue;
    }
    if (!is_empty && filled + pack.volume > capacity) {
      ++group;
      filled = 0.0;
    }
    groups.push_back(group);
    filled += pack.volume;
    is_empty = false;
  }
  return groups;
}

std::vector<uint32_t> GroupPacksInto(std::span<const Pack> packs, uint32_t groups) {
  EMBANK_CHECK(groups > 0);
  // A group begins at some pack, and ends at another: its volume is one of these sums.
  std::vector<double> capacities = {0.0};
  for (size_t begin = 0; begin < packs.size(); ++begin) {
    double volume = 0.0;
    for (size_t end = begin; end < packs.size(); ++end) {
      if (packs[end].is_excluded) continue;
      volume += packs[end].volume;
      capacities.push_back(volume);
    }
  }
  std::ranges::sort(capacities);
  const auto smallest = std::ranges::partition_point(capacities, [&](double capacity) {
    return CountGroups(GroupPacks(packs, capacity)) > groups;
  });
  EMBANK_CHECK(smallest != capacities.end());
  return GroupPacks(packs, *smallest);
}

}  // namespace embank
