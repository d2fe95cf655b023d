#include "bench/access_counts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <vector>

namespace embank {

void AccessCounts::Add(KeySpan keys) {
  for (const Key key : keys) ++counts_[key];
  accesses_ += keys.size();
}

double AccessCounts::ShareOfTop(double fraction) const {
  if (accesses_ == 0) return 0.0;
  std::vector<uint64_t> counts;
  counts.reserve(counts_.size());
  for (const auto& [key, count] : counts_) counts.push_back(count);
  // The product of 0.1 and 30 is a little more than 3: no reason to take a fourth key.
  constexpr double kRounding = 1e-9;
  const auto wanted =
      static_cast<uint64_t>(std::ceil(fraction * static_cast<double>(counts.size()) - kRounding));
  const auto top =
      counts.begin() + static_cast<ptrdiff_t>(std::clamp<uint64_t>(wanted, 1, counts.size()));
  std::nth_element(counts.begin(), top - 1, counts.end(), std::greater<>());
  const uint64_t sum = std::accumulate(counts.begin(), top, uint64_t{0});
  return static_cast<double>(sum) / static_cast<double>(accesses_);
}

}  // namespace embank
