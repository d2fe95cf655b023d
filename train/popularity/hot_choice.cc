#include "train/popularity/hot_choice.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <optional>
#include <utility>

#include "base/check.h"
#include "base/hash.h"
#include "base/status_macros.h"
#include "base/str_cat.h"
#include "train/popularity/chunk_estimate.h"
#include "train/popularity/cutoff.h"

namespace embank {
namespace {

// The bound is at most 9.4 % above the hot bytes: 0.99 / 1.094 = 0.905.
constexpr double kFilledBound = 0.99;
constexpr double kFilledMin = 0.9;
// The logarithms of two thresholds differ by at most 44, for counts of 32 bits. 44 / 2^50 = 4e-14,
// and neighbouring scores of a million differ by 2^-20 / 10^6 = 1e-12 of them. Bounds are met after
// some 12.
constexpr uint32_t kStepsMax = 50;
// A cutoff below the score of each row of a sample, which is at least 1, however it is rounded.
constexpr double kBelowScores = 1.0 - 0x1p-20;

// The hot bytes of all large tables.
class LargeTables {
 public:
  struct Bytes {
    double estimate = 0.0;
    double bound = 0.0;
  };

  LargeTables(std::span<const TablePopularity> tables, uint64_t seed) : tables_(tables) {
    for (size_t i = 0; i < tables.size(); ++i) {
      if (tables[i].is_small) continue;
      estimators_.emplace_back(i, ChunkEstimator(tables[i].entries, Mix(seed + i * kGoldenRatio)));
    }
  }

  Bytes BytesFrom(double threshold, uint32_t chunks_min) const {
    Bytes bytes;
    for (const auto& [table, estimator] : estimators_) {
      const ChunkEstimator::Estimate estimate =
          estimator.EntriesFrom(CutoffOf(threshold, tables_[table].accesses, 1.0), chunks_min);
      bytes.estimate += estimate.entries * tables_[table].row_bytes;
      bytes.bound += estimate.upper_bound * tables_[table].row_bytes;
    }
    return bytes;
  }

