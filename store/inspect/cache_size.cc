#include "store/inspect/cache_size.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/check.h"

namespace embank {
namespace {

// Ranks next to each other that count as equally popular: one each at first, then a hundredth more
// with each group, so that 2^38 rows are 6,000 groups.
struct RankGroup {
  double popularity;
  double rows;
};

std::vector<RankGroup> GroupsOf(uint64_t rows, double zipf_exponent) {
  constexpr uint64_t kSingleRanks = 4096;
  constexpr double kGroupGrowth = 1.01;
  std::vector<RankGroup> groups;
  double sum = 0;
  for (uint64_t begin = 1; begin <= rows;) {
    const double grown = static_cast<double>(begin) * kGroupGrowth;
    const uint64_t end = begin < kSingleRanks ? begin + 1 : static_cast<uint64_t>(grown);
    EMBANK_CHECK(end > begin);
    const auto count = static_cast<double>(std::min(end, rows + 1) - begin);
    const double middle = static_cast<double>(begin) + (count - 1) / 2;
    groups.push_back({std::pow(middle, -zipf_exponent), count});
    sum += groups.back().popularity * count;
    begin = end;
  }
  for (RankGroup& group : groups) group.popularity /= sum;
  return groups;
}

struct Cached {
  double rows = 0;
  double hit_ratio = 0;
};

// A row is in the cache if it was looked up in the last `lookups`.
Cached CachedAfter(const std::vector<RankGroup>& groups, double lookups) {
  Cached cached;
  for (const RankGroup& group : groups) {
    const double share = -std::expm1(-group.popularity * lookups);
    cached.rows += group.rows * share;
    cached.hit_ratio += group.rows * group.popularity * share;
  }
  return cached;
}

}  // namespace

uint64_t RowsForHitRatio(uint64_t rows, double zipf_exponent, double hit_ratio) {
  if (rows == 0 || hit_ratio <= 0) return 0;
  const std::vector<RankGroup> groups = GroupsOf(rows, zipf_exponent);
  double high = 1;
  // Each row has been looked up many times by then, with any skew; more would be infinity.
  while (high < 1e30 && CachedAfter(groups, high).hit_ratio < hit_ratio) high *= 2;
  double low = high / 2;
  for (int i = 0; i < 40; ++i) {
    const double middle = (low + high) / 2;
    (CachedAfter(groups, middle).hit_ratio < hit_ratio ? low : high) = middle;
  }
  return std::min(rows, static_cast<uint64_t>(std::ceil(CachedAfter(groups, high).rows)));
}

}  // namespace embank
