#include "train/pipeline/row_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <unordered_set>

#include "base/check.h"
#include "store/packed/packed_gradients.h"

namespace embank {
namespace {

// Takes the ids of a table that have a sum which is not finite out of all of its runs, so that none
// of their gradients counts. Returns how many there were.
uint64_t LeaveOutNotFinite(std::span<const EmbeddingFeature> features,
                           std::span<SumRun* const> runs_of_table) {
  std::unordered_set<Key> left_out;
  for (const SumRun* const run : runs_of_table) {
    const uint32_t dim = features[run->feature].dim;
    for (size_t i = 0; i < run->ids.size(); ++i) {
      if (!AreFinite({run->sums + i * dim, dim})) left_out.insert(run->ids[i]);
    }
  }
  uint64_t count = 0;
  for (SumRun* const run : runs_of_table) {
    const uint32_t dim = features[run->feature].dim;
    size_t kept = 0;
    for (size_t i = 0; i < run->ids.size(); ++i) {
      if (left_out.contains(run->ids[i])) continue;
      run->ids[kept] = run->ids[i];
      std::memmove(run->sums + kept * dim, run->sums + i * dim, dim * sizeof(float));
      ++kept;
    }
    count += run->ids.size() - kept;
    run->ids = run->ids.first(kept);
  }
  return count;
}

}  // namespace

bool AreFinite(std::span<const float> numbers) {
  bool are_finite = true;
  for (const float number : numbers) {
    are_finite &= std::abs(number) <= std::numeric_limits<float>::max();  // a NaN is not
  }
  return are_finite;
}

Status StepRows(std::span<const EmbeddingFeature> features, std::vector<SumRun> runs,
                bool are_finite, uint64_t* left_out) {
  *left_out = 0;
  if (!are_finite) {
    std::map<const Table*, std::vector<SumRun*>> by_table;
    for (SumRun& run : runs) by_table[features[run.feature].table].push_back(&run);
    for (const auto& [table, runs_of_table] : by_table) {
      *left_out += LeaveOutNotFinite(features, runs_of_table);
    }
  }
  std::vector<GradientFeature> gradients;
  bool forgets = false;
  for (const SumRun& run : runs) {
    EMBANK_CHECK(run.feature < features.size());
    const EmbeddingFeature& feature = features[run.feature];
    GradientFeature& gradient = gradients.emplace_back();
    gradient.table = feature.table;
    gradient.keys = run.ids;
    gradient.gradients = {reinterpret_cast<const std::byte*>(run.sums),
                          feature.dim * sizeof(float)};
    forgets |= feature.table->options().on_full == OnFull::kForget;
  }
  Status status = ApplyGradientsPacked(gradients);
  // The counters of the tables have the steps that were not made.
  if (IsOutOfRange(status) || (forgets && IsNotFound(status))) return OkStatus();
  return status;
}

}  // namespace embank
