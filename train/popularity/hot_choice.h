// The choice of the rows that are hot: the most popular ones that fit into a budget of memory.
#ifndef EMBANK_TRAIN_POPULARITY_HOT_CHOICE_H_
#define EMBANK_TRAIN_POPULARITY_HOT_CHOICE_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/status_or.h"
#include "base/types.h"
#include "train/popularity/id_counts.h"

namespace embank {

// A table whose rows take less is hot as a whole (Adnan et al. 2021, section 4.1.2).
inline constexpr uint64_t kSmallTableBytes = 1'000'000;

struct TablePopularity {
  std::vector<IdCount> entries;  // of the sample, sorted by id
  uint64_t accesses = 0;         // lookups in the sample: the sum of the counts
  uint32_t row_bytes = 0;        // of a hot row, states included
  bool is_small = false;
  uint64_t rows = 0;  // of a small table in the whole log
};

// Returns the number of different ids in the whole log by those of a sample of it: Chao's estimate
// for a sample without replacement (Chao and Lin, Biometrics 68, 2012), from the ids that occur
// once and twice, in the form that is free of bias. It is a lower bound: a log with a long tail may
// have several times as many. With the share 1 it is the number of entries.
double EstimateRows(std::span<const IdCount> entries, double sampled_share);

struct HotBudget {
  uint64_t bytes = 0;
  uint64_t seed = 1;  // of the estimates
};

struct HotChoice {
  // t: a row of a large table is hot from the cutoff t * accesses on. Infinity: all tables are
  // small.
  double threshold = 0.0;
  uint64_t reserved_bytes = 0;  // for the rows of small tables
  // The hot rows of large tables, with the reserved bytes: by the estimator, its upper bound, and
  // counted. The last is never above the budget.
  double estimated_bytes = 0.0;
  double bound_bytes = 0.0;
  uint64_t hot_bytes = 0;
  uint32_t steps = 0;    // of the bisection
  bool has_all = false;  // all rows of the sample are hot
  // The hot ids of each table, the most popular first, and by id where counts are equal. Those of
  // small tables are not listed: they are known when the whole log has been read.
  std::vector<std::vector<Key>> ids;
};

// Returns the ids with a score of at least `cutoff` (train/popularity/cutoff.h), sorted by
// descending count and then by id: FAE's embedding classifier (Adnan et al. 2021, section 4.2).
std::vector<Key> HotIdsOf(std::span<const IdCount> entries, double cutoff);

// FAE's statistical optimizer (Adnan et al. 2021, section 4.1.3): bisects the logarithm of the
// threshold until the upper bound of the hot bytes is 0.99 to 1 times those that small tables leave
// of the budget. If the bytes are counted afterwards, and are above them, or below 0.9 of them, it
// bisects again by exact counts. One threshold holds for all tables. Small tables are those that
// are marked.
// INVALID_ARGUMENT: the budget is less than small tables need; the message has that number.
StatusOr<HotChoice> ChooseHot(std::span<const TablePopularity> tables, const HotBudget& budget);

// Chooses without estimates: sorts all rows by their share of the lookups in their table, and takes
// the first ones that fit (the full profile of Adnan et al. 2021, section 4.1). For small logs, and
// as the oracle of tests. The statuses of ChooseHot.
StatusOr<HotChoice> ChooseByFullProfile(std::span<const TablePopularity> tables,
                                        const HotBudget& budget);

}  // namespace embank

#endif  // EMBANK_TRAIN_POPULARITY_HOT_CHOICE_H_