 private:
  const std::span<const TablePopularity> tables_;
  std::vector<std::pair<size_t, ChunkEstimator>> estimators_;
};

// The thresholds at which all rows of large tables are hot, and none.
struct ThresholdRange {
  double low = 1.0;
  double high = 0.0;
};

ThresholdRange RangeOf(std::span<const TablePopularity> tables) {
  ThresholdRange range;
  for (const TablePopularity& table : tables) {
    if (table.is_small || table.entries.empty()) continue;
    const auto accesses = static_cast<double>(table.accesses);
    const IdCount& top = *std::ranges::max_element(table.entries, {}, &IdCount::count);
    range.low = std::min(range.low, kBelowScores / accesses);
    range.high = std::max(range.high, (top.count + 1.0) / accesses);
  }
  return range;
}

// Bisects until the bound is within `available` bytes, and nearly all of them.
void Bisect(const LargeTables& large, ThresholdRange range, double available, uint32_t chunks_min,
            HotChoice* choice) {
  LargeTables::Bytes bytes;
  for (uint32_t i = 0; i < kStepsMax && bytes.bound < kFilledBound * available; ++i) {
    const double middle = std::sqrt(range.low * range.high);
    const LargeTables::Bytes tried = large.BytesFrom(middle, chunks_min);
    ++choice->steps;
    if (tried.bound > available) {
      range.low = middle;
    } else {
      range.high = middle;
      bytes = tried;
    }
  }
  choice->threshold = range.high;
  choice->estimated_bytes = bytes.estimate;
  choice->bound_bytes = bytes.bound;
}

// Lists the hot ids of large tables and returns their bytes.
uint64_t ListHotIds(std::span<const TablePopularity> tables, HotChoice* choice) {
  uint64_t bytes = 0;
  choice->ids.assign(tables.size(), {});
  for (size_t i = 0; i < tables.size(); ++i) {
    if (tables[i].is_small) continue;
    choice->ids[i] =
        HotIdsOf(tables[i].entries, CutoffOf(choice->threshold, tables[i].accesses, 1.0));
    bytes += choice->ids[i].size() * tables[i].row_bytes;
  }
  return bytes;
}

// Reserves the bytes of small tables. The choice of all rows, if they fit.
StatusOr<std::optional<HotChoice>> ChooseAll(std::span<const TablePopularity> tables,
                                             const HotBudget& budget, uint64_t* available) {
  HotChoice choice;
  uint64_t large_bytes = 0;
  for (const TablePopularity& table : tables) {
    EMBANK_CHECK(table.row_bytes > 0);
    if (table.is_small) {
      choice.reserved_bytes += table.rows * table.row_bytes;
    } else {
      large_bytes += table.entries.size() * table.row_bytes;
    }
  }
  if (choice.reserved_bytes > budget.bytes) {
    return InvalidArgumentError(StrCat("the budget for hot rows is ", budget.bytes,
                                       " bytes; the small tables, whose rows ",
                                       "are all hot, need ", choice.reserved_bytes));
  }
  *available = budget.bytes - choice.reserved_bytes;
  if (large_bytes > *available) return std::optional<HotChoice>();
  const bool are_small = std::ranges::all_of(tables, &TablePopularity::is_small);
  choice.threshold = are_small ? std::numeric_limits<double>::infinity() : RangeOf(tables).low;
  choice.has_all = true;
  choice.hot_bytes = choice.reserved_bytes + ListHotIds(tables, &choice);
  EMBANK_CHECK(choice.hot_bytes == choice.reserved_bytes + large_bytes);
  choice.estimated_bytes = choice.bound_bytes = static_cast<double>(choice.hot_bytes);
  return std::optional<HotChoice>(std::move(choice));
}

// Adds the reserved bytes to those of large tables.
HotChoice WithReserve(HotChoice choice, uint64_t large_bytes, uint64_t reserved_bytes) {
  choice.reserved_bytes = reserved_bytes;
  choice.hot_bytes = large_bytes + reserved_bytes;
  choice.estimated_bytes += static_cast<double>(reserved_bytes);
  choice.bound_bytes += static_cast<double>(reserved_bytes);
  return choice;
}

}  // namespace

double EstimateRows(std::span<const IdCount> entries, double sampled_share) {
  const auto seen = static_cast<double>(entries.size());
  if (sampled_share >= 1.0) return seen;
  const auto once = static_cast<double>(std::ranges::count(entries, 1u, &IdCount::count));
  const auto twice = static_cast<double>(std::ranges::count(entries, 2u, &IdCount::count));
  const double odds = sampled_share / (1.0 - sampled_share);
  return seen + once * (once - 1.0) / (2.0 * (twice + 1.0) + odds * once);
}

std::vector<Key> HotIdsOf(std::span<const IdCount> entries, double cutoff) {
  std::vector<IdCount> hot;
  std::ranges::copy_if(entries, std::back_inserter(hot),
                       [&](const IdCount& entry) { return ScoreOf(entry) >= cutoff; });
  std::ranges::sort(hot, [](const IdCount& a, const IdCount& b) {
    return a.count != b.count ? a.count > b.count : a.id < b.id;
  });
  std::vector<Key> ids(hot.size());
  std::ranges::transform(hot, ids.begin(), &IdCount::id);
  return ids;
}

StatusOr<HotChoice> ChooseHot(std::span<const TablePopularity> tables, const HotBudget& budget) {
  uint64_t available = 0;
  EMBANK_ASSIGN_OR_RETURN(std::optional<HotChoice> all, ChooseAll(tables, budget, &available));
  if (all) return *std::move(all);
  const auto bytes_max = static_cast<double>(available);
  const ThresholdRange range = RangeOf(tables);
  const LargeTables large(tables, budget.seed);
  HotChoice choice;
  Bisect(large, range, bytes_max, ChunkEstimator::kChunksFirst, &choice);
  uint64_t bytes = ListHotIds(tables, &choice);
  if (bytes > available || static_cast<double>(bytes) < kFilledMin * bytes_max) {
    Bisect(large, range, bytes_max, UINT32_MAX, &choice);
    bytes = ListHotIds(tables, &choice);
    EMBANK_CHECK(bytes <= available);
  }
  return WithReserve(std::move(choice), bytes, budget.bytes - available);
}

StatusOr<HotChoice> ChooseByFullProfile(std::span<const TablePopularity> tables,
                                        const HotBudget& budget) {
  uint64_t available = 0;
  EMBANK_ASSIGN_OR_RETURN(std::optional<HotChoice> all, ChooseAll(tables, budget, &available));
  if (all) return *std::move(all);
  // The threshold at which each row becomes hot, and its bytes.
  std::vector<std::pair<double, uint32_t>> rows;
  for (const TablePopularity& table : tables) {
    if (table.is_small) continue;
    for (const IdCount& entry : table.entries) {
      rows.emplace_back(ScoreOf(entry) / static_cast<double>(table.accesses), table.row_bytes);
    }
  }
  std::ranges::sort(rows, std::greater<>());
  size_t taken = 0;
  for (uint64_t bytes = rows[0].second; bytes <= available; bytes += rows[taken].second) ++taken;
  // Rows with one threshold are hot together. Not all rows fit, so one is left.
  while (taken > 0 && rows[taken - 1].first == rows[taken].first) --taken;
  HotChoice choice;
  choice.threshold =
      taken == 0 ? RangeOf(tables).high : 0.5 * (rows[taken - 1].first + rows[taken].first);
  const uint64_t bytes = ListHotIds(tables, &choice);
  EMBANK_CHECK(bytes <= available);
  choice.estimated_bytes = choice.bound_bytes = static_cast<double>(bytes);
  return WithReserve(std::move(choice), bytes, budget.bytes - available);
}

}  // namespace embank
