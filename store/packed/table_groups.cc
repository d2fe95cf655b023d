#include "store/packed/table_groups.h"

#include <algorithm>

#include "store/batch/batch.h"

namespace embank {
namespace {

// Fewer keys are done before another thread has woken up (store/batch/batch.h).
constexpr uint64_t kSharedKeysMin = 2048;
// A chunk of a bag's vectors that threads share has 8,192 keys, and 4 MiB (packed_lookup.cc).
constexpr uint64_t kSharedVectorBytesMax = (uint64_t{4} << 20) / Batch::kSharedKeys;

// A lookup makes a batch of each feature.
bool IsLargeLookup(const LookupFeature& feature) {
  if (feature.keys.size() < Batch::kSharedKeys) return false;
  return feature.pooling == Pooling::kNone ||
         feature.table->layout().vector_bytes <= kSharedVectorBytesMax;
}

template <typename FeatureType>
std::vector<TableGroup> GroupAll(std::span<const FeatureType> features) {
  std::vector<TableGroup> groups;
  for (size_t i = 0; i < features.size(); ++i) {
    const FeatureType& feature = features[i];
    auto group = std::ranges::find(groups, feature.table, &TableGroup::table);
    if (group == groups.end()) group = groups.insert(group, {.table = feature.table});
    group->features.push_back(i);
    group->keys += feature.keys.size();
  }
  return groups;
}

}  // namespace

std::vector<TableGroup> GroupByTable(std::span<const LookupFeature> features) {
  std::vector<TableGroup> groups = GroupAll(features);
  for (TableGroup& group : groups) {
    group.is_large =
        std::ranges::any_of(group.features, [&](size_t i) { return IsLargeLookup(features[i]); });
  }
  return groups;
}

// The features of a table are one batch.
std::vector<TableGroup> GroupByTable(std::span<const GradientFeature> features) {
  std::vector<TableGroup> groups = GroupAll(features);
  for (TableGroup& group : groups) group.is_large = group.keys >= Batch::kSharedKeys;
  return groups;
}

std::vector<TableGroup> GroupByTable(std::span<const Feature> features) {
  return GroupAll(features);
}

uint64_t ShareNs(uint64_t call_ns, const TableGroup& group, std::span<const TableGroup> groups) {
  uint64_t keys = 0;
  for (const TableGroup& each : groups) keys += each.keys;
  if (keys == 0) return call_ns / groups.size();
  const double part = static_cast<double>(group.keys) / static_cast<double>(keys);
  return static_cast<uint64_t>(static_cast<double>(call_ns) * part);
}

bool AreFew(std::span<const TableGroup> groups) {
  uint64_t keys = 0;
  for (const TableGroup& group : groups) keys += group.keys;
  return keys < kSharedKeysMin;
}

void ForEachTable(std::span<const TableGroup> groups, FunctionRef<void(size_t)> body) {
  uint64_t small_groups = 0;
  uint64_t small_keys = 0;
  for (const TableGroup& group : groups) {
    small_groups += group.is_large ? 0 : 1;
    small_keys += group.is_large ? 0 : group.keys;
  }
  const bool shares = small_groups > 1 && small_keys >= kSharedKeysMin;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].is_large || !shares) body(i);
  }
  if (!shares) return;
  Executor* const executor = groups[0].table->store().executor;
  executor->ParallelFor(static_cast<uint32_t>(groups.size()), [&](uint32_t i) {
    if (!groups[i].is_large) body(i);
  });
}

}  // namespace embank
