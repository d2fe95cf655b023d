#include "train/pipeline/row_steps.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <unordered_set>

#include "base/check.h"
#include "base/seeded_bug.h"
#include "store/packed/packed_gradients.h"

namespace embank {
namespace {

// Takes ids of a table out of all of its runs, so that none of their gradients counts: those whose
// update is lost, and those with a sum that is not finite. Adds how many there were.
void LeaveOut(std::span<const EmbeddingFeature> features, std::span<SumRun* const> runs_of_table,
              const RowUpdate& update, IdsLeftOut* left_out) {
  const Table& table = *features[runs_of_table[0]->feature].table;
  std::unordered_set<Key> lost;
  std::unordered_set<Key> not_finite;
  for (const SumRun* const run : runs_of_table) {
    const uint32_t dim = features[run->feature].dim;
    for (size_t i = 0; i < run->ids.size(); ++i) {
      if (update.lost != nullptr && update.lost->Has(update.step, table.HashOf(run->ids[i]))) {
        lost.insert(run->ids[i]);
      } else if (!update.are_sums_finite && !AreFinite({run->sums + i * dim, dim})) {
        not_finite.insert(run->ids[i]);
      }
    }
  }
  left_out->lost += lost.size();
  for (SumRun* const run : runs_of_table) {
    const uint32_t dim = features[run->feature].dim;
    size_t kept = 0;
    for (size_t i = 0; i < run->ids.size(); ++i) {
      const bool is_not_finite = not_finite.contains(run->ids[i]);
      if (is_not_finite) ++left_out->not_finite;
      if (is_not_finite || lost.contains(run->ids[i])) continue;
      run->ids[kept] = run->ids[i];
      if (!Seeded(SeededBug::kDroppedCursorNotMoved)) {
        std::memmove(run->sums + kept * dim, run->sums + i * dim, dim * sizeof(float));
      }
      ++kept;
    }
    run->ids = run->ids.first(kept);
  }
}

}  // namespace

bool AreFinite(std::span<const float> numbers) {
  bool are_finite = true;
  for (const float number : numbers) {
    are_finite &= std::abs(number) <= std::numeric_limits<float>::max();  // a NaN is not
  }
  return are_finite;
}

IdsLeftOut TakeLeftOut(std::span<const EmbeddingFeature> features, std::span<SumRun> runs,
                       const RowUpdate& update) {
  IdsLeftOut left_out;
  if (update.are_sums_finite && update.lost == nullptr) return left_out;
  std::map<const Table*, std::vector<SumRun*>> by_table;
  for (SumRun& run : runs) by_table[features[run.feature].table].push_back(&run);
  for (const auto& [table, runs_of_table] : by_table) {
    LeaveOut(features, runs_of_table, update, &left_out);
  }
  return left_out;
}

Status StepRows(std::span<const EmbeddingFeature> features, std::vector<SumRun> runs,
                const RowUpdate& update, IdsLeftOut* left_out) {
  *left_out = TakeLeftOut(features, runs, update);
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
    if (update.updated != nullptr) update.updated->Note(run.feature, run.ids);
  }
  Status status = ApplyGradientsPacked(gradients);
  // The counters of the tables have the steps that were not made.
  if (IsOutOfRange(status) || (forgets && IsNotFound(status))) return OkStatus();
  return status;
}

}  // namespace embank
